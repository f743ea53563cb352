# SPDX-License-Identifier: Apache-2.0
"""Operations on objects: headers, fields, elements, and the registers of their space.

Type-based alias metadata distinguishes loads and stores: header words, each field, and the elements
of each kind never overlap. So values that a store of elements cannot change are kept in registers,
and a loop over arrays of different kinds is vectorised without a comparison of addresses.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ferryvm.ir.graph import Operation
from ferryvm.ir.operation import element_bytes
from ferryvm.ir.own_array import own_places
from ferryvm.isa.atomic import updated
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.numeric import canonical
from ferryvm.isa.object import ROW_WORDS, STRUCT_HEADER_BYTES
from ferryvm.isa.type import I32, I64, WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, WORD, StraightLineArithmetic, word
from ferryvm_backends._llvm.atomic import compare_exchange, update
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.storage import STREAMED
from ferryvm_backends.llvm.streaming import LINE


class _Stream(NamedTuple):
    """A strip of a loop whose stores stream."""

    line: ir.Value
    """The address of the first one, at a line of the cache."""
    first: ir.Value
    """The number of the strip's first iteration."""
    number: ir.Value
    """The number of an iteration."""


class Objects:
    """Lowers operations on objects."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.builder, self.storage = function, function.builder, function.storage
        self.streams: dict[Operation, _Stream] = {}
        """The streaming stores of loops that are being lowered."""
        self._own = own_places(function.body)
        """The places of elements that no other thread accesses."""

    # --- registers and types ----------------------------------------------------------------

    def do_object_top(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "object_top")

    def do_set_object_top(self, operation: Operation, value: ir.Value) -> None:
        self.storage.set_field(self.function.control, "object_top", value)

    def do_object_end(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "object_end")

    def do_prepared_place(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "prepared")

    def do_prepared_bytes(self, operation: Operation) -> ir.Value:
        return self.storage.field(self.function.control, "prepared_bytes")

    def do_clear_prepared(self, operation: Operation) -> None:
        self.storage.set_field(self.function.control, "prepared", word(0))

    # Without type-based alias metadata: other objects will be at these places.
    def do_release_objects(self, operation: Operation, top: ir.Value) -> None:
        size = self.builder.sub(self.storage.field(self.function.control, "object_top"), top)
        parameters = [POINTER, ir.IntType(8), WORD, ir.IntType(1)]
        clear = self.builder.module.intrinsic("llvm.memset.p0.i64", ir.VoidType(), parameters)
        zero, flag = ir.Constant(ir.IntType(8), 0), ir.Constant(ir.IntType(1), 0)
        start = self.storage.offset(self.function.objects, top)
        self.builder.call(clear, [start, zero, size, flag])
        self.storage.set_field(self.function.control, "object_top", top)

    def do_type_word(self, operation: Operation, type_: ir.Value, number: ir.Value) -> ir.Value:
        rows = self.storage.pointer(self.storage.field(self.function.control, "types"))
        size = (WORD_BYTES * ROW_WORDS).bit_length() - 1
        row = self.storage.offset(rows, self.builder.shl(type_, word(size)))
        where = self.storage.offset(row, self.builder.shl(number, word(3)))
        return self.storage.load(where, "types", fixed=True)

    def do_cast(self, operation: Operation, reference: ir.Value) -> ir.Value:
        return reference

    # --- headers and fields -----------------------------------------------------------------

    def _in_object(self, reference: ir.Value, bytes_: int) -> ir.Value:
        return self.storage.offset(self.storage.offset(self.function.objects, reference), bytes_)

    # Not `fixed`: in code that creates the object, the load must not move above the store.
    def do_header_word(self, operation: Operation, reference: ir.Value) -> ir.Value:
        where = self._in_object(reference, WORD_BYTES * operation.fact(0, int))
        return self.storage.load(where, "header")

    def do_set_header_word(
        self, operation: Operation, reference: ir.Value, value: ir.Value
    ) -> None:
        where = self._in_object(reference, WORD_BYTES * operation.fact(0, int))
        self.storage.store(value, where, "header")

    def _field(self, operation: Operation, reference: ir.Value) -> tuple[ir.Value, str]:
        """The address of a field, and the part of memory that it is."""
        number, field = operation.fact(0, int), operation.fact(1, int)
        where = self._in_object(reference, STRUCT_HEADER_BYTES + WORD_BYTES * field)
        return where, f"field {number} {field}"

    def do_field_load(self, operation: Operation, reference: ir.Value) -> ir.Value:
        return self.storage.load(*self._field(operation, reference))

    def do_field_store(self, operation: Operation, reference: ir.Value, value: ir.Value) -> None:
        self.storage.store(value, *self._field(operation, reference))

    # --- elements ---------------------------------------------------------------------------

    def _elements(self, place: ir.Value, offset: ir.Value) -> ir.Value:
        return self.storage.offset(self.storage.offset(self.function.objects, place), offset)

    def do_element_load(self, operation: Operation, place: ir.Value, offset: ir.Value) -> ir.Value:
        size, part = self._access(operation)
        where, narrow = self._elements(place, offset), ir.IntType(8 * size)
        found = self.storage.load(where, part, narrow, size, scope=self._scope(operation))
        return self._widen(found, size)

    def do_element_store(
        self, operation: Operation, place: ir.Value, offset: ir.Value, value: ir.Value
    ) -> None:
        size, part = self._access(operation)
        where = self._elements(place, offset)
        stream = self.streams.get(operation)
        if stream is not None:
            number = self.builder.sub(stream.number, stream.first)
            where = self.storage.offset(stream.line, self.builder.shl(number, word(3)))
            part += STREAMED
        self.storage.store(self._narrow(value, size), where, part, size, self._scope(operation))

    def begin_stream(
        self, store: Operation, base: ir.Value, first: ir.Value, number: ir.Value
    ) -> None:
        """Begin a strip of streaming stores at a line of the cache, in a form that shows LLVM so.
        `base`: the invariant part of their offsets; `first`: the number of the strip's first
        iteration, `number`: the number of an iteration."""
        offset = self.builder.add(base, self.builder.shl(first, word(3)))
        where = self._elements(self.function.value(store.arguments[0]), offset)
        mask = self.builder.module.intrinsic("llvm.ptrmask.p0.i64", POINTER, [POINTER, WORD])
        line = self.builder.call(mask, [where, word(-LINE)])
        self.streams[store] = _Stream(line, first, number)

    def _scope(self, operation: Operation) -> str:
        """The metadata that tells arrays that this code has made from those that its frame had when
        it was entered, such as a group's tiles from its arguments."""
        match operation.arguments[0]:
            case Operation(name="add", arguments=(Operation(name="object_top"), _)):
                return self.storage.scope("made", "given")
            case Operation(name="header_word", arguments=(Operation(name="word"),)):
                return self.storage.scope("given", "made")
        return ""

    # Without type-based alias metadata: no access of another thread is moved over an update.
    def do_update_element(
        self, operation: Operation, place: ir.Value, offset: ir.Value, operand: ir.Value
    ) -> ir.Value:
        size, part = self._access(operation)
        where, kind = self._elements(place, offset), operation.fact(1, Atomic)
        narrow = self._narrow(operand, size)
        if operation.arguments[0] not in self._own:
            return self._widen(update(self.builder, kind, where, narrow), size)
        t, scope = I64 if size == WORD_BYTES else I32, self._scope(operation)
        old = self.storage.load(where, part, narrow.type, size, scope=scope)
        arithmetic = StraightLineArithmetic(self.builder)
        self.storage.store(updated(arithmetic, t, kind, old, narrow), where, part, size, scope)
        return self._widen(old, size)

    def do_compare_exchange_element(
        self,
        operation: Operation,
        place: ir.Value,
        offset: ir.Value,
        expected: ir.Value,
        value: ir.Value,
    ) -> ir.Value:
        size, _ = self._access(operation)
        narrow = self._narrow(expected, size), self._narrow(value, size)
        where = self._elements(place, offset)
        return self._widen(compare_exchange(self.builder, where, *narrow), size)

    def do_canonicalise_elements(self, operation: Operation, *operands: ir.Value) -> None:
        kind, arithmetic = operation.fact(0, Element), self.function.arithmetic
        values = operands[2::3]
        nans = [arithmetic.compare(kind.type, Condition.NE, value, value) for value in values]
        with self.function.rarely(functools.reduce(arithmetic.any, nans), "nan") as onward:
            for place, offset, value in zip(operands[::3], operands[1::3], values, strict=True):
                where = self._elements(place, offset)
                stored = canonical(arithmetic, kind.type, value)
                self.storage.store(stored, where, f"elements {kind}", kind.bytes)
            self.builder.branch(onward)

    def _widen(self, value: ir.Value, size: int) -> ir.Value:
        return self.builder.zext(value, WORD) if size < WORD_BYTES else value

    def _narrow(self, value: ir.Value, size: int) -> ir.Value:
        return self.builder.trunc(value, ir.IntType(8 * size)) if size < WORD_BYTES else value

    @staticmethod
    def _access(operation: Operation) -> tuple[int, str]:
        """Bytes of an element, and the part of memory that it is in."""
        elements = operation.static[0]
        assert isinstance(elements, Element | int)
        return element_bytes(elements), f"elements {elements}"

    def do_fill_elements(
        self,
        operation: Operation,
        place: ir.Value,
        offset: ir.Value,
        count: ir.Value,
        value: ir.Value,
    ) -> None:
        size, part = self._access(operation)
        first, narrow = self._elements(place, offset), self._narrow(value, size)
        start = self.builder.block
        loop, done = self.function.block("fill"), self.function.block("filled")
        self.builder.cbranch(self.builder.icmp_unsigned("==", count, word(0)), done, loop)
        self.builder.position_at_end(loop)
        number = self.builder.phi(WORD)
        number.add_incoming(word(0), start)
        where = self.storage.offset(first, self.builder.mul(number, word(size)))
        self.storage.store(narrow, where, part, size)
        following = self.builder.add(number, word(1), flags=("nuw",))
        number.add_incoming(following, loop)
        self.builder.cbranch(self.builder.icmp_unsigned("==", following, count), done, loop)
        self.builder.position_at_end(done)

    def do_move_elements(
        self,
        operation: Operation,
        to_place: ir.Value,
        to_offset: ir.Value,
        from_place: ir.Value,
        from_offset: ir.Value,
        size: ir.Value,
    ) -> None:
        source = self._elements(from_place, from_offset)
        self._copy("memmove", self._elements(to_place, to_offset), source, size)

    def do_elements_from_heap(
        self,
        operation: Operation,
        place: ir.Value,
        offset: ir.Value,
        address: ir.Value,
        size: ir.Value,
    ) -> None:
        source = self.storage.offset(self.function.heap, address)
        self._copy("memcpy", self._elements(place, offset), source, size)

    def do_elements_to_heap(
        self,
        operation: Operation,
        address: ir.Value,
        place: ir.Value,
        offset: ir.Value,
        size: ir.Value,
    ) -> None:
        target = self.storage.offset(self.function.heap, address)
        self._copy("memcpy", target, self._elements(place, offset), size)

    def _copy(self, name: str, to: ir.Value, from_: ir.Value, size: ir.Value) -> None:
        types = [POINTER, POINTER, WORD, I1]
        module = self.builder.module
        copy = module.intrinsic(f"llvm.{name}.p0.p0.i64", ir.VoidType(), types)
        self.builder.call(copy, [to, from_, size, ir.Constant(I1, 0)])
