# SPDX-License-Identifier: Apache-2.0
"""Types of arrays as generated code accesses them."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm import record
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Reference, Type, ValueType
from ferryvm.skeleton.writer import Push, Writer


@record.dataclass(frozen=True)
class ArrayType:
    """A type of arrays: `reference` is to the arrays, `element` their element kind, or the type of
    the references that they have."""

    reference: Reference
    element: Element | Reference
    is_pair: bool = False
    """True for arrays of pairs, such as complex numbers, whose parts are neighbours."""
    is_range: bool = False
    """True for numbers that are computed where they are used: the array has start, step and count
    of them, and is only read."""

    @classmethod
    def of(cls, element: Element) -> ArrayType:
        """Arrays of numbers."""
        return cls(element.array, element)

    def __str__(self) -> str:
        return f"{self.reference}{' of pairs' * self.is_pair}{' of a range' * self.is_range}"

    @property
    def is_narrow(self) -> bool:
        """True for integers of fewer than 64 bits that are no i32: their values are i64, extended
        by the sign of the kind."""
        narrow = {Element.I8, Element.U8, Element.I16, Element.U16, Element.U32}
        return self.element in narrow

    @property
    def value(self) -> ValueType:
        """The type of an element as a value; of a pair that of each part."""
        if isinstance(self.element, Reference):
            return self.element
        return I64 if self.is_narrow else self.element.type

    @property
    def paired(self) -> ArrayType:
        """Arrays of pairs of the elements of this one."""
        return ArrayType(self.reference, self.element, True)

    @property
    def values(self) -> tuple[ValueType, ...]:
        """The types of the values of an element: two for a pair."""
        return (self.value,) * (1 + self.is_pair)

    def _access(self, writer: Writer, verb: str) -> None:
        if isinstance(self.element, Reference):
            writer.emit(f"array.{verb}_ref", self.reference.number)
        else:
            writer.emit(f"array.{verb}_{self.element}")

    def load(self, writer: Writer, value: ValueType | None = None) -> None:
        """( array index -- value ), of the type `value`: i32 is possible for narrow integers."""
        self._access(writer, "get")
        if self.is_narrow and value is not I32:
            assert isinstance(self.element, Element)
            sign = "s" if self.element.is_signed else "u"
            writer.emit(f"i64.extend_i32_{sign}")

    def store(self, writer: Writer, value: ValueType | None = None) -> None:
        """( array index value -- ), of the type `value`: i32 is possible for narrow integers."""
        if self.is_narrow and value is not I32:
            writer.emit("i32.wrap_i64")
        self._access(writer, "set")

    def make(self, writer: Writer) -> None:
        """( count -- array ) of so many elements, all zero or null."""
        if self.is_pair:
            writer.i64(1)
            writer.emit("i64.shl")
        self._access(writer, "new_default")

    def push_count(self, writer: Writer, array: int) -> None:
        """Push the number of elements of the array in a local."""
        if self.is_range:
            self._push_part(writer, array, 2)
            return
        writer.get(array)
        writer.emit("array.length")
        if self.is_pair:
            writer.i64(1)
            writer.emit("i64.shr_u")

    def push_element(self, writer: Writer, array: int, index: Push) -> None:
        """Push the values of the element of the array in a local whose number is pushed by
        `index`."""
        if self.is_range:
            self._push_part(writer, array, 0)
            index()
            self._push_part(writer, array, 1)
            writer.emit("i64.mul")
            writer.emit("i64.add")
            return
        for part in range(len(self.values)):
            self._push_place(writer, array, index, part)
            self.load(writer)

    def set_element(self, writer: Writer, array: int, index: Push, values: Sequence[int]) -> None:
        """Store locals as the element of an array; the others are as of `push_element`."""
        for part, value in enumerate(values):
            self._push_place(writer, array, index, part)
            writer.get(value)
            self.store(writer)

    def _push_part(self, writer: Writer, array: int, number: int) -> None:
        writer.get(array)
        writer.i64(number)
        self._access(writer, "get")

    def _push_place(self, writer: Writer, array: int, index: Push, part: int) -> None:
        writer.get(array)
        index()
        if self.is_pair:
            writer.i64(1)
            writer.emit("i64.shl")
        if part:
            writer.i64(part)
            writer.emit("i64.add")


OF_VALUE: dict[Type, ArrayType] = {
    I32: ArrayType.of(Element.I32),
    I64: ArrayType.of(Element.I64),
    F32: ArrayType.of(Element.F32),
    F64: ArrayType.of(Element.F64),
}
"""Arrays whose elements are the values of a type."""

OF_RANGE = ArrayType(Element.I64.array, Element.I64, is_range=True)
"""Ranges of numbers of i64."""


def of_values(array: ArrayType) -> ArrayType:
    """The arrays whose elements are the values of those of other arrays of numbers."""
    assert isinstance(array.value, Type)
    of_value = OF_VALUE[array.value]
    return of_value.paired if array.is_pair else of_value
