# SPDX-License-Identifier: Apache-2.0
"""Element kinds: the numbers that an array can have as its elements, and their array types."""

from __future__ import annotations

import enum

from ferryvm.isa.type import Reference, Type

FIRST_ARRAY = 3
"""The type number of arrays of the first element kind."""


class Element(enum.Enum):
    """Element kinds in the order of their type numbers. `i` is signed and `u` unsigned: a load of
    fewer than 32 bits extends accordingly, a store takes the low bits."""

    I8 = "i8"
    U8 = "u8"
    I16 = "i16"
    U16 = "u16"
    I32 = "i32"
    U32 = "u32"
    I64 = "i64"
    F32 = "f32"
    F64 = "f64"

    kind: str
    """Its name, such as `u8`."""
    bits: int
    """Width of an element in memory: 8, 16, 32 or 64."""
    is_signed: bool
    type: Type
    """The type of an element as an operand."""
    array: Reference
    """The type of arrays of it."""

    def __init__(self, text: str) -> None:
        self.kind = text
        self.bits = int(text[1:])
        self.is_signed = text[0] == "i"
        self.type = Type(f"i{max(self.bits, 32)}") if text[0] in "iu" else Type(text)
        self.array = Reference(FIRST_ARRAY + len(type(self).__members__), f"{text}[]")

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory."""
        return self.bits // 8

    @property
    def shift(self) -> int:
        """Binary logarithm of these bytes."""
        return self.bytes.bit_length() - 1

    def __str__(self) -> str:
        return self.kind
