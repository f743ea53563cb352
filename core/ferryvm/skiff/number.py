# SPDX-License-Identifier: Apache-2.0
"""Number literals: their syntax, and the bits of one as a value of a type.

    10   -3   0xff   0b1010   0o17   10i32   0xffi64      integers
    2.5   1e-3   .5   2.5f32   7f64   inf   -inf   nan    floats

Without a suffix the context determines the type.
"""

from __future__ import annotations

import math
import re

from ferryvm import pattern
from ferryvm.isa.type import F32, F64, Type, from_float
from ferryvm.named_tuple import NamedTuple

_INTEGER = re.compile(
    r"(?P<sign>[+-]?)(?:0x(?P<hex>[0-9a-fA-F]+)|0b(?P<bin>[01]+)|0o(?P<oct>[0-7]+)|(?P<dec>[0-9]+))"
    r"(?P<suffix>i32|i64)?"
)
_FLOAT = pattern.lazy(
    r"(?P<value>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf|nan)"
    r"(?P<suffix>f32|f64)?"
)
_NUMERIC = re.compile(r"[+-]?\.?[0-9]")
_NAMED = ("inf", "nan")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_LONGEST = 1000  # characters; Python itself refuses to read integers of more than 4300 digits


class Number(NamedTuple):
    """A literal: an integer, or the text of a float (which is rounded once its type is known)."""

    text: str
    value: int | str
    suffix: Type | None = None
    is_pattern: bool = False
    """True if it is written in base 16, 8 or 2: then it may set the sign bit."""

    @property
    def is_float(self) -> bool:
        """True if it is written as a float."""
        return isinstance(self.value, str)


def looks_numeric(text: str) -> bool:
    """True if an atom can only be a number."""
    return _NUMERIC.match(text) is not None


def parse_number(text: str) -> Number | None:
    """The number that an atom denotes, None if it is not a number."""
    is_candidate = looks_numeric(text) or text.lstrip("+-").startswith(_NAMED)
    if not is_candidate or len(text) > _LONGEST:
        return None
    if match := _INTEGER.fullmatch(text):
        base = next(name for name in _BASES if match[name] is not None)
        value = int(match[base], _BASES[base])
        suffix = Type(match["suffix"]) if match["suffix"] else None
        return Number(text, -value if match["sign"] == "-" else value, suffix, base != "dec")
    if match := _FLOAT.fullmatch(text):
        suffix = Type(match["suffix"]) if match["suffix"] else None
        return Number(text, match["value"], suffix)
    return None


def integer_range(type_: Type, is_pattern: bool) -> tuple[int, int]:
    """Smallest and largest integer that a literal of this type may write."""
    smallest = -(1 << (type_.bits - 1))
    return smallest, type_.mask if is_pattern else type_.mask >> 1


def number_bits(number: Number, type_: Type) -> int | None:
    """The bit pattern of the number, rounded to nearest even for floats; None if out of range."""
    if not type_.is_float:
        assert isinstance(number.value, int)
        smallest, largest = integer_range(type_, number.is_pattern)
        return number.value & type_.mask if smallest <= number.value <= largest else None
    try:
        value = float(number.value)
    except OverflowError:
        return None
    named = isinstance(number.value, str) and number.value.lstrip("+-") in _NAMED
    if type_ is F32 and 1e-50 < abs(value) < math.inf:
        value = _rounded_to_odd(number.value, value)
    bits = from_float(type_, value)
    infinite = 0x7F80_0000 if type_ is F32 else 0x7FF0_0000_0000_0000
    return None if bits & (type_.mask >> 1) == infinite and not named else bits


def _rounded_to_odd(exact: int | str, value: float) -> float:
    """The f64 next to the exact number whose last bit is odd, unless an f64 is exact.

    Rounding it to f32 has the same result as rounding the exact number; rounding the nearest f64
    (double rounding) does not always.
    """
    from fractions import Fraction  # costs milliseconds to load, and f32 literals are rare

    difference = Fraction(exact) - Fraction(value)
    if difference == 0 or from_float(F64, value) & 1:
        return value
    return math.nextafter(value, math.inf if difference > 0 else -math.inf)
