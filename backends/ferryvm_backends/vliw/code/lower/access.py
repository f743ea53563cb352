# SPDX-License-Identifier: Apache-2.0
"""Operations that read or change the machine's state without leaving, and those that the machine
lacks."""

from __future__ import annotations

from collections.abc import Mapping

from ferryvm.ir import footprint
from ferryvm.ir.graph import Operation, Value
from ferryvm.ir.operation import element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.type import I64, WORD_BYTES, Type
from ferryvm.machine.control import DESCRIPTOR_WORDS
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.operation import ContextPart, Operand, Segment


class Access:
    """Lowers operations that affect memory only."""

    def __init__(
        self,
        emission: Emission,
        footprints: Mapping[Operation, footprint.Footprint],
        offsets: Mapping[Value, int],
    ) -> None:
        """`offsets`: constants that are added to addresses at their accesses."""
        self.emission, self._footprints, self._offsets = emission, footprints, offsets

    def do_wrap(self, operation: Operation, a: Operand) -> Operand:
        value = operation.arguments[0]
        if isinstance(value, Operation) and _loaded_bytes(value) <= 4:
            return a  # a register has zeros above it already
        return self.emission.compute("wrap", (), (a,))

    def do_boolean_to_i32(self, operation: Operation, p: Operand) -> Operand:
        return self.emission.compute("select", (), (p, 1, 0))

    def do_canonical(self, operation: Operation, a: Operand) -> Operand:
        return self.emission.canonical(operation.fact(0, Type), operation.arguments[0], a)

    def do_canonicalise(self, operation: Operation, *operands: Operand) -> None:
        t = operation.fact(0, Type)
        given = operation.arguments
        pairs = zip(given[::2], operands[::2], given[1::2], operands[1::2], strict=True)
        for where, address, value, bits in pairs:
            seen = self.emission.canonical(t, value, bits)
            if seen is not bits:
                self.emission.store(Segment.HEAP, address, self._offset(where), seen, t.bits // 8)

    def do_word(self, operation: Operation) -> Operand:
        return self.emission.load(
            Segment.STACK, self.emission.frame, WORD_BYTES * operation.fact(0, int)
        )

    def do_result(self, operation: Operation) -> Operand:
        return self.do_word(operation)

    def _in_context(
        self, operation: Operation, array: Operand, index: Operand
    ) -> tuple[Operand, int, int, ContextPart]:
        """The address of an element, what its access adds, its bytes, and the array."""
        size = operation.fact(0, Type).bits // 8
        part = ContextPart(operation.fact(1, int), operation.fact(2, int))
        more = self._offset(operation.arguments[0])
        if isinstance(index, int):
            return array, more + size * index, size, part
        distance = self.emission.compute("shl", (I64,), (index, size.bit_length() - 1))
        return self.emission.compute("add", (I64,), (array, distance)), more, size, part

    def do_context_load(self, operation: Operation, array: Operand, index: Operand) -> Operand:
        address, more, size, part = self._in_context(operation, array, index)
        return self.emission.load(Segment.STACK, address, more, size, None, part)

    def do_context_store(
        self, operation: Operation, array: Operand, index: Operand, value: Operand
    ) -> None:
        address, more, size, part = self._in_context(operation, array, index)
        self.emission.store(Segment.STACK, address, more, value, size, None, part)

    def do_begin_group(self, _operation: Operation) -> None:
        """Exits write all words of their frames."""

    def do_bounded(self, _operation: Operation) -> None:
        """Such a loop does not poll."""

    def do_static(self, operation: Operation) -> Operand:
        return self.emission.load(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int))

    def do_set_static(self, operation: Operation, value: Operand) -> None:
        self.emission.store(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int), value)

    def do_static_at(self, operation: Operation, index: Operand) -> Operand:
        return self.emission.load(
            Segment.STATICS, self.emission.compute("shl", (I64,), (index, 3)), 0
        )

    def do_set_static_at(self, operation: Operation, index: Operand, value: Operand) -> None:
        self.emission.store(
            Segment.STATICS, self.emission.compute("shl", (I64,), (index, 3)), 0, value
        )

    def do_heap_load(self, operation: Operation, address: Operand) -> Operand:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        return self.emission.load(
            Segment.HEAP, address, offset, size, self._footprints.get(operation)
        )

    def do_heap_store(self, operation: Operation, address: Operand, value: Operand) -> None:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        self.emission.store(
            Segment.HEAP, address, offset, value, size, self._footprints.get(operation)
        )

    def _offset(self, address: Value) -> int:
        """Constant offset of an access."""
        return self._offsets.get(address, 0)

    def do_heap_pointer(self, operation: Operation) -> Operand:
        return self.emission.read_field("hp")

    def do_set_heap_pointer(self, operation: Operation, value: Operand) -> None:
        self.emission.write_field("hp", value)

    def do_heap_capacity(self, operation: Operation) -> Operand:
        return self.emission.read_field("heap_capacity")

    def do_frame(self, operation: Operation) -> Operand:
        return self.emission.frame

    def do_stack_limit(self, operation: Operation) -> Operand:
        end, start = self.emission.read_field("stack_end"), self.emission.read_field("stack")
        return self.emission.compute("sub", (I64,), (end, start))

    def do_function_field(self, operation: Operation, number: Operand) -> Operand:
        address = self.emission.compute("mul", (I64,), (number, WORD_BYTES * DESCRIPTOR_WORDS))
        return self.emission.load(Segment.FUNCTIONS, address, WORD_BYTES * operation.fact(0, int))

    def do_table_function(self, operation: Operation, index: Operand) -> Operand:
        return self.emission.load(
            Segment.TABLE, self.emission.compute("shl", (I64,), (index, 3)), 0
        )


def _loaded_bytes(operation: Operation) -> int:
    """Bytes that an operation loads and extends with zeros; a word for any other one."""
    static = operation.static
    if operation.name == "heap_load":
        return operation.fact(0, int)
    if operation.name == "element_load" and isinstance(static[0], Element | int):
        return element_bytes(static[0])
    return WORD_BYTES
