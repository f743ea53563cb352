# SPDX-License-Identifier: Apache-2.0
"""The check that the items of a launch are independent, as the program promises.

    item ── get, load ──> readers of an element ─┐
         ├─ set, store ─> its writer ────────────┼─> another item? then the promise is broken
         └─ atomic ─────> its updaters ──────────┘   but for updates that commute

It follows the instructions of a run in order, and notes for each element, field, static and byte of
the heap which item of the running launch wrote it and which ones read it. That is the definition of
a race by accesses, not by what happened to be overwritten: it does not depend on how a backend
would have run the items. An access in a nested launch is one of the item around it, too. Where all
items have waited for each other at a barrier, a new phase begins, for which the accesses before it
do not count.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.backend import DependenceError
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate, Instruction
from ferryvm.isa.atomic import Update
from ferryvm.isa.declared_type import StructType
from ferryvm.isa.effect import Effect, Summary, summary
from ferryvm.isa.element import Element
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET, type_number
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine.active_item import running_item
from ferryvm.machine.frame_chain import follow
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.region.atomic import commuting, is_update

if TYPE_CHECKING:
    from ferryvm.machine.object_memory import ObjectMemory

_BEGIN, _ITEM, _CALL, _BARRIER = (
    BY_MNEMONIC[name].opcode for name in ("launch.begin", "launch.item", "call", "launch.barrier")
)

_ORDERED = (
    "; items may update one element if all do so by the same one of add, min, max, and, or, and do "
    "not use the results"
)

_MOST_CALLS = 12
"""Calls between a launch in generated code and the form that it was made of, at most."""

_ELEMENT_BYTES = {element.kind: element.bytes for element in Element}

_WATCHED = frozenset({Effect.READS_STATIC, Effect.WRITES_STATIC, Effect.ALLOCATES})
"""Effects on places that items share, apart from those on elements, fields and the heap."""

Place = tuple[str, int, int]
"""A place in memory: its kind; the handle of an object, or 0; a number."""

_ELEMENT, _FIELD, _STATIC, _BYTE, _POINTER = "element", "field", "static", "byte", "heap pointer"


class _Verb(enum.Enum):
    """An effect of an access; the value is its words in messages, of the past and of now."""

    READ = ("read", "reads")
    WRITE = ("wrote", "writes")
    UPDATE = ("updated", "updates")


class _Access(NamedTuple):
    """An access by an item."""

    item: int
    pc: int
    verb: _Verb
    update: Update | None
    """The atomic update that it is, if that commutes with others of its kind."""

    def commutes(self, other: _Access) -> bool:
        """True if both may come in any order."""
        if self.item == other.item or self.verb is other.verb is _Verb.READ:
            return True
        return self.update is not None and self.update is other.update


@record.dataclass
class _Seen:
    """The accesses to one place so far: of each kind the first ones of two different items."""

    changes: tuple[_Access, ...] = ()
    readers: tuple[_Access, ...] = ()

    def conflict(self, access: _Access) -> _Access | None:
        """An access by another item which this one must not come after; None if there is none."""
        known = (*self.changes, *self.readers)
        return next((one for one in known if not one.commutes(access)), None)

    def add(self, access: _Access) -> None:
        """Note an access."""
        known = self.readers if access.verb is _Verb.READ else self.changes
        alike = [one.item for one in known if one[2:] == access[2:]] if known else ()
        if len(alike) < 2 and access.item not in alike:
            if access.verb is _Verb.READ:
                self.readers = (*known, access)
            else:
                self.changes = (*known, access)


class _Launch:
    """A launch that runs."""

    def __init__(self, fp: int, sp: int, pc: int) -> None:
        self.fp, self.sp, self.pc = fp, sp, pc
        """The frame that it is in; the word past its operands; the instruction that messages
        name."""
        self.item: int | None = None
        """The item that runs."""
        self.seen: dict[Place, _Seen] = {}
        self.phase = 0
        """Barriers at which all items have waited."""

    def resume(self, item: int) -> None:
        """Note that an item goes on behind a barrier, of which the first one begins a phase."""
        if self.item is None and item == 0:
            self.seen = {}
            self.phase += 1
        self.item = item


@functools.cache
def _summary(opcode: int) -> Summary:
    """The effects of an instruction, memoised by its number, whose hash is quick."""
    return summary(INSTRUCTIONS[opcode])


@functools.cache
def _array_verb(opcode: int) -> str:
    return INSTRUCTIONS[opcode].mnemonic.removeprefix("array.").partition("_")[0]


def is_watched(row: Instruction) -> bool:
    """True for an instruction whose end the check has to see."""
    if row.opcode in (_BEGIN, _ITEM, _BARRIER) or is_update(row.opcode):
        return True
    found = summary(row)
    return (
        row.chapter == "array"
        or row.immediate is Immediate.FIELD
        or bool(found.heap_bytes)
        or not found.effects.isdisjoint(_WATCHED)
    )


class Independence:
    """The check, for one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._launches: list[_Launch] = []
        """The launches that run, the innermost last."""
        self.fp = -1
        """The frame of the innermost one; -1 if none runs. `before` is for instructions in this
        frame or further out only."""
        self._positions: dict[int, Position | None] = {}
        """Positions that were looked up, by pc."""
        self._handles: dict[int, int] = {}
        """Handles of the objects that were accessed, by reference."""
        self._collections = 0
        """Collections until `_handles` was right."""

    def before(self, row: Instruction, fp: int, sp: int) -> None:
        """Forget launches that control has left: by an exception, a jump, a return."""
        launches = self._launches
        while launches and (fp, sp) < (launches[-1].fp, launches[-1].sp - LAUNCH_WORDS):
            launches.pop()
        if launches and launches[-1].fp == fp and row.opcode != _CALL:
            launches[-1].item = None
        self.fp = launches[-1].fp if launches else -1
        if not launches and self._handles:
            self._release()

    def after(
        self,
        row: Instruction,
        pc: int,
        immediate: int,
        operands: Sequence[int],
        fp: int,
        sp: int,
    ) -> None:
        """Note what a watched instruction has done. `fp`, `sp`: before it. Raises
        DependenceError."""
        if row.opcode == _BEGIN:
            self._begin(_Launch(fp, sp + LAUNCH_WORDS - 1, self._written(pc, fp)))
        elif row.opcode == _ITEM:
            top = self._launches[-1] if self._launches else None
            if top is None or (top.fp, top.sp) != (fp, sp):
                top = _Launch(fp, sp, self._written(pc, fp))
                self._begin(top)
            top.item = signed(I64, self._machine.memory.stack[sp])
        elif row.opcode == _BARRIER:
            item = running_item(self._machine)
            if self._launches and item is not None:
                self._launches[-1].resume(item)
        elif self._launches:
            if is_update(row.opcode):
                place = _ELEMENT, self._handle(operands[0]), operands[1]
                update = commuting(self._machine.program, pc)
                self._note(place, _Verb.UPDATE, self._named(pc, fp), update)
                return
            for place, writes in self._accesses(row, immediate, operands):
                self._note(place, _Verb.WRITE if writes else _Verb.READ, self._named(pc, fp))

    def _begin(self, launch: _Launch) -> None:
        self._launches.append(launch)
        self.fp = launch.fp

    def _written(self, pc: int, fp: int) -> int:
        """The pc of a launch; in generated code, as of a map, that of the innermost call which
        somebody wrote."""
        if self._position(pc) is not None:
            return pc
        chain = follow(self._machine.memory.stack, pc, fp, _MOST_CALLS)
        return next((call for call in chain.inner if self._position(call) is not None), pc)

    def _named(self, pc: int, fp: int) -> int:
        """The pc that messages name for an access: in generated code, that of the innermost call
        that somebody wrote, or else of the launch."""
        found = self._written(pc, fp)
        return self._launches[-1].pc if self._position(found) is None else found

    def _note(self, place: Place, verb: _Verb, pc: int, update: Update | None = None) -> None:
        for launch in self._launches:
            if launch.item is None:
                continue
            access = _Access(launch.item, pc, verb, update)
            seen = launch.seen.get(place)
            if seen is None:
                seen = launch.seen[place] = _Seen()
            elif seen.changes or verb is not _Verb.READ:
                other = seen.conflict(access)
                if other is not None:
                    raise self._error(launch, place, other, access)
            seen.add(access)

    # --- what an instruction accesses -----------------------------------------------------------

    def _accesses(
        self, row: Instruction, immediate: int, operands: Sequence[int]
    ) -> Iterator[tuple[Place, bool]]:
        """The places that an instruction has accessed, each with True if it wrote there."""
        if row.chapter == "array":
            yield from self._elements(row, operands)
            return
        found = _summary(row.opcode)
        effects = found.effects
        if row.immediate is Immediate.FIELD:
            field = field_of(immediate)[1]
            yield (_FIELD, self._handle(operands[0]), field), Effect.WRITES_OBJECTS in effects
        elif Effect.READS_STATIC in effects or Effect.WRITES_STATIC in effects:
            number = immediate if row.immediate is Immediate.STATIC else operands[-1]
            yield (_STATIC, 0, number), Effect.WRITES_STATIC in effects
        elif found.heap_bytes:
            address = operands[0] + (immediate if row.immediate is Immediate.OFFSET else 0)
            for byte in range(address, address + found.heap_bytes):
                yield (_BYTE, 0, byte), Effect.WRITES_HEAP in effects
        elif Effect.ALLOCATES in effects:
            yield (_POINTER, 0, 0), True

    def _elements(self, row: Instruction, operands: Sequence[int]) -> Iterator[tuple[Place, bool]]:
        match what := _array_verb(row.opcode):
            case "get" | "set":
                yield (_ELEMENT, self._handle(operands[0]), operands[1]), what == "set"
            case "fill":
                handle, first = self._handle(operands[0]), operands[1]
                for index in range(first, first + operands[-1]):
                    yield (_ELEMENT, handle, index), True
            case "copy":
                to, to_first, source, first, count = operands
                handles = self._handle(source), self._handle(to)
                for index in range(count):
                    yield (_ELEMENT, handles[0], first + index), False
                for index in range(count):
                    yield (_ELEMENT, handles[1], to_first + index), True
            case "load" | "store":
                handle, first, address, count = self._handle(operands[0]), *operands[1:]
                size = _ELEMENT_BYTES.get(row.mnemonic.rpartition("_")[2], WORD_BYTES)
                for index in range(first, first + count):
                    yield (_ELEMENT, handle, index), what == "load"
                for byte in range(address, address + size * count):
                    yield (_BYTE, 0, byte), what == "store"
            case _:
                return

    # --- objects ----------------------------------------------------------------------------------

    @property
    def _objects(self) -> ObjectMemory:
        assert self._machine.objects is not None  # the program has references
        return self._machine.objects

    def _handle(self, reference: int) -> int:
        """The handle of an object: collections move it, its handle stays."""
        objects = self._objects
        if self._collections != objects.space.metrics.count:
            words = objects.handles.words
            self._handles = {words[handle]: handle for handle in self._handles.values()}
            self._collections = objects.space.metrics.count
        if reference not in self._handles:
            self._handles[reference] = objects.handles.hold(reference)
        return self._handles[reference]

    def _release(self) -> None:
        for handle in self._handles.values():
            self._objects.handles.release(handle)
        self._handles = {}

    # --- messages ---------------------------------------------------------------------------------

    def _error(
        self, launch: _Launch, place: Place, other: _Access, access: _Access
    ) -> DependenceError:
        did, does = other.verb.value[0], access.verb.value[1]
        behind = f" behind barrier {launch.phase}" if launch.phase else ""
        text = (
            f"items {other.item} and {access.item} of the launch at {self._at(launch.pc)} are not "
            f"independent{behind}: item {other.item} {did} {self._name(place)} at {self._at(other.pc)}, "
            f"item {access.item} {does} it at {self._at(access.pc)}"
        )
        return DependenceError(
            text + (_ORDERED if other.verb is access.verb is _Verb.UPDATE else "")
        )

    def _position(self, pc: int) -> Position | None:
        if pc not in self._positions:
            self._positions[pc] = self._machine.program.source_map.position(pc)
        return self._positions[pc]

    def _at(self, pc: int) -> str:
        position = self._position(pc)
        return str(position) if position is not None else f"pc {pc}"

    def _name(self, place: Place) -> str:
        kind, handle, number = place
        program = self._machine.program
        if kind == _STATIC:
            return f"static {program.statics[number].name or number}"
        if kind == _BYTE:
            return f"byte {number} of the heap"
        if kind == _POINTER:
            return "the heap pointer"
        reference = self._objects.handles.words[handle]
        words, at = self._objects.space.words, reference // WORD_BYTES
        type_ = self._objects.types.references[type_number(words[at])]
        if kind == _FIELD:
            declared = self._objects.types.declared(type_.number)
            assert isinstance(declared, StructType)  # it has fields
            return f"field {declared.fields[number].name} of the {type_} at {reference}"
        length = words[at + LENGTH_OFFSET // WORD_BYTES]
        shown = str(type_).removesuffix("[]")
        return f"element {number} of the {shown}[{length}] at {reference}"
