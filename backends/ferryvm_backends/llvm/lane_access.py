# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of lanes: of consecutive elements as vectors, of others by each lane."""

from __future__ import annotations

from ferryvm.ir.graph import Operation
from ferryvm.ir.operation import element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.object import STRUCT_HEADER_BYTES
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, WORD, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.access import Access
from ferryvm_backends.llvm.context import INT32
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.lane_arithmetic import LaneArithmetic


class LaneAccess:
    """Lowers them."""

    def __init__(self, function: FunctionContext, arithmetic: LaneArithmetic) -> None:
        self.function, self.arithmetic = function, arithmetic
        self.builder, self.storage = function.builder, function.storage
        self.lanes = arithmetic.lanes
        self._context = Access(function)

    def _vector(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType(element, self.lanes)

    @staticmethod
    def _access(operation: Operation) -> tuple[int, str]:
        """Bytes of an element, and the part of memory that it is in."""
        elements = operation.static[0]
        assert isinstance(elements, Element | int)
        return element_bytes(elements), f"elements {elements}"

    def _call(self, name: str, result: ir.Type, parameters: list[ir.Value], part: str) -> ir.Value:
        types = [each.type for each in parameters]
        function = self.builder.module.intrinsic(name, result, types)
        return self.builder.call(function, parameters, metadata=self.storage.tag(part))

    def _masked(self, names: tuple[str, str], where: ir.Value, size: int) -> str:
        """LLVM's function for accesses to one place and those behind it, or to a place of each
        lane; `names`: of the two."""
        is_each = isinstance(where.type, ir.VectorType)
        pointer = f"v{self.lanes}p0" if is_each else "p0"
        return f"llvm.masked.{names[is_each]}.v{self.lanes}i{8 * size}.{pointer}"

    # --- consecutive elements ---------------------------------------------------------------

    def elements(self, place: ir.Value, offset: ir.Value) -> ir.Value:
        """A pointer to elements."""
        return self.storage.offset(self.storage.offset(self.function.objects, place), offset)

    def do_load_consecutive(
        self, operation: Operation, mask: ir.Value, place: ir.Value, offset: ir.Value
    ) -> ir.Value:
        return self._load(self.elements(place, offset), mask, *self._access(operation))

    def _load(
        self, where: ir.Value, mask: ir.Value, size: int, part: str, align: int = 0
    ) -> ir.Value:
        kind = self._vector(ir.IntType(8 * size))
        aligned, nothing = ir.Constant(INT32, align or size), ir.Constant(kind, None)
        arguments = [where, aligned, self.arithmetic.vector(mask), nothing]
        name = self._masked(("load", "gather"), where, size)
        return self._wide(self._call(name, kind, arguments, part), size)

    def do_store_consecutive(
        self,
        operation: Operation,
        mask: ir.Value,
        place: ir.Value,
        offset: ir.Value,
        value: ir.Value,
    ) -> None:
        self._store(value, self.elements(place, offset), mask, *self._access(operation))

    def _store(
        self,
        value: ir.Value,
        where: ir.Value,
        mask: ir.Value,
        size: int,
        part: str,
        align: int = 0,
    ) -> None:
        aligned = ir.Constant(INT32, align or size)
        arguments = [self._narrow(value, size), where, aligned, self.arithmetic.vector(mask)]
        name = self._masked(("store", "scatter"), where, size)
        self._call(name, ir.VoidType(), arguments, part)

    # --- each lane for itself ---------------------------------------------------------------

    def each(self, *parts: ir.Value) -> ir.Value:
        """Pointers into the space of objects: sums of these."""
        address = self.builder.ptrtoint(self.function.objects, WORD)
        for part in parts:
            if isinstance(address.type, ir.VectorType) or isinstance(part.type, ir.VectorType):
                address, part = self.arithmetic.vector(address), self.arithmetic.vector(part)
            address = self.builder.add(address, part)
        return self.builder.inttoptr(self.arithmetic.vector(address), self._vector(POINTER))

    def do_load_each(
        self, operation: Operation, mask: ir.Value, place: ir.Value, offset: ir.Value
    ) -> ir.Value:
        return self._load(self.each(place, offset), mask, *self._access(operation))

    def do_store_each(
        self,
        operation: Operation,
        mask: ir.Value,
        place: ir.Value,
        offset: ir.Value,
        value: ir.Value,
    ) -> None:
        self._store(value, self.each(place, offset), mask, *self._access(operation))

    def do_header_each(self, operation: Operation, mask: ir.Value, reference: ir.Value) -> ir.Value:
        where = self.each(word(WORD_BYTES * operation.fact(0, int)), reference)
        return self._load(where, mask, WORD_BYTES, "header")

    # --- the heap ---------------------------------------------------------------------------

    def _heap(self, address: ir.Value) -> ir.Value:
        """Pointers into the heap."""
        base = self.arithmetic.vector(self.builder.ptrtoint(self.function.heap, WORD))
        where = self.builder.add(base, self.arithmetic.vector(address))
        return self.builder.inttoptr(where, self._vector(POINTER))

    def do_heap_load_each(
        self, operation: Operation, mask: ir.Value, address: ir.Value
    ) -> ir.Value:
        size = operation.fact(0, int)
        return self._load(self._heap(address), mask, size, "heap", align=1)

    def do_heap_store_each(
        self, operation: Operation, mask: ir.Value, address: ir.Value, value: ir.Value
    ) -> None:
        size = operation.fact(0, int)
        self._store(value, self._heap(address), mask, size, "heap", align=1)

    def do_heap_load_consecutive(
        self, operation: Operation, mask: ir.Value, address: ir.Value
    ) -> ir.Value:
        where = self.storage.offset(self.function.heap, address)
        return self._load(where, mask, operation.fact(0, int), "heap", align=1)

    def do_heap_store_consecutive(
        self, operation: Operation, mask: ir.Value, address: ir.Value, value: ir.Value
    ) -> None:
        where = self.storage.offset(self.function.heap, address)
        self._store(value, where, mask, operation.fact(0, int), "heap", align=1)

    # --- context arrays of groups -----------------------------------------------------------

    def do_context_load_lanes(
        self, operation: Operation, array: ir.Value, index: ir.Value, mask: ir.Value
    ) -> ir.Value:
        t = operation.fact(0, Type)
        kind = self._vector(LLVM_TYPE[t])
        where = self._context.element(operation, array, index)
        name = f"llvm.masked.load.v{self.lanes}{_suffix(t)}.p0"
        aligned = ir.Constant(INT32, t.bits // 8)
        arguments = [where, aligned, self.arithmetic.vector(mask), ir.Constant(kind, None)]
        return self._call(name, kind, arguments, "context")

    def do_context_store_lanes(
        self,
        operation: Operation,
        array: ir.Value,
        index: ir.Value,
        value: ir.Value,
        mask: ir.Value,
    ) -> None:
        t = operation.fact(0, Type)
        where = self._context.element(operation, array, index)
        name = f"llvm.masked.store.v{self.lanes}{_suffix(t)}.p0"
        aligned = ir.Constant(INT32, t.bits // 8)
        values = self.arithmetic.vector(value)
        arguments = [values, where, aligned, self.arithmetic.vector(mask)]
        self._call(name, ir.VoidType(), arguments, "context")

    # --- fields -----------------------------------------------------------------------------

    def _field(self, operation: Operation, reference: ir.Value) -> tuple[ir.Value, str]:
        number, field = operation.fact(0, int), operation.fact(1, int)
        where = self.each(word(STRUCT_HEADER_BYTES + WORD_BYTES * field), reference)
        return where, f"field {number} {field}"

    def do_field_each(self, operation: Operation, mask: ir.Value, reference: ir.Value) -> ir.Value:
        where, part = self._field(operation, reference)
        return self._load(where, mask, WORD_BYTES, part)

    def do_field_store_each(
        self, operation: Operation, mask: ir.Value, reference: ir.Value, value: ir.Value
    ) -> None:
        where, part = self._field(operation, reference)
        self._store(value, where, mask, WORD_BYTES, part)

    # --- words ------------------------------------------------------------------------------

    def _wide(self, loaded: ir.Value, size: int) -> ir.Value:
        return self.builder.zext(loaded, self._vector(WORD)) if size < WORD_BYTES else loaded

    def _narrow(self, value: ir.Value, size: int) -> ir.Value:
        value = self.arithmetic.vector(value)
        if size == WORD_BYTES:
            return value
        return self.builder.trunc(value, self._vector(ir.IntType(8 * size)))


def _suffix(t: Type) -> str:
    """LLVM's name of a type in names of functions."""
    return f"{'f' if t.is_float else 'i'}{t.bits}"
