# SPDX-License-Identifier: Apache-2.0
"""asin, acos and atan of f32.

|x| <= 1/2    asin x = s P(s^2),  s = x
|x| > 1/2     asin |x| = pi/2 - 2 asin s,  s^2 = (1 - |x|) / 2
atan |x| = pi/4 n + atan s,  s = |x|, (|x| - 1) / (|x| + 1) or -1 / |x|,  |s| <= tan(pi/8)
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.special import excepting, sign_and_magnitude, with_sign
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F32, F64

V = TypeVar("V")


def _half_angle(m: PureEmitter[V], a: V) -> tuple[V, V, V]:
    """True if an f64 `a` exceeds 1/2, the square of s, and the root of (1 - a) / 2."""
    half = number(m, 0.5)
    is_large = m.compare(F64, Condition.GT, a, half)
    square = m.ffma(F64, a, number(m, -0.5), half)
    root = m.fsqrt(F64, square)
    return is_large, m.select(is_large, square, m.fmul(F64, a, a)), root


def asin_f32(m: PureEmitter[V], x: V) -> V:
    """Arc sine in radians; NaN outside of [-1, 1], -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    a = m.promote(magnitude)
    is_large, square, root = _half_angle(m, a)
    s = m.select(is_large, m.fmul(F64, root, number(m, -2.0)), a)
    base = m.select(is_large, m.constant(F64, coefficient.HALF_PI), number(m, 0.0))
    result = m.ffma(F64, s, polynomial(m, square, coefficient.ASIN), base)
    return with_sign(m, sign, m.demote(result))


def acos_f32(m: PureEmitter[V], x: V) -> V:
    """Arc cosine in radians; NaN outside of [-1, 1]."""
    _, magnitude = sign_and_magnitude(m, x)
    is_large, square, root = _half_angle(m, m.promote(magnitude))
    z = m.promote(x)
    is_negative = m.compare(F64, Condition.LT, z, number(m, 0.0))
    factor = m.select(is_negative, number(m, -2.0), number(m, 2.0))
    s = m.select(is_large, m.fmul(F64, root, factor), m.fsub(F64, number(m, 0.0), z))
    end = m.select(is_negative, m.constant(F64, coefficient.PI), number(m, 0.0))
    base = m.select(is_large, end, m.constant(F64, coefficient.HALF_PI))
    result = m.ffma(F64, s, polynomial(m, square, coefficient.ASIN), base)
    rounded = excepting(m, x, m.demote(result), coefficient.ACOS_EXCEPTIONS)
    return canonical(m, F32, rounded)


def atan_f32(m: PureEmitter[V], x: V) -> V:
    """Arc tangent in radians; -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    a, one = m.promote(magnitude), number(m, 1.0)
    is_small = m.compare(F64, Condition.LT, a, number(m, 0.4142135623730951))
    is_large = m.compare(F64, Condition.GT, a, number(m, 2.414213562373095))
    over = m.select(is_large, number(m, -1.0), m.fsub(F64, a, one))
    under = m.select(is_large, a, m.fadd(F64, a, one))
    quarters = (number(m, 0.0), coefficient.QUARTER_PI, coefficient.HALF_PI)
    base = m.select(is_large, m.constant(F64, quarters[2]), m.constant(F64, quarters[1]))
    s = m.select(is_small, a, m.fdiv(F64, over, under))
    base = m.select(is_small, quarters[0], base)
    result = m.ffma(F64, s, polynomial(m, m.fmul(F64, s, s), coefficient.ATAN), base)
    return with_sign(m, sign, m.demote(result))
