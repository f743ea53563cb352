# SPDX-License-Identifier: Apache-2.0
"""Value types of the machine and their bits.

A value is a bit pattern of its type's width, never a host number, so NaN payloads, signed zeros and
wrapped integers move between engines unchanged. In memory every value takes one 64-bit word; a
32-bit value stands in the low half and the high half is zero.
"""

from __future__ import annotations

import enum
import math
import struct

from ferryvm.float_environment import ours

__all__ = [
    "CANONICAL_NAN",
    "F32",
    "F64",
    "I32",
    "I64",
    "WORD_BYTES",
    "Type",
    "format_number",
    "format_value",
    "from_float",
    "signed",
    "to_float",
    "to_python",
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

CANONICAL_NAN = {F32: 0x7FC0_0000, F64: 0x7FF8_0000_0000_0000}
"""The one NaN that arithmetic yields (WebAssembly's deterministic profile)."""


def signed(type_: Type, bits: int) -> int:
    """The two's complement reading of an integer bit pattern."""
    return bits - (1 << type_.bits) if bits >> (type_.bits - 1) else bits


def to_float(type_: Type, bits: int) -> float:
    """The Python number that a float bit pattern represents."""
    if type_ is F64:
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def from_float(type_: Type, value: float) -> int:
    """The bit pattern of `value`, rounded to nearest even; every NaN becomes canonical."""
    if math.isnan(value):
        return CANONICAL_NAN[type_]
    if type_ is F64:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    try:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    except OverflowError:  # rounds past the largest finite f32
        return 0xFF80_0000 if value < 0 else 0x7F80_0000


def to_python(type_: Type, bits: int) -> int | float:
    """The Python number of a bit pattern: signed for integers."""
    if not type_.is_float:
        return signed(type_, bits)
    with ours():
        return to_float(type_, bits)


def format_value(type_: Type, bits: int) -> str:
    """The shortest decimal text that reads back as the same value (`nan` and `inf` for those)."""
    if not type_.is_float:
        return str(signed(type_, bits))
    with ours():
        return format_number(type_, to_float(type_, bits))


def format_number(type_: Type, value: float) -> str:
    """As `format_value`, for the value as a Python number."""
    if not type_.is_float:
        return str(value)
    with ours():  # conversion from and to text is floating-point arithmetic, too
        if type_ is F64 or not math.isfinite(value):
            return repr(value)
        import numpy as np  # f64 has Python's `repr`; f32 needs a shorter text

        return repr(float(str(np.float32(value))))
