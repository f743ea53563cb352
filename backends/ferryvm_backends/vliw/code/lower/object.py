# SPDX-License-Identifier: Apache-2.0
"""Operations on objects: headers, fields, elements, and the registers of their space.

An address of elements is the sum of the array's place and an offset; the pass `element_address` has
made it one value where it could. Each access names the *part* of the object space that it accesses:
a word of headers, a field by the type that declares it, or the elements of a kind. Different parts
never overlap.

Instructions on many elements become loops of one block, without polls: they cannot be interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ferryvm.ir import footprint
from ferryvm.ir.graph import Operation, Value
from ferryvm.ir.operation import element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.object import ROW_WORDS, STRUCT_HEADER_BYTES
from ferryvm.isa.type import I32, I64, WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.lower.side_exit import SideExits
from ferryvm_backends.vliw.code.operation import (
    ElementPart,
    FieldPart,
    HeaderPart,
    MachineBlock,
    MachineOperation,
    Operand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind

_ROW_SHIFT = (WORD_BYTES * ROW_WORDS).bit_length() - 1

_COMPUTED = {Atomic.ADD: "add", Atomic.AND: "bit_and", Atomic.OR: "bit_or"}
_COMPARED = {
    Atomic.MIN_S: Condition.LT_S,
    Atomic.MIN_U: Condition.LT_U,
    Atomic.MAX_S: Condition.GT_S,
    Atomic.MAX_U: Condition.GT_U,
}


class _Bytes(NamedTuple):
    """Elements, or bytes of the heap, that a loop accesses one after another."""

    segment: Segment
    first: Operand
    """The address of the first byte."""
    part: ElementPart | None
    step: int
    """Bytes of one access; less than 0 if the last ones come first."""
    before: int = 0
    """Added to the address of an access."""


class Objects:
    """Lowers operations on objects."""

    def __init__(
        self,
        emission: Emission,
        exits: SideExits,
        footprints: Mapping[Operation, footprint.Footprint],
        offsets: Mapping[Value, int],
    ) -> None:
        """`offsets`: constants that are added to addresses at their accesses."""
        self.emission, self.exits = emission, exits
        self._footprints, self._offsets = footprints, offsets

    # --- registers and types ----------------------------------------------------------------

    def do_object_top(self, operation: Operation) -> Operand:
        return self.emission.read_field("object_top")

    def do_set_object_top(self, operation: Operation, value: Operand) -> None:
        self.emission.write_field("object_top", value)

    def do_object_end(self, operation: Operation) -> Operand:
        return self.emission.read_field("object_end")

    def do_prepared_place(self, operation: Operation) -> Operand:
        return self.emission.read_field("prepared")

    def do_prepared_bytes(self, operation: Operation) -> Operand:
        return self.emission.read_field("prepared_bytes")

    def do_clear_prepared(self, operation: Operation) -> None:
        self.emission.write_field("prepared", 0)

    def do_allocate_if(
        self, operation: Operation, p: Operand, wanted: Operand, type_: Operand
    ) -> None:
        self.exits.leave_if(operation, p, Status.ALLOCATE, wanted=wanted, wanted_type=type_)

    def do_type_word(self, operation: Operation, type_: Operand, number: Operand) -> Operand:
        row = self._shifted(type_, _ROW_SHIFT)
        if isinstance(number, int):
            return self.emission.load(Segment.TYPES, row, WORD_BYTES * number)
        word = self._shifted(number, WORD_BYTES.bit_length() - 1)
        return self.emission.load(Segment.TYPES, self._sum(row, word), 0)

    def do_cast(self, operation: Operation, reference: Operand) -> Operand:
        return reference

    def _shifted(self, operand: Operand, bits: int) -> Operand:
        if isinstance(operand, int):
            return operand << bits & I64.mask
        return self.emission.compute("shl", (I64,), (operand, bits)) if bits else operand

    def _sum(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return a + b & I64.mask
        if 0 in (a, b):
            return b if a == 0 else a
        return self.emission.compute("add", (I64,), (a, b))

    # --- headers and fields -----------------------------------------------------------------

    def do_header_word(self, operation: Operation, reference: Operand) -> Operand:
        word = operation.fact(0, int)
        return self._load(reference, WORD_BYTES * word, WORD_BYTES, HeaderPart(word))

    def do_set_header_word(self, operation: Operation, reference: Operand, value: Operand) -> None:
        word = operation.fact(0, int)
        self._store(reference, WORD_BYTES * word, value, WORD_BYTES, HeaderPart(word))

    def do_field_load(self, operation: Operation, reference: Operand) -> Operand:
        part = FieldPart(operation.fact(0, int), operation.fact(1, int))
        return self._load(reference, _field_offset(part), WORD_BYTES, part)

    def do_field_store(self, operation: Operation, reference: Operand, value: Operand) -> None:
        part = FieldPart(operation.fact(0, int), operation.fact(1, int))
        self._store(reference, _field_offset(part), value, WORD_BYTES, part)

    def _load(
        self,
        address: Operand,
        offset: int,
        size: int,
        part: HeaderPart | FieldPart | ElementPart,
        known: footprint.Footprint | None = None,
    ) -> Register:
        return self.emission.load(Segment.OBJECTS, address, offset, size, known, part)

    def _store(
        self,
        address: Operand,
        offset: int,
        value: Operand,
        size: int,
        part: HeaderPart | FieldPart | ElementPart,
        known: footprint.Footprint | None = None,
    ) -> None:
        self.emission.store(Segment.OBJECTS, address, offset, value, size, known, part)

    # --- elements ---------------------------------------------------------------------------

    def do_element_load(self, operation: Operation, place: Operand, offset: Operand) -> Operand:
        address, more = self._address(operation, place, offset)
        part = _part(operation)
        return self._load(address, more, part.bytes, part, self._footprints.get(operation))

    def do_element_store(
        self, operation: Operation, place: Operand, offset: Operand, value: Operand
    ) -> None:
        address, more = self._address(operation, place, offset)
        part = _part(operation)
        self._store(address, more, value, part.bytes, part, self._footprints.get(operation))

    def do_update_element(
        self, operation: Operation, place: Operand, offset: Operand, operand: Operand
    ) -> Operand:
        """Nothing runs beside the code, so an update is a load and a store."""
        kind, old = operation.fact(1, Atomic), self.do_element_load(operation, place, offset)
        t = I32 if _part(operation).bytes < WORD_BYTES else I64
        if kind is Atomic.EXCHANGE:
            new = operand
        elif kind in _COMPARED:
            is_new = self.emission.compute("compare", (t, _COMPARED[kind]), (operand, old))
            new = self.emission.compute("select", (), (is_new, operand, old))
        else:
            new = self.emission.compute(_COMPUTED[kind], (t,), (old, operand))
        self.do_element_store(operation, place, offset, new)
        return old

    def do_compare_exchange_element(
        self,
        operation: Operation,
        place: Operand,
        offset: Operand,
        expected: Operand,
        value: Operand,
    ) -> Operand:
        old = self.do_element_load(operation, place, offset)
        is_expected = self.emission.compute("compare", (I64, Condition.EQ), (old, expected))
        new = self.emission.compute("select", (), (is_expected, value, old))
        self.do_element_store(operation, place, offset, new)
        return old

    def do_canonicalise_elements(self, operation: Operation, *operands: Operand) -> None:
        part, t = _part(operation), operation.fact(0, Element).type
        given = operation.arguments
        for first in range(0, len(given), 3):
            bits = operands[first + 2]
            seen = self.emission.canonical(t, given[first + 2], bits)
            if seen is not bits:
                address = self._sum(operands[first], operands[first + 1])
                more = self._offsets.get(given[first], 0)
                self._store(address, more, seen, part.bytes, part)

    def _address(
        self, operation: Operation, place: Operand, offset: Operand
    ) -> tuple[Operand, int]:
        """The address of an element, and the constant that its access adds."""
        return self._sum(place, offset), self._offsets.get(operation.arguments[0], 0)

    def do_fill_elements(
        self, operation: Operation, place: Operand, offset: Operand, count: Operand, value: Operand
    ) -> None:
        part = _part(operation)
        size = self._shifted(count, part.bytes.bit_length() - 1)
        to = _Bytes(Segment.OBJECTS, self._sum(place, offset), part, part.bytes)
        self._loop(to, size, value)

    def do_move_elements(
        self,
        operation: Operation,
        to_place: Operand,
        to_offset: Operand,
        from_place: Operand,
        from_offset: Operand,
        size: Operand,
    ) -> None:
        """As memmove: the last elements first if these lie behind where they come from."""
        part = _part(operation)
        to, from_ = self._sum(to_place, to_offset), self._sum(from_place, from_offset)
        is_behind = self.emission.compute("compare", (I64, Condition.GT_U), (to, from_))
        label = self.emission.code.registers
        down = MachineBlock(f"down{label}")
        done = MachineBlock(f"moved{label}")
        self.emission.emit(MachineOperation("exit", (), (is_behind,), target=down))
        step = part.bytes
        self._copy(
            _Bytes(Segment.OBJECTS, to, part, step),
            _Bytes(Segment.OBJECTS, from_, part, step),
            size,
        )
        self.emission.emit(MachineOperation("jump", target=done))
        self.emission.open(down)
        self._copy(
            _Bytes(Segment.OBJECTS, self._sum(to, size), part, -step, -step),
            _Bytes(Segment.OBJECTS, self._sum(from_, size), part, -step, -step),
            size,
        )
        self.emission.emit(MachineOperation("jump", target=done))
        self.emission.open(done)

    def do_elements_from_heap(
        self, operation: Operation, place: Operand, offset: Operand, address: Operand, size: Operand
    ) -> None:
        part = _part(operation)
        to = _Bytes(Segment.OBJECTS, self._sum(place, offset), part, part.bytes)
        self._copy(to, _Bytes(Segment.HEAP, address, None, part.bytes), size)

    def do_elements_to_heap(
        self, operation: Operation, address: Operand, place: Operand, offset: Operand, size: Operand
    ) -> None:
        part = _part(operation)
        from_ = _Bytes(Segment.OBJECTS, self._sum(place, offset), part, part.bytes)
        self._copy(_Bytes(Segment.HEAP, address, None, part.bytes), from_, size)

    def _copy(self, to: _Bytes, from_: _Bytes, size: Operand) -> None:
        self._loop(to, size, from_)

    def _loop(self, to: _Bytes, size: Operand, source: Operand | _Bytes) -> None:
        """Store one value, or what another place has, into so many bytes."""
        emission = self.emission
        label = emission.code.registers
        loop, done = MachineBlock(f"each{label}"), MachineBlock(f"done{label}")
        at = [emission.code.register(FileKind.INTEGER)]
        wanted = [(at[0], to.first)]
        if isinstance(source, _Bytes):
            at.append(emission.code.register(FileKind.INTEGER))
            wanted.append((at[1], source.first))
        last = emission.compute("sub" if to.step < 0 else "add", (I64,), (to.first, size))
        is_none = emission.compute("compare", (I64, Condition.EQ), (size, 0))
        emission.emit(MachineOperation("exit", (), (is_none,), target=done))
        for register, operand in wanted:
            emission.set(register, "move", (), (operand,))
        emission.emit(MachineOperation("jump", target=loop))
        emission.open(loop)
        value = source
        if isinstance(source, _Bytes):
            value = emission.load(
                source.segment, at[1], source.before, abs(source.step), None, source.part
            )
            emission.set(at[1], "add", (I64,), (at[1], source.step & I64.mask))
        assert not isinstance(value, _Bytes)
        emission.store(to.segment, at[0], to.before, value, abs(to.step), None, to.part)
        emission.set(at[0], "add", (I64,), (at[0], to.step & I64.mask))
        is_end = emission.compute("compare", (I64, Condition.EQ), (at[0], last))
        emission.emit(MachineOperation("exit", (), (is_end,), target=done))
        emission.emit(MachineOperation("jump", target=loop))
        emission.open(done)


def _part(operation: Operation) -> ElementPart:
    elements = operation.static[0]
    assert isinstance(elements, Element | int)
    return ElementPart(elements, element_bytes(elements))


def _field_offset(part: FieldPart) -> int:
    return STRUCT_HEADER_BYTES + WORD_BYTES * part.field
