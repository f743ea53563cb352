# SPDX-License-Identifier: Apache-2.0
"""atan2 of f32.

    atan2(y, x) = n pi/4 + atan s,  s = u / v,  |s| <= tan(pi/8)

for |y| and |x| as for `atan_f32`, with n replaced by 4 - n and s negated for negative x. u and v
are exact in f64. All that follows is a sum of two f64, so that the error is about 2^-57.

It is a sum of two f32 (`quick`) unless that leaves its rounding open: of the quotient of the lesser
and the larger magnitude.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import fast_two_sum, fma, mul, negated, number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.inverse_trigonometric import quick_arctangent
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_outside, tested_range
from ferryvm.isa.mathematics.single.rounding import demoted_sum
from ferryvm.isa.mathematics.single.special import at_most, sign_and_magnitude, with_sign
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32

V = TypeVar("V")

_PLAIN_DIVISORS = 2.0**-70, 2.0**100
"""Divisors of quick results: with these and the least quotient, parts of sums are normal
numbers."""
_LEAST = 2.0**-30
"""The least quotient of a quick result."""

_MISSING = -7 * 2.0**-36, 17 * 2.0**-36
"""By such parts of itself, at least and at most, a quick result is less than the angle. The
roundings of its second part count, which is up to 2^-11 of it: there is one more than in
`atan_f32`, of the quotient's second part. From -2.6 to 11.5 of 2^-36 were found; the test itself
rounds by up to 1.8."""

_INFINITE = 2.0**400
"""It stands for infinity: no finite f32 has a quotient with it that is not rounded to 0."""


def atan2_f32(m: PureEmitter[V], y: V, x: V) -> V:
    """The angle of the point (x, y) in radians, between -pi and pi; signed zeros as in IEEE 754-2019,
    9.2.1."""
    zero, one = number(m, 0.0, F32), number(m, 1.0, F32)
    y_sign, a = sign_and_magnitude(m, y)
    _, b = sign_and_magnitude(m, x)
    is_steep = m.compare(F32, Condition.GT, a, b)
    over, under = m.select(is_steep, b, a), m.select(is_steep, a, b)
    inverse = m.fdiv(F32, one, under)
    s = mul(m, over, inverse, F32)
    left = fma(m, negated(m, s, F32), under, over, F32)
    is_left = m.compare(F32, Condition.LT, x, zero)
    factor = m.select(is_left, number(m, -1.0, F32), one)
    factor = m.select(is_steep, negated(m, factor, F32), factor)
    base, base_low = (
        m.select(
            is_steep,
            m.constant(F32, quarter),
            m.select(is_left, m.constant(F32, half), zero),
        )
        for quarter, half in zip(*coefficient.ATAN_ANGLES, strict=True)
    )
    sum_ = s, mul(m, left, inverse, F32)
    high, low = quick_arctangent(m, sum_, (base, base_low, factor))
    found, is_open = tested_range(m, high, low, *_MISSING)
    found = m.reinterpret(F32, I32, m.bit_or(I32, m.reinterpret(I32, F32, found), y_sign))
    is_extreme = m.any(
        is_outside(m, m.reinterpret(I32, F32, under), *_PLAIN_DIVISORS),
        m.compare(F32, Condition.LT, s, number(m, _LEAST, F32)),
    )
    return m.apply_if(m.any(is_open, is_extreme), PARTS["f32.atan2_rare"], found, y, x)


def atan2_rare(m: PureEmitter[V], y: V, x: V) -> V:
    """The same of any operands."""
    zero, one = number(m, 0.0), number(m, 1.0)
    y_sign, y_magnitude = sign_and_magnitude(m, y)
    x_sign, x_magnitude = sign_and_magnitude(m, x)
    is_left = m.compare(I32, Condition.NE, x_sign, m.constant(I32, 0))
    a = at_most(m, m.promote(y_magnitude), _INFINITE)
    b = at_most(m, m.promote(x_magnitude), _INFINITE)
    is_small = m.compare(F64, Condition.LE, a, m.fmul(F64, b, number(m, 0.4142135623730951)))
    is_large = m.compare(F64, Condition.GT, a, m.fmul(F64, b, number(m, 2.414213562373095)))
    over = m.select(is_large, m.fsub(F64, zero, b), m.fsub(F64, a, b))
    under = m.select(is_large, a, m.fadd(F64, a, b))
    n = m.select(is_large, number(m, 2.0), one)
    over, under = m.select(is_small, a, over), m.select(is_small, b, under)
    n = m.select(is_small, zero, n)
    under = m.select(m.compare(F64, Condition.EQ, under, zero), one, under)
    over = m.select(is_left, m.fsub(F64, zero, over), over)
    n = m.select(is_left, m.fsub(F64, number(m, 4.0), n), n)
    s = m.fdiv(F64, over, under)
    missing = m.fdiv(F64, m.ffma(F64, m.fsub(F64, zero, s), under, over), under)
    square = m.fmul(F64, s, s)
    tail = m.fmul(F64, missing, m.fsub(F64, one, square))
    cube = m.fmul(F64, square, s)
    tail = m.ffma(F64, cube, polynomial(m, square, coefficient.ATAN_TAIL), tail)
    first, second = (m.constant(F64, each) for each in coefficient.QUARTER_PI_PARTS)
    high, low = fast_two_sum(m, m.fmul(F64, n, first), s)
    low = m.fadd(F64, low, m.ffma(F64, n, second, tail))
    result = with_sign(m, y_sign, demoted_sum(m, *fast_two_sum(m, high, low)))
    is_nan = m.any(m.compare(F32, Condition.NE, x, x), m.compare(F32, Condition.NE, y, y))
    return m.select(is_nan, m.constant(F32, CANONICAL_NAN[F32]), result)
