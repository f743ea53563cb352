# SPDX-License-Identifier: Apache-2.0
"""What instructions read and change, as their meanings say it.

An instruction's meaning is run against an emitter that computes nothing and notes which of its
operations were used. There is no table of mnemonics to be kept in step; an operation of the
emitter that reads or changes something has its line in `_OPERATIONS`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction
from ferryvm.isa.emitter import Emitter
from ferryvm.region.call import call_graph
from ferryvm.region.code import code
from ferryvm.region.graph import graph
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

T = TypeVar("T")


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
    CALLS_HOST = "leaves for a host function"
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
    "host": Effect.CALLS_HOST,
    "halt": Effect.HALTS,
}
"""Operations of the emitter that are more than a computation on values."""


class _Value(enum.Enum):
    """What the recording emitter knows of a value."""

    IMMEDIATE = enum.auto()
    """It is the immediate itself."""
    COMPUTED = enum.auto()


@dataclasses.dataclass
class _Record:
    """What one meaning used."""

    effects: set[Effect] = dataclasses.field(default_factory=set)
    numbered: set[Effect] = dataclasses.field(default_factory=set)
    """Those of them on the static that the immediate names."""
    computed: set[Effect] = dataclasses.field(default_factory=set)
    """Those of them on a static whose number is computed at run time."""


def _operation(name: str) -> Callable[..., _Value]:
    effect = _OPERATIONS.get(name)

    def note(self: Any, *arguments: object) -> _Value:
        if effect is not None:
            self.record.effects.add(effect)
        if effect in (Effect.READS_STATIC, Effect.WRITES_STATIC):
            is_named = arguments[0] is _Value.IMMEDIATE
            (self.record.numbered if is_named else self.record.computed).add(effect)
        return _Value.COMPUTED

    return note


# Every operation does the same, and a new one of the protocol is here by itself.
_Recorder = type(
    "_Recorder", (Emitter,), {name: _operation(name) for name in Emitter.__abstractmethods__}
)


@functools.cache
def _record(opcode: int) -> _Record:
    row, record, recorder = INSTRUCTIONS[opcode], _Record(), _Recorder()
    recorder.record = record
    immediate = [] if row.immediate is Immediate.NONE else [_Value.IMMEDIATE]
    row.meaning(recorder, *immediate, *[_Value.COMPUTED] * len(row.pops))
    return record


@functools.cache
def effects(row: Instruction) -> frozenset[Effect]:
    """What an instruction of the table does, whatever its immediate."""
    return frozenset(_record(row.opcode).effects)


@dataclasses.dataclass(frozen=True)
class Effects:
    """What a piece of code does.

    Everything can leave, since everything polls for interrupts; so nothing is said about that.
    """

    kinds: frozenset[Effect] = frozenset()
    """Effects of all instructions; those on locals and stack words are on the frames of whichever
    function has them."""
    numbered_reads: frozenset[int] = frozenset()
    """Statics that are read by `static.get`."""
    numbered_writes: frozenset[int] = frozenset()
    """Statics that are written by `static.set`."""
    all_read: int = 0
    """All statics below this number can be read: 0, or all that there are, where a number is
    computed at run time."""
    all_written: int = 0
    """The same for writes."""

    @functools.cached_property
    def statics_read(self) -> frozenset[int]:
        """Numbers of all statics that can be read."""
        return frozenset(range(self.all_read)) if self.all_read else self.numbered_reads

    @functools.cached_property
    def statics_written(self) -> frozenset[int]:
        """Numbers of all statics that can be written."""
        return frozenset(range(self.all_written)) if self.all_written else self.numbered_writes

    @property
    def reads_heap(self) -> bool:
        """True if heap bytes are loaded."""
        return Effect.READS_HEAP in self.kinds

    @property
    def writes_heap(self) -> bool:
        """True if heap bytes are stored."""
        return Effect.WRITES_HEAP in self.kinds

    @property
    def reads_heap_pointer(self) -> bool:
        """True if the heap pointer matters: for each bounds check and allocation it does."""
        return Effect.READS_HEAP_POINTER in self.kinds

    @property
    def allocates(self) -> bool:
        """True if the heap pointer is moved."""
        return Effect.ALLOCATES in self.kinds

    @property
    def calls_host(self) -> bool:
        """True if host functions are called."""
        return Effect.CALLS_HOST in self.kinds

    def __or__(self, other: Effects) -> Effects:
        """What both do together."""
        return Effects(
            _joined(self.kinds, other.kinds),
            _joined(self.numbered_reads, other.numbered_reads),
            _joined(self.numbered_writes, other.numbered_writes),
            max(self.all_read, other.all_read),
            max(self.all_written, other.all_written),
        )


def _joined(left: frozenset[T], right: frozenset[T]) -> frozenset[T]:
    """The union; one of the two where it holds the other, so that callers share their sets."""
    if right <= left:
        return left
    return right if left <= right else left | right


def code_effects(verified: Verified, pcs: Iterable[int]) -> Effects:
    """What the instructions at these pcs do, without what the functions that they call do."""
    listing, count = code(verified), len(verified.program.statics)
    opcodes, immediates = listing.opcodes, listing.immediates
    found: dict[int, set[int]] = {}
    for pc in pcs:
        found.setdefault(opcodes[pc], set()).add(immediates[pc])
    kinds: set[Effect] = set()
    numbered: dict[Effect, set[int]] = {Effect.READS_STATIC: set(), Effect.WRITES_STATIC: set()}
    computed: set[Effect] = set()
    for opcode, used in found.items():
        record = _record(opcode)
        kinds |= record.effects
        computed |= record.computed
        for effect in record.numbered:
            numbered[effect] |= used
    return Effects(
        frozenset(kinds),
        frozenset(numbered[Effect.READS_STATIC]),
        frozenset(numbered[Effect.WRITES_STATIC]),
        count if Effect.READS_STATIC in computed else 0,
        count if Effect.WRITES_STATIC in computed else 0,
    )


def function_effects(verified: Verified, function: int) -> Effects:
    """What a function does, with all that it calls."""
    return _all_functions(verified)[function]


@memoised
def _all_functions(verified: Verified) -> tuple[Effects, ...]:
    """Of each function, callees first; those of a recursion do what all of them do."""
    calls = call_graph(verified)
    found: dict[int, Effects] = {}
    for members in calls.components:
        together = Effects()
        for function in members:
            blocks = graph(verified, function).blocks.values()
            pcs = (pc for block in blocks for pc in range(block.first, block.last + 1))
            together |= code_effects(verified, pcs)
            for callee in calls.direct[function]:
                together |= found.get(callee, together)  # not there yet: one of the members
        found.update(dict.fromkeys(members, together))
    return tuple(found[function] for function in range(len(found)))
