# SPDX-License-Identifier: Apache-2.0
"""Value types of the machine and their bits: numbers, and references to objects.

A value is a bit pattern of its type's width, never a host number, so NaN payloads, signed zeros and
wrapped integers move between engines unchanged. In memory every value takes one 64-bit word; a
32-bit value stands in the low half and the high half is zero.
"""

from __future__ import annotations

import enum
import math
import struct
import weakref
from typing import Self

from ferryvm.float_environment import call_in_ours

__all__ = [
    "ANYREF",
    "ARRAYREF",
    "CANONICAL_NAN",
    "F32",
    "F64",
    "FIRST_DECLARED",
    "FRAME_REFERENCES",
    "I31REF",
    "I32",
    "I64",
    "LAUNCH",
    "WORD_BYTES",
    "Reference",
    "Type",
    "ValueType",
    "as_number",
    "format_number",
    "format_value",
    "from_float",
    "signed",
    "to_float",
    "to_python",
    "with_article",
]

WORD_BYTES = 8
"""Bytes of a word: of an operand, a local or a static."""


class Type(enum.Enum):
    """The four value types, under WebAssembly's names."""

    I32 = "i32"
    I64 = "i64"
    F32 = "f32"
    F64 = "f64"

    is_float: bool
    bits: int
    """Width: 32 or 64."""
    mask: int
    """The bit pattern of that width with every bit set."""

    def __init__(self, text: str) -> None:
        self.is_float = text[0] == "f"
        self.bits = int(text[1:])
        self.mask = (1 << self.bits) - 1

    @property
    def integer(self) -> Type:
        """The integer type of the same width."""
        return Type.I32 if self.bits == 32 else Type.I64

    def __str__(self) -> str:
        return str(self.value)

    __hash__ = object.__hash__  # members are singletons, and compilers hash types very often


I32 = Type.I32
"""32-bit integers."""
I64 = Type.I64
"""64-bit integers."""
F32 = Type.F32
"""IEEE 754 binary32."""
F64 = Type.F64
"""IEEE 754 binary64."""


class Reference:
    """The type of references to objects of one type: a word, see `ferryvm.isa.object`.

    There is one object for a number and name, so types are compared with `is`. The number of a type
    that a program declares means that type in this program only.
    """

    __slots__ = ("__weakref__", "name", "number")

    is_float = False
    bits = 64
    mask = Type.I64.mask

    number: int
    """The type number that objects of the type have in their header."""
    name: str
    """Its name in texts, such as `i64[]` or `node`."""

    def __new__(cls, number: int, name: str) -> Self:
        """The type of a number and name."""
        made = super().__new__(cls)
        made.number, made.name = number, name
        return _REFERENCES.setdefault((number, name), made)  # type: ignore[return-value]  # as cls

    @property
    def integer(self) -> Type:
        """The integer type of the same width."""
        return Type.I64

    def __reduce__(self) -> tuple[type[Reference], tuple[int, str]]:
        return Reference, (self.number, self.name)

    def __copy__(self) -> Reference:
        return self

    def __deepcopy__(self, memo: object) -> Reference:
        return self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Reference({self.number}, {self.name!r})"


_REFERENCES: weakref.WeakValueDictionary[tuple[int, str], Reference] = weakref.WeakValueDictionary()

ValueType = Type | Reference
"""The type of an operand, local, static, parameter, result or field."""

ANYREF = Reference(0, "anyref")
"""Any reference."""
I31REF = Reference(1, "i31ref")
"""Integers of 31 bits, without memory."""
ARRAYREF = Reference(2, "arrayref")
"""Arrays of any elements."""

FRAME_REFERENCES = Reference(12, "launch.references")
"""Arrays of the references in frames of a suspended item; `ferryvm.isa.element` has types 3 to 11."""
LAUNCH = Reference(13, "launch.piece")
"""Pieces of a launch, see `ferryvm.isa.launch`. No program can make objects of these two types, or
declare others of their names."""

FIRST_DECLARED = 14
"""The number of the first type that a program declares."""

CANONICAL_NAN = {F32: 0x7FC0_0000, F64: 0x7FF8_0000_0000_0000}
"""The one NaN that arithmetic yields (WebAssembly's deterministic profile)."""


def signed(type_: Type, bits: int) -> int:
    """The two's complement reading of an integer bit pattern."""
    return bits - (1 << type_.bits) if bits >> (type_.bits - 1) else bits


_DOUBLE, _QUAD, _SINGLE, _WORD = map(struct.Struct, ("<d", "<Q", "<f", "<I"))


def to_float(type_: Type, bits: int) -> float:
    """The Python number that a float bit pattern represents."""
    number: float
    if type_ is F64:
        (number,) = _DOUBLE.unpack(_QUAD.pack(bits))
    else:
        (number,) = _SINGLE.unpack(_WORD.pack(bits))
    return number


def from_float(type_: Type, value: float) -> int:
    """The bit pattern of `value`, rounded to nearest even; every NaN becomes canonical."""
    if math.isnan(value):
        return CANONICAL_NAN[type_]
    bits: int
    if type_ is F64:
        (bits,) = _QUAD.unpack(_DOUBLE.pack(value))
        return bits
    try:
        (bits,) = _WORD.unpack(_SINGLE.pack(value))
    except OverflowError:  # rounds past the largest finite f32
        return 0xFF80_0000 if value < 0 else 0x7F80_0000
    return bits


def with_article(name: object) -> str:
    """A type, or its name, behind its article: `an i64`, `a node`."""
    text = str(name)
    is_open = text[:1].lower() in "aeio" or (text[:1] == "f" and text[1:2].isdigit())
    return f"an {text}" if is_open else f"a {text}"


def as_number(type_: ValueType) -> Type:
    """The number type with the bits of a type: itself, or i64 for a reference type."""
    return Type.I64 if isinstance(type_, Reference) else type_


def to_python(type_: Type, bits: int) -> int | float:
    """The Python number of a bit pattern: signed for integers."""
    if not type_.is_float:
        return signed(type_, bits)
    return call_in_ours(to_float, type_, bits)


def format_value(type_: ValueType, bits: int) -> str:
    """The shortest decimal text that reads back as the same value (`nan` and `inf` for those).

    For a reference: `null`, `i31 5`, or its type and the offset of the object, as in `node at 24`.
    """
    if isinstance(type_, Reference):
        if bits & 1:
            return f"i31 {signed(I32, bits & I32.mask) >> 1}"
        return f"{type_} at {bits}" if bits else "null"
    if not type_.is_float:
        return str(signed(type_, bits))
    return call_in_ours(lambda: format_number(type_, to_float(type_, bits)))


def format_number(type_: Type, value: float) -> str:
    """As `format_value`, for the value as a Python number."""
    if not type_.is_float:
        return str(value)
    return call_in_ours(_shortest, type_, value)  # to make a text takes such arithmetic


def _shortest(type_: Type, value: float) -> str:
    if type_ is F64 or not math.isfinite(value):
        return repr(value)
    import numpy as np  # f64 has Python's `repr`; f32 needs a shorter text

    return repr(float(str(np.float32(value))))
