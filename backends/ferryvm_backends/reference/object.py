# SPDX-License-Identifier: Apache-2.0
"""Operations of the emitter protocol on objects, by the addresses in the control block.

Like the rest of the backend it is strict: accesses to the object space are checked against its use.
"""

from __future__ import annotations

import ctypes

from ferryvm.isa.atomic import updated
from ferryvm.isa.cast import I31_MASK
from ferryvm.isa.emitter import Atomic, Emitter
from ferryvm.isa.object import ROW_ANCESTORS, ROW_DEPTH, ROW_WORDS, type_number
from ferryvm.isa.type import ANYREF, I31REF, I32, I64, WORD_BYTES, Reference
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Memory


class Violation(AssertionError):  # noqa: N818 - names what happened, as Departure does
    """A guarantee of the verifier or of the instruction table does not hold."""


class Departure(Exception):  # noqa: N818 - not an error: how a meaning leaves
    """Control leaves with a status at the instruction being run."""

    def __init__(self, status: Status) -> None:
        self.status = status


class ObjectEmitter(Emitter[int]):
    """The operations on objects, over bit patterns."""

    control: ControlBlock
    memory: Memory
    pc: int
    sp: int
    changed: bool
    """True if this instruction has had an effect."""
    conforming: set[tuple[int, int]]
    """The numbers of types and of those that they were found to extend."""

    def _leave_if(self, p: int, status: Status) -> None:
        if self.changed:
            raise Violation(f"pc {self.pc}: leaves with {status.name} after an effect")
        if p:
            raise Departure(status)

    def allocate_if(self, p: int, wanted: int, type_: int) -> None:
        if p:
            self.control.wanted, self.control.wanted_type = wanted, type_
        self._leave_if(p, Status.ALLOCATE)

    def object_top(self) -> int:
        return self.control.object_top

    def object_end(self) -> int:
        return self.control.object_end

    def set_object_top(self, value: int) -> None:
        if not self.control.object_top <= value <= self.control.object_end:
            raise Violation(f"pc {self.pc}: top of the object space {value}")
        self.changed = True
        self.control.object_top = value

    def _object(self, offset: int, size: int, end: int) -> int:
        """The address of bytes of the object space."""
        if offset % size or not 0 <= offset <= end - size:
            raise Violation(f"pc {self.pc}: {size} bytes at {offset} of the object space, of {end}")
        return self.control.objects + offset

    def object_load(self, bytes_: int, offset: int) -> int:
        if offset == 0:
            return 0
        return _load(self._object(offset, bytes_, self.control.object_top), bytes_)

    def object_store(self, bytes_: int, offset: int, value: int) -> None:
        self.changed = True
        _store(self._object(offset, bytes_, self.control.object_end), bytes_, value)

    def object_store_words(self, offset: int, address: int, count: int) -> None:
        words = self.memory.stack[address // WORD_BYTES :][:count].tolist()
        for number, word in enumerate(words):
            self.object_store(WORD_BYTES, offset + WORD_BYTES * number, word)

    def check_reference(self, word: int, t: Reference) -> None:
        """Raise Violation unless a word is null, or refers to what the type says."""
        if word == 0:
            return
        if word & 1:
            number = I31REF.number if word <= I31_MASK else -1
        elif word % WORD_BYTES or not 0 < word < self.control.object_top:
            number = -1
        else:
            number = type_number(self.object_load(WORD_BYTES, word))
        if (number, t.number) in self.conforming:
            return
        depth = self.type_word(t.number, ROW_DEPTH)
        if number < 0 or (
            t is not ANYREF and self.type_word(number, ROW_ANCESTORS + depth) != t.number
        ):
            raise Violation(f"pc {self.pc}: operand {word:#x} is no {t}")
        self.conforming.add((number, t.number))

    def prepared_place(self) -> int:
        return self.control.prepared

    def prepared_bytes(self) -> int:
        return self.control.prepared_bytes

    def clear_prepared(self) -> None:
        self.changed = True
        self.control.prepared = 0

    def _elements(self, place: int, offset: int) -> int:
        """The address of an element."""
        return (self.control.objects + place + offset) & I64.mask

    def element_load(self, bytes_: int, place: int, offset: int) -> int:
        return _load(self._elements(place, offset), bytes_)

    def element_store(self, bytes_: int, place: int, offset: int, value: int) -> None:
        self.changed = True
        _store(self._elements(place, offset), bytes_, value)

    def update_element(
        self, kind: Atomic, bytes_: int, place: int, offset: int, operand: int
    ) -> int:
        t = I64 if bytes_ == WORD_BYTES else I32
        old = self.element_load(bytes_, place, offset)
        self.element_store(bytes_, place, offset, updated(self, t, kind, old, operand & t.mask))
        return old

    def compare_exchange_element(
        self, bytes_: int, place: int, offset: int, expected: int, value: int
    ) -> int:
        old = self.element_load(bytes_, place, offset)
        if old == expected & ((1 << 8 * bytes_) - 1):
            self.element_store(bytes_, place, offset, value)
        return old

    def fill_elements(self, bytes_: int, place: int, offset: int, count: int, value: int) -> None:
        self.changed = True
        low = (value & ((1 << 8 * bytes_) - 1)).to_bytes(bytes_, "little")
        ctypes.memmove(self._elements(place, offset), low * count, bytes_ * count)

    def move_elements(
        self, to_place: int, to_offset: int, from_place: int, from_offset: int, size: int
    ) -> None:
        self.changed = True
        source = self._elements(from_place, from_offset)
        ctypes.memmove(self._elements(to_place, to_offset), source, size)

    def elements_from_heap(self, place: int, offset: int, address: int, size: int) -> None:
        self._check_heap(size, address)
        self.changed = True
        content = bytes(self.memory.heap[address : address + size])
        ctypes.memmove(self._elements(place, offset), content, size)

    def elements_to_heap(self, address: int, place: int, offset: int, size: int) -> None:
        self._check_heap(size, address)
        self.changed = True
        content = ctypes.string_at(self._elements(place, offset), size)
        self.memory.heap[address : address + size] = content

    def _check_heap(self, bytes_: int, address: int) -> None:
        if not 0 <= address <= self.control.hp - bytes_:
            raise Violation(f"pc {self.pc}: heap access at {address} past {self.control.hp}")

    def type_word(self, type_: int, word: int) -> int:
        return _load(self.control.types + WORD_BYTES * (ROW_WORDS * type_ + word), WORD_BYTES)

    def pop_words(self, count: int) -> int:
        self.sp -= count
        return WORD_BYTES * self.sp


def _load(address: int, size: int) -> int:
    return int.from_bytes(ctypes.string_at(address, size), "little")


def _store(address: int, size: int, value: int) -> None:
    ctypes.memmove(address, (value & ((1 << 8 * size) - 1)).to_bytes(size, "little"), size)
