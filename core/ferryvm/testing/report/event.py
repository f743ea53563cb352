# SPDX-License-Identifier: Apache-2.0
"""Situations of an instruction that are not a matter of one value, declared as data.

A branch taken, an address at the bound, a deep call; and every trap kind that the instruction's
meaning names. The traps, the growth of the heap and the accessed bytes are derived from the meaning
itself, so no list here can become stale.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from ferryvm.isa import Flow, Immediate, Instruction, Trap, Type
from ferryvm.isa.effect import Effect, effects, summary
from ferryvm.isa.frame import return_counts
from ferryvm.isa.object import LENGTH_OFFSET
from ferryvm.isa.type import I64, WORD_BYTES, ValueType
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine


@dataclasses.dataclass(slots=True)
class Step:
    """One observed instruction: the state before it, and its outcome."""

    row: Instruction
    machine: Machine
    """Its state after the instruction."""
    pc: int
    immediate: int
    operands: list[int]
    open: ValueType | None
    """The type that the instruction leaves open, here."""
    depth: int
    """Active calls after it, main not counted."""
    has_grown: bool
    """True if the heap grew for it."""

    @property
    def has_completed(self) -> bool:
        """True if it completed; it trapped otherwise."""
        return self.machine.control.status != Status.TRAP


@dataclasses.dataclass(frozen=True)
class EventClass:
    """A situation of an instruction that is not a matter of one value."""

    group: str
    """Its group: edges are shown by group."""
    name: str
    applies: Callable[[Instruction], bool]
    holds: Callable[[Step], bool]


def _end(step: Step) -> int:
    """The byte past a heap access, in numbers that do not wrap."""
    return step.operands[0] + step.immediate + summary(step.row).heap_bytes


def _index(step: Step) -> int:
    return step.operands[0 if step.row.mnemonic == "array.index" else 1]


def _length(step: Step) -> int | None:
    """The length that an index is checked against, None if there is no array."""
    if step.row.mnemonic == "array.index":
        return step.operands[1]
    array, objects = step.operands[0], step.machine.objects
    if array == 0 or objects is None:
        return None
    return objects.space.words[(array + LENGTH_OFFSET) // WORD_BYTES]


def _index_at(places: int) -> Callable[[Step], bool]:
    """True if the index is that many places from the number of elements: -1 is the last one."""

    def holds(step: Step) -> bool:
        length = _length(step)
        return length is not None and _index(step) == length + places

    return holds


def _is_taken(step: Step) -> bool:
    if step.row.flow is Flow.JUMP:
        return True
    return (step.operands[0] != 0) == (step.row.mnemonic == "jump_if")


def _is_recursive(step: Step) -> bool:
    verified, pc = step.machine.verified, int(step.machine.control.pc)
    return step.has_completed and verified.owner(pc) == verified.owner(step.pc)


def _host_signature(step: Step) -> tuple[int, int]:
    """Numbers of parameters and of results."""
    signature = step.machine.program.hosts[step.immediate].signature
    return len(signature.parameters), len(signature.results)


def _width(step: Step) -> int:
    """Bits of the first operand, whose type is not open."""
    t = step.row.pops[0]
    assert isinstance(t, Type)
    return t.bits


_SHIFTS = {"shl", "shr_s", "shr_u", "rotl", "rotr"}


def _is_shift(row: Instruction) -> bool:
    return row.mnemonic.partition(".")[2] in _SHIFTS


def _takes_two_alike(row: Instruction) -> bool:
    return len(row.pops) >= 2 and row.pops[0] == row.pops[1]


def _accesses(row: Instruction) -> bool:
    return row.immediate is Immediate.OFFSET


def _indexes_array(row: Instruction) -> bool:
    return row.mnemonic.startswith(("array.index", "array.get", "array.set", "array.atomic"))


def _indexes_statics(row: Instruction) -> bool:
    return Trap.STATIC_OUT_OF_BOUNDS in summary(row).traps


def _indexes_functions(row: Instruction) -> bool:
    return row.flow is Flow.CALL_INDIRECT


def _pushes_item(row: Instruction) -> bool:
    return row.immediate is Immediate.ITEM


def _item(step: Step) -> int:
    """The item that `launch.item` has pushed, below the arguments."""
    machine = step.machine
    parameters = len(machine.program.signature(step.immediate).parameters)
    return int(machine.memory.stack[machine.control.sp - parameters])


def _is_table(row: Instruction) -> bool:
    return row.flow is Flow.TABLE


def _jumps(row: Instruction) -> bool:
    return row.flow in (Flow.JUMP, Flow.BRANCH)


def _branches(row: Instruction) -> bool:
    return row.flow is Flow.BRANCH


def _calls(row: Instruction) -> bool:
    return row.flow in (Flow.CALL, Flow.CALL_INDIRECT)


def _returns(row: Instruction) -> bool:
    return row.flow is Flow.RETURN


def _results(step: Step) -> int:
    return return_counts(step.immediate)[1]


def _is_host(row: Instruction) -> bool:
    return row.flow is Flow.HOST


def _throws(row: Instruction) -> bool:
    return row.flow is Flow.THROW


def _named(mnemonic: str) -> Callable[[Instruction], bool]:
    return lambda row: row.mnemonic == mnemonic


def _is_open(row: Instruction) -> bool:
    """True if it works on values of any type, which the program's types then settle."""
    return not all(isinstance(t, Type) for t in (*row.pops, *row.pushes))


def _of(t: Type) -> EventClass:
    return EventClass("type", str(t), _is_open, lambda step: step.open is t)


def _deep(name: str, least: int, past: float) -> EventClass:
    return EventClass(
        "call depth",
        name,
        _calls,
        lambda step: step.has_completed and least <= step.depth < past,
    )


EVENTS: tuple[EventClass, ...] = (
    *(_of(t) for t in Type),
    EventClass(
        "operands", "equal", _takes_two_alike, lambda step: step.operands[0] == step.operands[1]
    ),
    EventClass(
        "shift count",
        "the width or more",
        _is_shift,
        lambda step: step.operands[1] >= _width(step),
    ),
    EventClass("choice", "first", _named("select"), lambda step: step.operands[2] != 0),
    EventClass("choice", "second", _named("select"), lambda step: step.operands[2] == 0),
    EventClass("branch", "taken", _branches, _is_taken),
    EventClass("branch", "not taken", _branches, lambda step: not _is_taken(step)),
    EventClass(
        "jump", "forward", _jumps, lambda step: _is_taken(step) and step.immediate > step.pc
    ),
    EventClass(
        "jump", "backward", _jumps, lambda step: _is_taken(step) and step.immediate <= step.pc
    ),
    EventClass("label", "first", _is_table, lambda s: s.operands[0] == 0 < s.immediate),
    EventClass("label", "last numbered", _is_table, lambda s: s.operands[0] == s.immediate - 1),
    EventClass("label", "default, at the bound", _is_table, lambda s: s.operands[0] == s.immediate),
    EventClass("label", "default, past it", _is_table, lambda s: s.operands[0] > s.immediate),
    EventClass("address", "offset not zero", _accesses, lambda step: step.immediate != 0),
    EventClass(
        "address",
        "unaligned",
        lambda row: _accesses(row) and summary(row).heap_bytes > 1,
        lambda step: _end(step) % summary(step.row).heap_bytes != 0,
    ),
    EventClass("address", "last in bounds", _accesses, lambda s: _end(s) == s.machine.control.hp),
    EventClass(
        "address", "first past bounds", _accesses, lambda s: _end(s) == s.machine.control.hp + 1
    ),
    EventClass("address", "sum wraps", _accesses, lambda step: _end(step) - 1 > I64.mask),
    EventClass(
        "index",
        "first",
        _indexes_array,
        lambda step: step.has_completed and _index(step) == 0,
    ),
    EventClass("index", "last", _indexes_array, _index_at(-1)),
    EventClass("index", "at the length", _indexes_array, _index_at(0)),
    EventClass("index", "of an empty array", _indexes_array, lambda s: _length(s) == 0),
    EventClass(
        "index",
        "last static",
        _indexes_statics,
        lambda s: s.operands[-1] == len(s.machine.program.statics) - 1,
    ),
    EventClass(
        "index",
        "at the number of statics",
        _indexes_statics,
        lambda s: s.operands[-1] == len(s.machine.program.statics),
    ),
    EventClass(
        "index",
        "last of the table",
        _indexes_functions,
        lambda s: s.operands[0] == len(s.machine.program.table) - 1,
    ),
    EventClass(
        "index",
        "at the table's size",
        _indexes_functions,
        lambda s: s.operands[0] == len(s.machine.program.table),
    ),
    EventClass("item", "first", _pushes_item, lambda step: _item(step) == 0),
    EventClass("item", "another one", _pushes_item, lambda step: _item(step) != 0),
    _deep("1", 1, 2),
    _deep("2 to 9", 2, 10),
    _deep("10 to 99", 10, 100),
    _deep("100 or more", 100, math.inf),
    EventClass("call", "of the function that calls", _calls, _is_recursive),
    EventClass("return", "with a result", _returns, lambda step: _results(step) > 0),
    EventClass("return", "without a result", _returns, lambda step: _results(step) == 0),
    EventClass("host call", "with arguments", _is_host, lambda s: _host_signature(s)[0] > 0),
    EventClass("host call", "without arguments", _is_host, lambda s: _host_signature(s)[0] == 0),
    EventClass("host call", "with a result", _is_host, lambda s: _host_signature(s)[1] > 0),
    EventClass("exception", "caught", _throws, lambda step: step.has_completed),
    EventClass("exception", "not caught", _throws, lambda step: not step.has_completed),
    EventClass("end", "with a result", _named("halt"), lambda s: s.machine.result() is not None),
    EventClass("end", "without a result", _named("halt"), lambda s: s.machine.result() is None),
    EventClass("end", "inside a call", _named("halt"), lambda step: step.depth > 0),
    EventClass(
        "heap", "grew", lambda row: Effect.GROWS in effects(row), lambda step: step.has_grown
    ),
)
"""In the order in which they are shown."""


def _traps(kind: Trap) -> EventClass:
    return EventClass(
        "trap",
        kind.message,
        lambda row: kind in summary(row).traps,
        lambda step: not step.has_completed and step.machine.control.trap == kind,
    )


TRAPS: tuple[EventClass, ...] = tuple(_traps(kind) for kind in Trap if kind is not Trap.NONE)
