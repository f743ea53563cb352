# SPDX-License-Identifier: Apache-2.0
"""Types of arrays as generated code accesses them."""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Reference, Type, ValueType
from ferryvm.skeleton.writer import Writer


@record.dataclass(frozen=True)
class ArrayType:
    """A type of arrays: `reference` is to the arrays, `element` their element kind, or the type of
    the references that they have."""

    reference: Reference
    element: Element | Reference

    @classmethod
    def of(cls, element: Element) -> ArrayType:
        """Arrays of numbers."""
        return cls(element.array, element)

    def __str__(self) -> str:
        return str(self.reference)

    @property
    def is_narrow(self) -> bool:
        """True for integers of fewer than 64 bits that are no i32: their values are i64, extended
        by the sign of the kind."""
        narrow = {Element.I8, Element.U8, Element.I16, Element.U16, Element.U32}
        return self.element in narrow

    @property
    def value(self) -> ValueType:
        """The type of an element as a value."""
        if isinstance(self.element, Reference):
            return self.element
        return I64 if self.is_narrow else self.element.type

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
        """( length -- array ), all zero or null."""
        self._access(writer, "new_default")


OF_VALUE: dict[Type, ArrayType] = {
    I32: ArrayType.of(Element.I32),
    I64: ArrayType.of(Element.I64),
    F32: ArrayType.of(Element.F32),
    F64: ArrayType.of(Element.F64),
}
"""Arrays whose elements are the values of a type."""
