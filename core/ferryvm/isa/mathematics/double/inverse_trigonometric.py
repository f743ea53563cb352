# SPDX-License-Identifier: Apache-2.0
"""asin, acos, atan and atan2 of f64.

    |x| <= 1/2    asin x = s + s z P(z),  s = x,  z = s^2
    |x| > 1/2     asin |x| = pi/2 - 2 asin s,  z = s^2 = (1 - |x|) / 2, which is exact
    atan2         of a <= b, which are |y| and |x|:  atan s,  s = a / b,  if that is at most 1/2,
                  else pi/4 + atan s,  s = (a - b) / (a + b);  atan s = s + s z P(z),  |s| <= 1/2

s and the multiple of pi/4 are pairs, and what is added is small beside them. The theorems of
addition are in Abramowitz and Stegun, 4.4.34 and 4.4.35.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import (
    ASIN,
    ATAN,
    PI_2,
    PI_2_REST,
)
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import magnitude, number_unless_nan, sign, with_sign
from ferryvm.isa.mathematics.pair import add, fast_two_sum, fma, mul, negated, number, sub
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_INVERSE = 0x7FD6_0000_0000_0000
"""These bits less those of s > 0 are the bits of about sqrt(1/2) / s."""

_EIGHTH = math.sqrt(2.0) - 1.0
"""The tangent of an eighth of pi."""

_FLAT = 2.0**60
"""atan of this number and of all that are larger rounds to pi/2."""

_NO_ZERO = 2.0**-1000
"""Added to a divisor that is 0 or above 2^-900, it changes nothing but the 0."""


def asin(m: PureEmitter[V], x: V) -> V:
    """The angle from -pi/2 to pi/2 whose sine is x; NaN outside of [-1, 1], -0 for -0."""
    is_large, s, rest = _half_angle(m, magnitude(m, x))
    factor = m.select(is_large, number(m, -2.0), number(m, 1.0))
    quarters = m.select(is_large, number(m, 2.0), number(m, 0.0))
    found = _from_axis(m, quarters, mul(m, factor, s), mul(m, factor, rest))
    return canonical(m, F64, with_sign(m, sign(m, x), found))


def acos(m: PureEmitter[V], x: V) -> V:
    """The angle from 0 to pi whose cosine is x; NaN outside of [-1, 1]."""
    is_large, s, rest = _half_angle(m, magnitude(m, x))
    is_negative = m.compare(F64, Condition.LT, x, number(m, 0.0))
    factor = with_sign(m, sign(m, x), m.select(is_large, number(m, 2.0), number(m, -1.0)))
    end = m.select(is_negative, number(m, 4.0), number(m, 0.0))
    quarters = m.select(is_large, end, number(m, 2.0))
    return canonical(m, F64, _from_axis(m, quarters, mul(m, factor, s), mul(m, factor, rest)))


def atan(m: PureEmitter[V], x: V) -> V:
    """The angle from -pi/2 to pi/2 whose tangent is x; -0 for -0."""
    one, flat = number(m, 1.0), number(m, _FLAT)
    y = magnitude(m, x)
    y = m.select(m.compare(F64, Condition.LT, y, flat), y, flat)
    is_steep = m.compare(F64, Condition.GT, y, one)
    low, high = m.select(is_steep, one, y), m.select(is_steep, y, one)
    eighths, s, rest = _of_quotient(m, low, high)
    two = number(m, 2.0)
    quarters = m.select(is_steep, sub(m, two, eighths), eighths)
    turn = m.select(is_steep, m.constant(I64, 1 << 63), m.constant(I64, 0))
    found = _from_axis(m, quarters, with_sign(m, turn, s), with_sign(m, turn, rest))
    return number_unless_nan(m, x, with_sign(m, sign(m, x), found))


def atan2(m: PureEmitter[V], y: V, x: V) -> V:
    """The angle of the point (x, y), from -pi to pi; signed zeros as in IEEE 754-2019, 9.2.1."""
    a, b, x_sign = magnitude(m, y), magnitude(m, x), sign(m, x)
    is_steep = m.compare(F64, Condition.GT, a, b)
    low, high = _bounded(m, m.select(is_steep, b, a), m.select(is_steep, a, b))
    quarters, s, rest = _of_quotient(m, low, high)
    turn = m.select(is_steep, m.constant(I64, 1 << 63), m.constant(I64, 0))
    quarters = m.select(is_steep, sub(m, number(m, 2.0), quarters), quarters)
    is_left = m.compare(I64, Condition.NE, x_sign, m.constant(I64, 0))
    quarters = m.select(is_left, sub(m, number(m, 4.0), quarters), quarters)
    turn = m.bit_xor(I64, turn, x_sign)
    found = _from_axis(m, quarters, with_sign(m, turn, s), with_sign(m, turn, rest))
    is_nan = m.any(m.compare(F64, Condition.NE, x, x), m.compare(F64, Condition.NE, y, y))
    nan = m.constant(F64, CANONICAL_NAN[F64])
    return m.select(is_nan, nan, with_sign(m, sign(m, y), found))


def _bounded(m: PureEmitter[V], low: V, high: V) -> tuple[V, V]:
    """Numbers with the same quotient, at most 1, whose reciprocals and sum are normal numbers. The
    quotient of infinities is 1 and that of zeros 0."""
    one, zero, infinity = number(m, 1.0), number(m, 0.0), number(m, math.inf)
    is_infinite = m.compare(F64, Condition.EQ, high, infinity)
    both = m.compare(F64, Condition.EQ, low, infinity)
    low = m.select(is_infinite, m.select(both, one, zero), low)
    high = m.select(is_infinite, one, high)
    is_huge = m.compare(F64, Condition.GT, high, number(m, 2.0**800))
    is_tiny = m.compare(F64, Condition.LT, low, number(m, 2.0**-800))
    scale = m.select(is_tiny, number(m, 2.0**200), one)
    scale = m.select(is_huge, number(m, 2.0**-200), scale)
    return mul(m, low, scale), add(m, mul(m, high, scale), number(m, _NO_ZERO))


def _of_quotient(m: PureEmitter[V], a: V, b: V) -> tuple[V, V, V]:
    """The angle whose tangent is a / b, at most 1: 0 or 1 quarters of pi, and a sum."""
    zero = number(m, 0.0)
    is_middle = m.compare(F64, Condition.GT, a, mul(m, b, number(m, _EIGHTH)))
    less, more = m.select(is_middle, b, zero), m.select(is_middle, a, zero)
    over = sub(m, a, less)
    over_low = sub(m, a, add(m, over, less))
    under, under_low = fast_two_sum(m, b, more)
    inverse = m.fdiv(F64, number(m, 1.0), under)
    s = mul(m, over, inverse)
    minus = negated(m, s)
    left = fma(m, minus, under_low, add(m, fma(m, minus, under, over), over_low))
    s_low = mul(m, left, inverse)
    z = mul(m, s, s)
    # The derivative of the arc tangent is nearly 1 - z.
    rest = fma(
        m,
        mul(m, s, z),
        polynomial(m, z, ATAN, is_precise=True),
        fma(m, negated(m, z), s_low, s_low),
    )
    return m.select(is_middle, number(m, 1.0), zero), s, rest


def _half_angle(m: PureEmitter[V], a: V) -> tuple[V, V, V]:
    """True if `a` exceeds 1/2, and asin s as a sum."""
    half = number(m, 0.5)
    is_large = m.compare(F64, Condition.GT, a, half)
    square = fma(m, a, number(m, -0.5), half)
    root = m.fsqrt(F64, square)
    # What the root lacks, left / (2 root), is needed to a few bits: the reciprocal is a Newton step
    # from c / root with c^2 = 1/2, so that a wrong c changes it in second order only.
    minus = negated(m, root)
    left = fma(m, minus, root, square)
    bits = m.sub(I64, m.constant(I64, _INVERSE), m.reinterpret(I64, F64, root))
    inverse = m.reinterpret(F64, I64, bits)
    inverse = mul(m, inverse, fma(m, minus, inverse, number(m, math.sqrt(2.0))))
    low = m.select(is_large, mul(m, left, inverse), number(m, 0.0))
    s = m.select(is_large, root, a)
    z = m.select(is_large, square, mul(m, a, a))
    return is_large, s, fma(m, mul(m, s, z), polynomial(m, z, ASIN, is_precise=True), low)


def _from_axis(m: PureEmitter[V], quarters: V, high: V, low: V) -> V:
    """A number of quarters of pi, 0 to 4, plus a sum."""
    first = mul(m, quarters, number(m, PI_2 / 2))  # exact: the factor has 50 bits
    total, error = fast_two_sum(m, first, high)
    return add(m, total, add(m, error, fma(m, quarters, number(m, PI_2_REST / 2), low)))
