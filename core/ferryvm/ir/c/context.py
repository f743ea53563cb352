# SPDX-License-Identifier: Apache-2.0
"""The context that the functions of one text share: choices, names, helpers used so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.graph import Body, Operation, ValueType
from ferryvm.ir.group.record import Group
from ferryvm.ir.operation import HOST_STACK_BYTES, POLL_BUDGET
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type

ACTIVITY = "ferry_activity"
"""Name of the array of words in which the code counts; the constants below are indices into it."""

FORCED_WORD, LIMIT_WORD, LOWEST_WORD = range(3)
"""Indices of the words of `scratch`."""

SLICE_WORD = LIMIT_WORD
"""On devices, whose code has no native stack: the number of polls that are left."""

FORCED_IN = f"control->scratch[{FORCED_WORD}]"
"""The number of points after which code gives up, if that is forced."""

HOST_STACK_LIMIT = f"control->scratch[{LIMIT_WORD}]"
"""The lowest address for recursion."""

LOWEST_FRAME = f"control->scratch[{LOWEST_WORD}]"
"""The lowest frame of a resumable text, as a number of words."""

ENTRIES = 0
"""Index in `ACTIVITY`: entries of the code."""
NANOSECONDS = 1
"""Index in `ACTIVITY`: time spent in the code, if it is observed."""
INSTRUCTIONS = 2
"""Index in `ACTIVITY`: instructions that paid fuel, if it is observed."""
STACK = 3
"""Index in `ACTIVITY`: bytes of native stack for the code's frames; the loader writes it."""
CROWDED = 4
"""Index in `ACTIVITY`: entries that returned at once for lack of native stack."""
UNFINISHED = 5
"""Index in `ACTIVITY`: groups left in the middle."""
FAILURES = 6
"""Index in `ACTIVITY` of the first guard's failures; the other guards' follow."""

Describe = Callable[[int, int], list[str]]
"""Lines of comment on the instructions from one pc to another, both included."""


GUARD_SHIFT = 8
"""See `Choices.at_entry`."""


@dataclasses.dataclass(frozen=True)
class Choices:
    """Options of a text, besides the IR."""

    guard_limit: int = 1000
    """Failures of one guard from which on it leaves with GUARD; before, with LEAVE."""
    forced: bool = False
    """Give up at some of the possible points, for tests."""
    observed: bool = False
    """Measure time and, if instructions are paid for, instructions."""
    polls: bool = True
    """Poll the interrupt flag in loops."""
    poll_budget: int = POLL_BUDGET
    """The budget of polls between two loads of the interrupt flag;
    `ferryvm.ir.loop.poll.poll_costs`."""
    host_stack_bytes: int = HOST_STACK_BYTES
    """Bytes of native stack for native recursion."""
    unmarked: Mapping[Operation, str] = dataclasses.field(default_factory=dict)
    """Stores of elements that set no dirty mark unless a condition holds, which may be empty."""
    at_entry: bool = False
    """All exits are in the state of the function's entry: it only returns the status, with the
    number of a guard that has failed from bit `GUARD_SHIFT` on, and writes no frame."""
    guarded: frozenset[Operation] = frozenset()
    """Operations that may do harm in a member of a group that has failed."""
    fence: str = ""
    """The memory that a barrier of a group orders."""
    levels: int = 0
    """Depth to which recursive functions call each other if the compiler supports no recursion:
    each has so many copies, and a deeper call leaves the C functions to continue at its entry, in
    one of the `Resumed`. 0: they call themselves."""


@dataclasses.dataclass
class PrintingContext:
    """The context that the functions of a text share."""

    dialect: Dialect
    choices: Choices
    counting: bool
    guards: list[int]
    """pcs of all guards, in the order in which their failures are counted."""
    results: dict[int, Type | None]
    """Type of each function's result, by number."""
    describe: Describe
    helpers: set[str] = dataclasses.field(default_factory=set)
    frames: dict[str, tuple[Type | None, ...]] = dataclasses.field(default_factory=dict)
    """Types of the words that each frame writer stores, at their indices, by its name."""
    traps: set[Trap] = dataclasses.field(default_factory=set)
    records: dict[Group, tuple[str, Body]] = dataclasses.field(default_factory=dict)
    """The functions that write the records of groups, by name."""
    recursing: frozenset[int] = frozenset()
    """Functions that have copies."""
    catches: bool = False
    """True if a call catches what its callee throws."""

    @property
    def back(self) -> str:
        """The status with which a region's own body returns to its caller in the program."""
        return "FERRY_RUNNING" if self.recursing else "FERRY_LEAVE"


def harmless(text: str) -> str:
    """A text that is safe inside a comment: it cannot end it."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable.replace("*/", "* /").replace("\\", "/")


def result_type(dialect: Dialect, result: Type | None) -> str:
    """The C return type of a function with that result."""
    return dialect.status if result is None else f"struct returned_{result}"


def function_name(number: int, level: int) -> str:
    """The C function of a function's copy."""
    return f"f{number}_{level}" if level else f"f{number}"


def head(
    shared: PrintingContext, body: Body, number: int | None, name: str, *, cold: bool = False
) -> str:
    """The head of a body's function; `number` is None for a region's own. `cold`: it rarely
    runs."""
    d = shared.dialect
    if number is None:
        return f"{d.apart}{d.internal}{d.status} {name}({d.parameters})"
    parameters = "".join(
        f", {spelled(d, p.type)} a{place}" for place, p in enumerate(body.blocks[0].parameters)
    )
    result = result_type(d, body.result)
    return f"{d.cold if cold else d.internal}{result} {name}({d.parameters}, {d.frames}const frame{parameters})"


def spelled(dialect: Dialect, t: ValueType | None) -> str:
    """The C type of values of a type."""
    assert t is not None
    return dialect.types[t]
