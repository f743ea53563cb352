# SPDX-License-Identifier: Apache-2.0
"""cbrt and hypot of f32.

Bits of a float are nearly its logarithm, so a third of them, negated, gives an estimate r of a^(-1/3)
within 4 percent. One polynomial step makes it good to 2^-20. Then y = a r^2, cut to 18 bits so that
y^3 is exact, needs the factor (1 + d)^(-1/3) with d = (y^3 - a) / a.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.root import root_of_sum
from ferryvm.isa.mathematics.pair import number, two_sum
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.rounding import demoted_sum, is_near_middle
from ferryvm.isa.mathematics.single.special import sign_and_magnitude, with_sign
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F32, F64, I64

V = TypeVar("V")

_THIRD = 0x5555_5556
"""A number below 2^31 times this, over 2^32, is a third of it."""

_ORIGIN = 0x553E_F0FF
"""High half of the bits of the estimate for bits of 0."""

_LEAST_SUM = (0x3FF - 252) << 52
"""Bits of the least sum of squares that is taken, whose root is a normal f32."""
_SUMS = (252 + 254) << 52
"""The distance of the bits of one that is too large."""
_ROOT_ERROR = 8
"""Last places of f64 that are more than the error of a root of such a sum."""

_FIRST_18_BITS = 0xFFFF_FFF8_0000_0000


def cbrt_f32(m: PureEmitter[V], x: V) -> V:
    """The cube root; exact for cubes, -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    a, half_word = m.promote(magnitude), m.constant(I64, 32)
    high = m.shr_u(I64, m.reinterpret(I64, F64, a), half_word)
    third = m.shr_u(I64, m.mul(I64, high, m.constant(I64, _THIRD)), half_word)
    estimate = m.shl(I64, m.sub(I64, m.constant(I64, _ORIGIN), third), half_word)
    r = m.reinterpret(F64, I64, estimate)
    d = m.ffma(F64, m.fmul(F64, a, r), m.fmul(F64, r, r), number(m, -1.0))
    r = m.ffma(F64, m.fmul(F64, r, d), polynomial(m, d, coefficient.CBRT_COARSE), r)
    y = m.reinterpret(I64, F64, m.fmul(F64, m.fmul(F64, a, r), r))
    y = m.reinterpret(F64, I64, m.bit_and(I64, y, m.constant(I64, _FIRST_18_BITS)))
    excess = m.ffma(F64, m.fmul(F64, y, y), y, m.fsub(F64, number(m, 0.0), a))
    d = m.fdiv(F64, excess, a)
    y = m.ffma(F64, m.fmul(F64, y, d), polynomial(m, d, coefficient.CBRT_FINE), y)
    result = with_sign(m, sign, m.demote(y))
    # Zeros and infinities alone are their own double.
    is_double = m.compare(F32, Condition.EQ, m.fadd(F32, x, x), x)
    return m.select(is_double, x, result)


def hypot_f32(m: PureEmitter[V], x: V, y: V) -> V:
    """sqrt(x^2 + y^2); infinite if an operand is, even if the other one is NaN.

    It is correctly rounded for all operands: the squares are exact in f64, so their sum and its root
    are within 2 last places, and what is nearer to the middle of two f32 is computed again."""
    a, b = m.promote(x), m.promote(y)
    s = m.ffma(F64, a, a, m.fmul(F64, b, b))
    root = root_of_sum(m, s, None)
    above = m.sub(I64, m.reinterpret(I64, F64, s), m.constant(I64, _LEAST_SUM))
    is_normal = m.compare(I64, Condition.LT_U, above, m.constant(I64, _SUMS))
    is_quick = m.all(is_normal, m.none(is_near_middle(m, root, _ROOT_ERROR)))
    return m.apply_if(m.none(is_quick), PARTS["f32.hypot_rare"], m.demote(root), x, y)


def hypot_rare(m: PureEmitter[V], x: V, y: V) -> V:
    """The same of any operands: s + e is the exact sum, r = sqrt(s) differs from the result by less
    than one last place, and the sign of (s + e) - r^2 says to which side."""
    a, b = m.promote(x), m.promote(y)
    square, other = m.fmul(F64, a, a), m.fmul(F64, b, b)
    s, e = two_sum(m, square, other)
    r = m.fsqrt(F64, s)
    excess = m.ffma(F64, r, r, m.fsub(F64, number(m, 0.0), s))
    result = canonical(m, F32, demoted_sum(m, r, m.fsub(F64, e, excess)))
    infinite = number(m, math.inf)
    is_infinite = m.any(
        m.compare(F64, Condition.EQ, square, infinite),
        m.compare(F64, Condition.EQ, other, infinite),
    )
    return m.select(is_infinite, m.constant(F32, 0x7F80_0000), result)
