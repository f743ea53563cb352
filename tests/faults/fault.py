# SPDX-License-Identifier: Apache-2.0
"""Planted faults: how one is declared, and how a faulty body is composed with the right one.

A fault wraps what is right by name: the meaning of an instruction, an operation of the emitter,
or the way into an artifact. The right one comes first among the arguments of the faulty body, so
that a fault is as small as the mistake it stands for.

    @planted("i64.ctz", witness="i64.const 0 / i64.ctz")
    def ctz_of_zero_is_zero(right, m, a):
        \"\"\"The count of trailing zeros of 0 is 0.\"\"\"
        return m.select(m.compare(I64, Condition.EQ, a, zero), zero, right(m, a))

Bodies are written in the emitter protocol where that can say it, so the same fault can be planted
in an interpreter of Python and in native code; others look at Python numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ferryvm.backend import Artifact
from ferryvm.isa import INSTRUCTIONS, Instruction, Type
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.testing import Schedule
from ferryvm.wrapper import ArtifactWrapper

Body = Callable[..., Any]
"""Called with the right body, then with what that is called with."""

Enter = Callable[[Machine, bool], Status]
Entering = Callable[[Enter, Machine, bool], Status]

TRANSFER = "transfer"
"""Where faults are that only show when a program enters or leaves a backend."""


@dataclasses.dataclass(frozen=True)
class Fused:
    """A faulty body for a sequence of instructions, run as one where nothing is counted.

    It is called with the emitter, the immediates, then the operands."""

    mnemonics: tuple[str, ...]
    pops: int
    pushes: tuple[Type, ...]
    body: Body
    when: Callable[[list[int]], bool] = lambda _immediates: True
    """Whether it is run as one with these immediates."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault and all that is known of it."""

    name: str
    what: str
    """What the faulty backend does, in a sentence."""
    where: tuple[str, ...]
    """Instructions, one of which a program must have for the fault to show; or TRANSFER, for
    any program."""
    witness: str
    """Assembly on which the faulty backend differs; lines end with ` / `. What does not begin
    with a directive is the body of main, and ends with `halt`."""
    schedule: Schedule = Schedule.NONE
    """The one under which the witness shows the fault."""
    native: bool = False
    """Whether it can be planted in native code."""
    rows: Mapping[str, Body] = dataclasses.field(default_factory=dict)
    """Faulty meanings by mnemonic."""
    operations: Mapping[str, Body] = dataclasses.field(default_factory=dict)
    """Faulty methods of the emitter by name."""
    fused: Fused | None = None
    enter: Entering | None = None
    """What is done instead of entering an artifact."""

    @property
    def text(self) -> str:
        """The witness as a whole assembly text."""
        body = self.witness.replace(" / ", "\n")
        return body if body.startswith(".") else f".function main\n{body}\nhalt\n"

    def row(self, row: Instruction) -> Instruction:
        """An instruction as the faulty backend has it."""
        body = self.rows.get(row.mnemonic)
        return row if body is None else dataclasses.replace(row, meaning=wrap(body, row.meaning))

    def emitter(self, base: type[Any]) -> type[Any]:
        """An emitter class as the faulty backend has it."""
        methods = {name: wrap(body, getattr(base, name)) for name, body in self.operations.items()}
        return type(f"Faulty{base.__name__}", (base,), methods) if methods else base

    def artifact(self, artifact: Artifact) -> Artifact:
        """An artifact as the faulty backend has it."""
        return artifact if self.enter is None else _Wrapped(artifact, self.enter)


class _Wrapped(ArtifactWrapper):
    """An artifact that is entered through a faulty wrapper."""

    def __init__(self, artifact: Artifact, enter: Entering) -> None:
        super().__init__(artifact)
        self._enter = enter

    def enter(self, machine: Machine, counting: bool) -> Status:
        status = self._enter(self.inner.enter, machine, counting)
        machine.control.status = status
        return status


def wrap(body: Body, right: Callable[..., Any]) -> Callable[..., Any]:
    """`body` with the right one bound; a function, so that it can be a method."""

    def wrong(*arguments: Any) -> Any:
        return body(right, *arguments)

    return wrong


FAULTS: list[Fault] = []
"""All that are declared, in order; `table` imports the modules that declare them."""


def add(fault: Fault) -> None:
    """Put a fault on the list."""
    if any(fault.name == other.name for other in FAULTS):
        raise ValueError(f"fault {fault.name} is declared twice")
    known = {row.mnemonic for row in INSTRUCTIONS} | {TRANSFER}
    if not fault.where or not known.issuperset(fault.where):
        raise ValueError(f"fault {fault.name} is nowhere: {fault.where}")
    FAULTS.append(fault)


def _texts(body: Body) -> tuple[str, str]:
    """Name and meaning of a fault from the function that is its body."""
    return body.__name__.strip("_").replace("_", "-"), " ".join((body.__doc__ or "").split())


def planted(*mnemonics: str, witness: str, native: bool = True) -> Callable[[Body], Body]:
    """Declare a fault in the meanings of these instructions; the decorated function is its body."""

    def declare(body: Body) -> Body:
        name, what = _texts(body)
        rows = dict.fromkeys(mnemonics, body)
        add(Fault(name, what, mnemonics, witness, native=native, rows=rows))
        return body

    return declare


def operation(
    *methods: str,
    where: tuple[str, ...],
    witness: str,
    native: bool = False,
    schedule: Schedule = Schedule.NONE,
) -> Callable[[Body], Body]:
    """Declare a fault in these operations of the emitter."""

    def declare(body: Body) -> Body:
        name, what = _texts(body)
        operations = dict.fromkeys(methods, body)
        add(
            Fault(
                name, what, where, witness, schedule=schedule, native=native, operations=operations
            )
        )
        return body

    return declare


def entering(
    *where: str, witness: str, schedule: Schedule = Schedule.NONE, native: bool = True
) -> Callable[[Entering], Entering]:
    """Declare a fault in entering or leaving an artifact."""

    def declare(body: Entering) -> Entering:
        name, what = _texts(body)
        add(Fault(name, what, where, witness, schedule=schedule, native=native, enter=body))
        return body

    return declare


def fused(
    *mnemonics: str,
    pops: int,
    pushes: tuple[Type, ...],
    witness: str,
    when: Callable[[list[int]], bool] = lambda _immediates: True,
) -> Callable[[Body], Body]:
    """Declare a fault in a sequence of instructions that is run as one where nothing is counted."""

    def declare(body: Body) -> Body:
        name, what = _texts(body)
        sequence = Fused(mnemonics, pops, pushes, body, when)
        add(Fault(name, what, mnemonics, witness, fused=sequence))
        return body

    return declare
