# SPDX-License-Identifier: Apache-2.0
"""The pure operations of the emitter protocol over bit patterns in Python ints.

They are written to be obviously right: integers use Python's own arithmetic; floats use Python's
binary64 where one rounding is provably enough, and exact integers elsewhere.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, F64, Type, from_float, signed, to_float


def _from_integer(t: Type, value: int) -> int:
    """Bits of the float nearest to an integer, ties to even, with one rounding."""
    if t is F64:
        return from_float(F64, float(value))  # Python rounds int to float correctly
    mantissa = 24
    excess = abs(value).bit_length() - mantissa
    if excess > 0:
        # Round to 24 bits here: going through binary64 would round twice.
        quotient, rest = divmod(abs(value), 1 << excess)
        half = 1 << (excess - 1)
        if rest > half or (rest == half and quotient & 1):
            quotient += 1
        value = (quotient << excess) * (1 if value > 0 else -1)
    return from_float(F32, float(value))


def _from_ratio(t: Type, numerator: int, denominator: int) -> int:
    """Bits of the float nearest to a quotient that is not zero, ties to even, with one rounding."""
    try:
        value = numerator / denominator  # Python rounds a quotient of integers correctly
    except OverflowError:
        value = math.inf if numerator > 0 else -math.inf
    if t is F64 or math.isinf(value):
        return from_float(t, value)
    # Round to odd first: a binary64 number that ends in one is above or below each tie of binary32
    # where the exact number is (Boldo and Melquiond, "Emulation of a FMA and correctly rounded
    # sums", IEEE Transactions on Computers 57(4), 2008, section 3).
    bits = from_float(F64, value)
    rounded, unit = value.as_integer_ratio()
    excess = abs(numerator) * unit - abs(rounded) * denominator
    if excess and bits & 1 == 0:
        value = to_float(F64, bits + 1 if excess > 0 else bits - 1)
    return from_float(F32, value)


def _fits(t: Type, value: int) -> bool:
    """True if a signed number has so many bits at most."""
    return -1 <= value >> (t.bits - 1) <= 0


class PythonArithmetic(PureEmitter[int]):
    """Values are bit patterns; a boolean is a bool; a slot is a word.

    binary32 results are computed in binary64 and rounded once more. For sum, difference, product,
    quotient and square root that is exact: binary64 has more than twice binary32's digits plus
    two (Figueroa, "When is double rounding innocuous?", SIGNUM 30(3), 1995).
    """

    def constant(self, t: Type, bits: int) -> int:
        return bits

    def add(self, t: Type, a: int, b: int) -> int:
        return (a + b) & t.mask

    def sub(self, t: Type, a: int, b: int) -> int:
        return (a - b) & t.mask

    def mul(self, t: Type, a: int, b: int) -> int:
        return (a * b) & t.mask

    def add_overflows(self, t: Type, a: int, b: int) -> int:
        return not _fits(t, signed(t, a) + signed(t, b))

    def sub_overflows(self, t: Type, a: int, b: int) -> int:
        return not _fits(t, signed(t, a) - signed(t, b))

    def mul_overflows(self, t: Type, a: int, b: int) -> int:
        return not _fits(t, signed(t, a) * signed(t, b))

    def div_s(self, t: Type, a: int, b: int) -> int:
        x, y = signed(t, a), signed(t, b)
        quotient = abs(x) // abs(y)
        return (quotient if (x < 0) == (y < 0) else -quotient) & t.mask

    def div_u(self, t: Type, a: int, b: int) -> int:
        return a // b

    def rem_s(self, t: Type, a: int, b: int) -> int:
        x, y = signed(t, a), signed(t, b)
        rest = abs(x) % abs(y)
        return (rest if x >= 0 else -rest) & t.mask

    def rem_u(self, t: Type, a: int, b: int) -> int:
        return a % b

    def bit_and(self, t: Type, a: int, b: int) -> int:
        return a & b

    def bit_or(self, t: Type, a: int, b: int) -> int:
        return a | b

    def bit_xor(self, t: Type, a: int, b: int) -> int:
        return a ^ b

    def shl(self, t: Type, a: int, b: int) -> int:
        return (a << b) & t.mask

    def shr_s(self, t: Type, a: int, b: int) -> int:
        return (signed(t, a) >> b) & t.mask

    def shr_u(self, t: Type, a: int, b: int) -> int:
        return a >> b

    def clz(self, t: Type, a: int) -> int:
        return t.bits - a.bit_length()

    def ctz(self, t: Type, a: int) -> int:
        return (a & -a).bit_length() - 1 if a else t.bits

    def popcnt(self, t: Type, a: int) -> int:
        return a.bit_count()

    def compare(self, t: Type, condition: Condition, a: int, b: int) -> int:
        is_signed, holds = _COMPARISONS[condition]
        if t.is_float:
            return holds(to_float(t, a), to_float(t, b))
        return holds(signed(t, a), signed(t, b)) if is_signed else holds(a, b)

    def all(self, p: int, q: int) -> int:
        return bool(p and q)

    def any(self, p: int, q: int) -> int:
        return bool(p or q)

    def none(self, p: int) -> int:
        return not p

    def boolean_to_i32(self, p: int) -> int:
        return 1 if p else 0

    def select(self, p: int, a: int, b: int) -> int:
        return a if p else b

    def lookup(self, table: ConstantTable, index: int) -> int:
        return table.at(index)

    def fadd(self, t: Type, a: int, b: int) -> int:
        return from_float(t, to_float(t, a) + to_float(t, b))

    def fsub(self, t: Type, a: int, b: int) -> int:
        return from_float(t, to_float(t, a) - to_float(t, b))

    def fmul(self, t: Type, a: int, b: int) -> int:
        return from_float(t, to_float(t, a) * to_float(t, b))

    def fdiv(self, t: Type, a: int, b: int) -> int:
        x, y = to_float(t, a), to_float(t, b)
        if y == 0:  # Python raises where IEEE 754 has a result
            if x == 0 or math.isnan(x):
                return from_float(t, math.nan)
            return from_float(t, math.copysign(math.inf, x) * math.copysign(1, y))
        return from_float(t, x / y)

    def ffma(self, t: Type, a: int, b: int, c: int) -> int:
        x, y, z = to_float(t, a), to_float(t, b), to_float(t, c)
        if not (math.isfinite(x) and math.isfinite(y)):
            return from_float(t, x * y + z)
        if not math.isfinite(z):
            return c
        # In integers: fractions of them would be reduced each time.
        (a, p), (b, q), (c, r) = (each.as_integer_ratio() for each in (x, y, z))
        exact = a * b * r + c * p * q
        if exact == 0:  # the float product is exact here, and the sum has the right sign
            return from_float(t, x * y + z)
        return _from_ratio(t, exact, p * q * r)

    def fsqrt(self, t: Type, a: int) -> int:
        x = to_float(t, a)
        return from_float(t, math.nan if x < 0 else math.sqrt(x))

    def apply(self, function: PureFunction, *arguments: int) -> int:
        result: int = function.meaning(self, *arguments)
        return result

    def apply_if(self, p: int, function: PureFunction, otherwise: int, *arguments: int) -> int:
        return self.apply(function, *arguments) if p else otherwise

    def fceil(self, t: Type, a: int) -> int:
        return self._round(t, a, math.ceil)

    def ffloor(self, t: Type, a: int) -> int:
        return self._round(t, a, math.floor)

    def ftrunc(self, t: Type, a: int) -> int:
        return self._round(t, a, math.trunc)

    def fnearest(self, t: Type, a: int) -> int:
        return self._round(t, a, round)

    def _round(self, t: Type, a: int, rounding: object) -> int:
        x = to_float(t, a)
        if not math.isfinite(x):
            return from_float(t, x)
        assert callable(rounding)
        return from_float(t, math.copysign(float(rounding(x)), x))

    def wrap(self, a: int) -> int:
        return a & 0xFFFF_FFFF

    def extend_s(self, a: int) -> int:
        return (a ^ 0x8000_0000) - 0x8000_0000 & 0xFFFF_FFFF_FFFF_FFFF

    def extend_u(self, a: int) -> int:
        return a

    def to_float_s(self, to: Type, t: Type, a: int) -> int:
        return _from_integer(to, signed(t, a))

    def to_float_u(self, to: Type, t: Type, a: int) -> int:
        return _from_integer(to, a)

    def to_int_s(self, to: Type, t: Type, a: int) -> int:
        return math.trunc(to_float(t, a)) & to.mask

    def to_int_u(self, to: Type, t: Type, a: int) -> int:
        return math.trunc(to_float(t, a)) & to.mask

    def promote(self, a: int) -> int:
        return from_float(F64, to_float(F32, a))

    def demote(self, a: int) -> int:
        return from_float(F32, to_float(F64, a))

    def reinterpret(self, to: Type, t: Type, a: int) -> int:
        return a

    def to_slot(self, t: Type, a: int) -> int:
        return a

    def from_slot(self, t: Type, a: int) -> int:
        return a & t.mask


_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "gt": operator.gt,
    "le": operator.le,
    "ge": operator.ge,
}

_COMPARISONS = {
    condition: (condition.value.endswith("_s"), _OPERATORS[condition.value.partition("_")[0]])
    for condition in Condition
}
"""For each condition: if integers are signed, and the comparison."""
