# SPDX-License-Identifier: Apache-2.0
"""Lifting of what instructions do with objects.

A reference is an i64 in the IR: nothing is collected while compiled code runs, and where control
leaves the verifier's stack map says which words are references. Objects are always in memory, so
states do not name them.

Meanings compute offsets; operations name what is there: a word of the header, a field, elements.
So passes and compilers know what cannot overlap. Header words of an object never change once it is
made (but for its flags, which only hosts set), so they are read by an operation without effects.
"""

from __future__ import annotations

import abc

from ferryvm.ir.address import split
from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Constant, FrameState, Operation, Value
from ferryvm.ir.operation import HEADER, PLACE
from ferryvm.ir.variable import Variables
from ferryvm.isa import Immediate, Instruction
from ferryvm.isa.declared_type import StructType, TypeHierarchy
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Emitter
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import ANYREF, I64, WORD_BYTES, Type, as_number

_ELEMENTS = {element.kind: element for element in Element}


class ObjectLifter(Builder, Emitter[Value]):
    """The operations of the emitter protocol on objects, in one instruction after another."""

    variables: Variables
    """Their values at this point."""
    types: TypeHierarchy
    """The reference types of the program."""
    of: Instruction
    """The instruction that is being lifted."""
    immediate: int
    """Its immediate."""
    _fields: list[Value]
    """The operands that a `struct.new` takes."""

    @abc.abstractmethod
    def _here(self) -> FrameState:
        """The state before the instruction."""

    @abc.abstractmethod
    def _check(self, name: str, static: tuple[object, ...], arguments: tuple[Value, ...]) -> None:
        """Append a check, unless it cannot leave."""

    # --- allocation -------------------------------------------------------------------------

    def allocate_if(self, p: Value, wanted: Value, type_: Value) -> None:
        self._check("allocate_if", (), (p, wanted, type_))

    def object_top(self) -> Value:
        return self.emit(Operation("object_top", I64))

    def object_end(self) -> Value:
        return self.invariant("object_end", (), (), I64)

    def set_object_top(self, value: Value) -> None:
        self.emit(Operation("set_object_top", None, (), (value,)))

    def prepared_place(self) -> Value:
        return self.emit(Operation("prepared_place", I64))

    def prepared_bytes(self) -> Value:
        return self.emit(Operation("prepared_bytes", I64))

    def clear_prepared(self) -> None:
        self.emit(Operation("clear_prepared", None))

    def pop_words(self, count: Value) -> Value:
        """The operands become the fields of `object_store_words`; their address is of no use."""
        assert isinstance(count, Constant)
        words = self.variables.words
        first = len(words) - count.bits
        self._fields = words[first:]
        del words[first:]
        return self.constant(I64, 0)

    def cast(self, reference: Value) -> Value:
        """The operand of a cast, found to be of its type: another value, so that nothing that takes
        it for one of the type is moved in front of the check."""
        if isinstance(reference, Constant) or self.immediate == ANYREF.number:
            return reference
        return self.invariant("cast", (self.immediate,), (reference,), I64)

    # --- headers and fields -----------------------------------------------------------------

    def type_word(self, type_: Value, word: Value) -> Value:
        if isinstance(type_, Constant) and isinstance(word, Constant):
            return self.constant(I64, self.types.row(type_.bits)[word.bits])
        return self.invariant("type_word", (), (type_, word), I64)

    def _declared_field(self, number: int, field: int) -> tuple[int, int]:
        """A field with the number of the type that declares it: the same for all its subtypes."""
        for ancestor in self.types.ancestors[number]:
            declared = self.types.declared(ancestor)
            if isinstance(declared, StructType) and field < len(declared.fields):
                return ancestor, field
        raise AssertionError(f"type {number} has no field {field}")  # the verifier has seen to it

    def field_type(self) -> Type:
        """The type of the field that the immediate names, as a number."""
        number, field = field_of(self.immediate)
        declared = self.types.declared(number)
        assert isinstance(declared, StructType)  # the verifier has seen to it
        return as_number(declared.fields[field].type)

    def _place_of(self, offset: Value) -> tuple[Value, int]:
        """The object of an offset in one of its header words, and the number of that word."""
        base, more = split(offset)
        if base is None:
            return self.constant(I64, 0), more // WORD_BYTES
        if not 0 <= more <= WORD_BYTES * PLACE:
            return offset, HEADER
        return base, more // WORD_BYTES

    def object_load(self, bytes_: int, offset: Value) -> Value:
        assert bytes_ == WORD_BYTES
        if self.of.immediate is Immediate.FIELD:
            number, field = field_of(self.immediate)
            reference = self._of_field(offset, field)
            static = self._declared_field(number, field)
            return self.emit(Operation("field_load", I64, static, (reference,)))
        reference, word = self._place_of(offset)
        return self.invariant("header_word", (word,), (reference,), I64)

    def object_store(self, bytes_: int, offset: Value, value: Value) -> None:
        assert bytes_ == WORD_BYTES
        if self.of.immediate is Immediate.FIELD:
            number, field = field_of(self.immediate)
            reference = self._of_field(offset, field)
            self._store_field(reference, number, field, value)
            return
        reference, word = self._place_of(offset)
        self.emit(Operation("set_header_word", None, (word,), (reference, value)))

    def _of_field(self, offset: Value, field: int) -> Value:
        """The struct whose field is at an offset."""
        return self.sub(I64, offset, self.constant(I64, WORD_BYTES * (1 + field)))

    def _store_field(self, reference: Value, number: int, field: int, value: Value) -> None:
        static = self._declared_field(number, field)
        self.emit(Operation("field_store", None, static, (reference, value)))

    def object_store_words(self, offset: Value, address: Value, count: Value) -> None:
        reference = self._of_field(offset, 0)
        for field, value in enumerate(self._fields):
            slot = self.to_slot(value.word_type, value)
            self._store_field(reference, self.immediate, field, slot)

    # --- elements ---------------------------------------------------------------------------

    def _elements(self) -> Element | int:
        """The elements of the instruction's array: a kind, or the type of an array of
        references."""
        if self.of.immediate is Immediate.ARRAY:
            return self.immediate
        return _ELEMENTS[self.of.mnemonic.rpartition("_")[2]]

    def _emit_for_elements(self, name: str, *arguments: Value) -> None:
        self.emit(Operation(name, None, (self._elements(),), arguments))

    def element_load(self, bytes_: int, place: Value, offset: Value) -> Value:
        static = (self._elements(),)
        return self.emit(Operation("element_load", I64, static, (place, offset)))

    def element_store(self, bytes_: int, place: Value, offset: Value, value: Value) -> None:
        self._emit_for_elements("element_store", place, offset, value)

    def update_element(
        self, kind: Atomic, bytes_: int, place: Value, offset: Value, operand: Value
    ) -> Value:
        static = self._elements(), kind
        return self.emit(Operation("update_element", I64, static, (place, offset, operand)))

    def compare_exchange_element(
        self, bytes_: int, place: Value, offset: Value, expected: Value, value: Value
    ) -> Value:
        arguments = place, offset, expected, value
        return self.emit(Operation("compare_exchange_element", I64, (self._elements(),), arguments))

    def fill_elements(
        self, bytes_: int, place: Value, offset: Value, count: Value, value: Value
    ) -> None:
        self._emit_for_elements("fill_elements", place, offset, count, value)

    def move_elements(
        self, to_place: Value, to_offset: Value, from_place: Value, from_offset: Value, size: Value
    ) -> None:
        arguments = to_place, to_offset, from_place, from_offset, size
        self._emit_for_elements("move_elements", *arguments)

    def elements_from_heap(self, place: Value, offset: Value, address: Value, size: Value) -> None:
        self._emit_for_elements("elements_from_heap", place, offset, address, size)

    def elements_to_heap(self, address: Value, place: Value, offset: Value, size: Value) -> None:
        self._emit_for_elements("elements_to_heap", address, place, offset, size)
