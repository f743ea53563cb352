# SPDX-License-Identifier: Apache-2.0
"""Effects of an instruction, found by running its meaning: traps, reads, changes, calls.

A meaning is run against an emitter that computes nothing and records which of its operations were
used, and with which arguments. So there is no table of mnemonics that could become stale; an
operation of the emitter that reads or changes something has its line in `_OPERATIONS`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

from ferryvm import record
from ferryvm.isa.emitter import Emitter
from ferryvm.isa.table import Immediate, Instruction
from ferryvm.isa.trap import Trap


class Effect(enum.Enum):
    """A thing that an instruction can do besides taking operands and pushing results."""

    READS_LOCAL = "reads a local"
    WRITES_LOCAL = "writes a local"
    READS_STATIC = "reads a static"
    WRITES_STATIC = "writes a static"
    READS_HEAP = "reads the heap"
    WRITES_HEAP = "writes the heap"
    READS_HEAP_POINTER = "reads the heap pointer"
    ALLOCATES = "moves the heap pointer"
    READS_STACK = "reads a word of a frame by address"
    WRITES_STACK = "writes a word of a frame by address"
    JUMPS = "goes on elsewhere in the function"
    CALLS = "enters a function"
    RETURNS = "goes back to the caller"
    TRAPS = "can trap"
    GROWS = "can leave for a larger heap"
    READS_OBJECTS = "reads an object, its elements or the end of the object space"
    WRITES_OBJECTS = "writes an object or its elements"
    ALLOCATES_OBJECTS = "makes an object"
    LEAVES_FOR_OBJECTS = "can leave for memory of an object"
    READS_TYPES = "reads a type row"
    TAKES_OPERANDS = "takes a number of operands that its immediate tells"
    LEAVES_OPERANDS = "leaves a number of operands that its immediate tells"
    CONTINUES_LAUNCHES = "can leave for the next piece of a launch"
    CALLS_HOST = "leaves for a host function"
    THROWS = "goes on at a handler, or traps"
    HALTS = "ends the program"


_OPERATIONS = {
    "local": Effect.READS_LOCAL,
    "set_local": Effect.WRITES_LOCAL,
    "static": Effect.READS_STATIC,
    "set_static": Effect.WRITES_STATIC,
    "heap_load": Effect.READS_HEAP,
    "heap_store": Effect.WRITES_HEAP,
    "heap_pointer": Effect.READS_HEAP_POINTER,
    "set_heap_pointer": Effect.ALLOCATES,
    "word": Effect.READS_STACK,
    "set_word": Effect.WRITES_STACK,
    "clear_words": Effect.WRITES_STACK,
    "move_results": Effect.WRITES_STACK,
    "jump": Effect.JUMPS,
    "jump_if": Effect.JUMPS,
    "skip": Effect.JUMPS,
    "enter": Effect.CALLS,
    "resume": Effect.RETURNS,
    "trap": Effect.TRAPS,
    "trap_if": Effect.TRAPS,
    "grow_if": Effect.GROWS,
    "allocate_if": Effect.LEAVES_FOR_OBJECTS,
    "object_top": Effect.READS_OBJECTS,
    "object_end": Effect.READS_OBJECTS,
    "set_object_top": Effect.ALLOCATES_OBJECTS,
    "object_load": Effect.READS_OBJECTS,
    "object_store": Effect.WRITES_OBJECTS,
    "object_store_words": Effect.WRITES_OBJECTS,
    "prepared_place": Effect.READS_OBJECTS,
    "prepared_bytes": Effect.READS_OBJECTS,
    "clear_prepared": Effect.ALLOCATES_OBJECTS,
    "element_load": Effect.READS_OBJECTS,
    "element_store": Effect.WRITES_OBJECTS,
    "update_element": Effect.WRITES_OBJECTS,
    "compare_exchange_element": Effect.WRITES_OBJECTS,
    "fill_elements": Effect.WRITES_OBJECTS,
    "move_elements": Effect.WRITES_OBJECTS,
    "elements_from_heap": Effect.WRITES_OBJECTS,
    "elements_to_heap": Effect.WRITES_HEAP,
    "type_word": Effect.READS_TYPES,
    "pop_words": Effect.TAKES_OPERANDS,
    "push_words": Effect.LEAVES_OPERANDS,
    "continue_launch_if": Effect.CONTINUES_LAUNCHES,
    "host": Effect.CALLS_HOST,
    "throw": Effect.THROWS,
    "halt": Effect.HALTS,
}
"""Operations of the emitter that are more than a computation on values."""

_READING = {
    "update_element": Effect.READS_OBJECTS,
    "compare_exchange_element": Effect.READS_OBJECTS,
    "move_elements": Effect.READS_OBJECTS,
    "elements_from_heap": Effect.READS_HEAP,
    "elements_to_heap": Effect.READS_OBJECTS,
}
"""Operations that read, too: their second effect."""


class _Value(enum.Enum):
    """A value of the recording emitter."""

    IMMEDIATE = enum.auto()
    """The value is the immediate itself."""
    COMPUTED = enum.auto()


@record.dataclass
class Summary:
    """Operations that a meaning uses, for any immediate."""

    effects: set[Effect] = record.field(default_factory=set)
    numbered: set[Effect] = record.field(default_factory=set)
    """The operations among them on the static that the immediate names."""
    computed: set[Effect] = record.field(default_factory=set)
    """The operations among them on a static whose number is computed at run time."""
    traps: list[Trap] = record.field(default_factory=list)
    """The kind of each trap check, in the order of the checks."""
    heap_bytes: int = 0
    """Bytes of the heap that it loads or stores; 0 for an instruction that does neither."""


def _operation(name: str) -> Callable[..., _Value]:
    effect = _OPERATIONS.get(name)

    def note(self: Any, *arguments: object) -> _Value:
        used: Summary = self.summary
        used.effects.update(each for each in (effect, _READING.get(name)) if each is not None)
        if effect in (Effect.READS_STATIC, Effect.WRITES_STATIC):
            is_named = arguments[0] is _Value.IMMEDIATE
            (used.numbered if is_named else used.computed).add(effect)
        elif name in ("heap_load", "heap_store"):
            assert isinstance(arguments[0], int)
            used.heap_bytes = arguments[0]
        elif effect is Effect.TRAPS:
            used.traps += [kind for kind in arguments if isinstance(kind, Trap)]
        return _Value.COMPUTED

    return note


# All operations are recorded alike, so new ones of the protocol need nothing here.
_Recorder = type(
    "_Recorder", (Emitter,), {name: _operation(name) for name in Emitter.__abstractmethods__}
)


@functools.cache
def summary(row: Instruction) -> Summary:
    """The effects of an instruction of the table, with the details of statics, traps and bytes."""
    recorder = _Recorder()
    recorder.summary = Summary()
    immediate = [] if row.immediate is Immediate.NONE else [_Value.IMMEDIATE]
    row.meaning(recorder, *immediate, *[_Value.COMPUTED] * len(row.pops))
    found: Summary = recorder.summary
    return found


@functools.cache
def effects(row: Instruction) -> frozenset[Effect]:
    """The effects of an instruction of the table, for any immediate."""
    return frozenset(summary(row).effects)
