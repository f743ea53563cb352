# SPDX-License-Identifier: Apache-2.0
"""The part of the emitter protocol that accesses objects, for interpreter handlers.

The base of the object space is loaded from the control block at each access: a collection moves it,
and handlers cache nothing across an exit. An allocation that fits does not leave the handler.
(Copies are loops and not calls of memmove: an object without references to libraries loads faster.)
"""

from __future__ import annotations

import dataclasses

from ferryvm.isa.emitter import Atomic
from ferryvm.isa.object import ARRAY_HEADER_BYTES, ROW_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Ahead, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.atomic import compare_exchange, update
from ferryvm_backends._llvm.handler import BYTE, HandlerBuilder

_ROW_SHIFT = (ROW_WORDS * WORD_BYTES).bit_length() - 1


class ObjectHandlerBuilder(HandlerBuilder):
    """A builder of handlers, with access to objects."""

    # --- allocation -------------------------------------------------------------------------

    def allocate_if(self, p: ir.Value, wanted: ir.Value, type_: ir.Value) -> None:
        with self.builder.if_then(p, likely=False):
            self._take_ahead(wanted)
            self._leave(Status.ALLOCATE, wanted=wanted, wanted_type=type_)

    def _take_ahead(self, wanted: ir.Value) -> None:
        """Run the instruction again if elements for it were prepared ahead, and it has none."""
        builder = self.builder
        elements = builder.sub(wanted, word(ARRAY_HEADER_BYTES))
        address = self._control_field("ahead")
        is_none = builder.icmp_unsigned("==", self.prepared_place(), word(0))
        is_other = builder.icmp_unsigned("!=", self.prepared_bytes(), elements)
        is_there = builder.icmp_unsigned("!=", address, word(0))
        with builder.if_then(builder.and_(is_there, builder.or_(is_none, is_other))):
            ahead = self._pointer(address)
            count = self._load(self._offset(ahead, WORD_BYTES * Ahead.COUNT))
            size = self._load(self._offset(ahead, WORD_BYTES * Ahead.BYTES))
            is_some = builder.icmp_unsigned("!=", count, word(0))
            is_right = builder.icmp_unsigned("==", size, elements)
            with builder.if_then(builder.and_(is_some, is_right)):
                left = builder.sub(count, word(1))
                last = self._offset(ahead, builder.shl(left, word(3)))
                place = self._load(self._offset(last, WORD_BYTES * Ahead.PLACES))
                self._store(left, self._offset(ahead, WORD_BYTES * Ahead.COUNT))
                self._set_control_field("prepared", place)
                self._set_control_field("prepared_bytes", elements)
                sp = self._spill(*self._before)
                self._dispatch(dataclasses.replace(self.registers, ip=self._ip, sp=sp))

    def object_top(self) -> ir.Value:
        return self._control_field("object_top")

    def object_end(self) -> ir.Value:
        return self._control_field("object_end")

    def set_object_top(self, value: ir.Value) -> None:
        self._set_control_field("object_top", value)

    def prepared_place(self) -> ir.Value:
        return self._control_field("prepared")

    def prepared_bytes(self) -> ir.Value:
        return self._control_field("prepared_bytes")

    def clear_prepared(self) -> None:
        self._set_control_field("prepared", word(0))

    def type_word(self, type_: ir.Value, word: ir.Value) -> ir.Value:
        builder = self.builder
        rows = self._pointer(self._load(self._control_address("types"), invariant=True))
        row = self._offset(rows, builder.shl(type_, ir.Constant(WORD, _ROW_SHIFT)))
        at = self._offset(row, builder.shl(word, ir.Constant(WORD, 3)))
        return self._load(at, invariant=True)

    def pop_words(self, count: ir.Value) -> ir.Value:
        self._flush()
        size = self.builder.shl(count, word(3))
        sp = self._offset(self.registers.sp, self.builder.sub(word(0), size))
        self.registers = dataclasses.replace(self.registers, sp=sp)
        return self._address(sp)

    # --- objects and elements ---------------------------------------------------------------

    def _object_address(self, offset: ir.Value) -> ir.Value:
        return self._offset(self._pointer(self._object_base()), offset)

    def _object_base(self) -> ir.Value:
        return self._control_field("objects")

    def _element_address(self, place: ir.Value, offset: ir.Value) -> ir.Value:
        return self._object_address(self.builder.add(place, offset))

    def _load_bytes(self, bytes_: int, address: ir.Value) -> ir.Value:
        return self._widen(self.builder.load(address, align=bytes_, typ=ir.IntType(8 * bytes_)))

    def _widen(self, value: ir.Value) -> ir.Value:
        return self.builder.zext(value, WORD) if value.type.width < WORD.width else value

    def _narrow(self, bytes_: int, value: ir.Value) -> ir.Value:
        narrow = bytes_ < WORD_BYTES
        return self.builder.trunc(value, ir.IntType(8 * bytes_)) if narrow else value

    def object_load(self, bytes_: int, offset: ir.Value) -> ir.Value:
        return self._load_bytes(bytes_, self._object_address(offset))

    def object_store(self, bytes_: int, offset: ir.Value, value: ir.Value) -> None:
        self._store(self._narrow(bytes_, value), self._object_address(offset))

    def object_store_words(self, offset: ir.Value, address: ir.Value, count: ir.Value) -> None:
        to, from_ = self._object_address(offset), self._pointer(address)
        with self._words(count, "fields") as at:
            self._store(self._load(self._offset(from_, at)), self._offset(to, at))

    def element_load(self, bytes_: int, place: ir.Value, offset: ir.Value) -> ir.Value:
        return self._load_bytes(bytes_, self._element_address(place, offset))

    def element_store(
        self, bytes_: int, place: ir.Value, offset: ir.Value, value: ir.Value
    ) -> None:
        self._store(self._narrow(bytes_, value), self._element_address(place, offset))

    def update_element(
        self, kind: Atomic, bytes_: int, place: ir.Value, offset: ir.Value, operand: ir.Value
    ) -> ir.Value:
        narrow, where = self._narrow(bytes_, operand), self._element_address(place, offset)
        return self._widen(update(self.builder, kind, where, narrow))

    def compare_exchange_element(
        self,
        bytes_: int,
        place: ir.Value,
        offset: ir.Value,
        expected: ir.Value,
        value: ir.Value,
    ) -> ir.Value:
        narrow = self._narrow(bytes_, expected), self._narrow(bytes_, value)
        where = self._element_address(place, offset)
        return self._widen(compare_exchange(self.builder, where, *narrow))

    def fill_elements(
        self, bytes_: int, place: ir.Value, offset: ir.Value, count: ir.Value, value: ir.Value
    ) -> None:
        narrow, first = self._narrow(bytes_, value), self._element_address(place, offset)
        shift = word(bytes_.bit_length() - 1)
        with self._iterations(count, "fill") as number:
            self._store(narrow, self._offset(first, self.builder.shl(number, shift)))

    def move_elements(
        self,
        to_place: ir.Value,
        to_offset: ir.Value,
        from_place: ir.Value,
        from_offset: ir.Value,
        size: ir.Value,
    ) -> None:
        builder = self.builder
        to = self._element_address(to_place, to_offset)
        from_ = self._element_address(from_place, from_offset)
        is_up = builder.icmp_unsigned(">", self._address(to), self._address(from_))
        with builder.if_then(is_up):  # the last bytes first
            self._copy(to, from_, size, is_backward=True)
        with builder.if_then(builder.not_(is_up)):
            self._copy(to, from_, size)

    def elements_from_heap(
        self, place: ir.Value, offset: ir.Value, address: ir.Value, size: ir.Value
    ) -> None:
        from_ = self._offset(self.registers.heap, address)
        self._copy(self._element_address(place, offset), from_, size)

    def elements_to_heap(
        self, address: ir.Value, place: ir.Value, offset: ir.Value, size: ir.Value
    ) -> None:
        to = self._offset(self.registers.heap, address)
        self._copy(to, self._element_address(place, offset), size)

    def _copy(
        self, to: ir.Value, from_: ir.Value, size: ir.Value, is_backward: bool = False
    ) -> None:
        """Copy bytes, eight at a time, then those that are left, one at a time."""
        builder = self.builder

        def move(offset: ir.Value, t: ir.Type) -> None:
            loaded = builder.load(self._offset(from_, offset), align=1, typ=t)
            builder.store(loaded, self._offset(to, offset), align=1)

        with self._words(builder.lshr(size, word(3)), "copy") as at:
            end = builder.sub(builder.sub(size, word(WORD_BYTES)), at)
            move(end if is_backward else at, WORD)
        rest = builder.and_(size, word(WORD_BYTES - 1))
        first = word(0) if is_backward else builder.sub(size, rest)
        with self._iterations(rest, "copy.rest") as number:
            last = builder.sub(builder.sub(rest, word(1)), number)
            move(builder.add(first, last if is_backward else number), BYTE)
