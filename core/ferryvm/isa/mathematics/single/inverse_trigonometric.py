# SPDX-License-Identifier: Apache-2.0
"""asin, acos and atan of f32.

|x| <= 1/2    asin x = s P(s^2),  s = x
|x| > 1/2     asin |x| = pi/2 - 2 asin s,  s^2 = (1 - |x|) / 2
atan |x| = pi/4 n + atan s,  s = |x|, (|x| - 1) / (|x| + 1) or -1 / |x|,  |s| <= tan(pi/8)

They are sums of two f32 (`quick`), by pieces, unless that leaves their rounding open.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import fma, mul, negated, number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.piece import Pieces, piecewise
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import tested_biased_sum
from ferryvm.isa.mathematics.single.root import quick_root
from ferryvm.isa.mathematics.single.special import (
    excepting,
    magnitude_bits,
    sign_and_magnitude,
    with_sign,
)
from ferryvm.isa.mathematics.table import ASIN_SUMS, ASIN_TERMS, ATAN_SUMS, ATAN_TERMS
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F32, F64, I32, from_float

V = TypeVar("V")

_ASIN = Pieces(33 / 2048, ASIN_SUMS, ASIN_TERMS)
_ATAN = Pieces(33 / 1024, ATAN_SUMS, ATAN_TERMS)

_QUICK_ERROR, _ATAN_ERROR = 2.0**-35, 5 * 2.0**-36
"""More than the errors of quick results."""


def _half_angle(m: PureEmitter[V], a: V) -> tuple[V, V, V]:
    """True if an f64 `a` exceeds 1/2, the square of s, and the root of (1 - a) / 2."""
    half = number(m, 0.5)
    is_large = m.compare(F64, Condition.GT, a, half)
    square = m.ffma(F64, a, number(m, -0.5), half)
    root = m.fsqrt(F64, square)
    return is_large, m.select(is_large, square, m.fmul(F64, a, a)), root


def asin_f32(m: PureEmitter[V], x: V) -> V:
    """Arc sine in radians; NaN outside of [-1, 1], -0 for -0."""
    bits, zero = magnitude_bits(m, x), number(m, 0.0, F32)
    a = m.reinterpret(F32, I32, bits)
    is_large = _is_large(m, a)
    factor = m.select(is_large, number(m, -2.0, F32), number(m, 1.0, F32))
    base, base_low = (
        m.select(is_large, m.constant(F32, each), zero) for each in coefficient.ARC_ANGLES[0]
    )
    found, is_open = _quick_arcsine(m, a, is_large, (base, base_low, factor))
    sign = m.bit_and(I32, m.reinterpret(I32, F32, x), m.constant(I32, 1 << 31))
    found = m.reinterpret(F32, I32, m.bit_or(I32, m.reinterpret(I32, F32, found), sign))
    return m.apply_if(m.any(is_open, _is_beyond(m, bits)), PARTS["f32.asin_rare"], found, x)


def acos_f32(m: PureEmitter[V], x: V) -> V:
    """Arc cosine in radians; NaN outside of [-1, 1]."""
    bits, zero = magnitude_bits(m, x), number(m, 0.0, F32)
    a = m.reinterpret(F32, I32, bits)
    is_large, is_negative = _is_large(m, a), m.compare(F32, Condition.LT, x, zero)
    factor = m.select(is_large, number(m, 2.0, F32), number(m, -1.0, F32))
    factor = m.select(is_negative, negated(m, factor, F32), factor)
    base, base_low = (
        m.select(
            is_large,
            m.select(is_negative, m.constant(F32, end), zero),
            m.constant(F32, middle),
        )
        for end, middle in zip(*reversed(coefficient.ARC_ANGLES), strict=True)
    )
    found, is_open = _quick_arcsine(m, a, is_large, (base, base_low, factor))
    return m.apply_if(m.any(is_open, _is_beyond(m, bits)), PARTS["f32.acos_rare"], found, x)


def _is_large(m: PureEmitter[V], a: V) -> V:
    return m.compare(F32, Condition.GT, a, number(m, 0.5, F32))


def _is_beyond(m: PureEmitter[V], bits: V) -> V:
    """True for magnitudes from 1 on, and for NaN."""
    return m.compare(I32, Condition.GE_U, bits, m.constant(I32, from_float(F32, 1.0)))


def _quick_arcsine(m: PureEmitter[V], a: V, is_large: V, onto: tuple[V, V, V]) -> tuple[V, V]:
    """asin s for s = a, or the root of (1 - a) / 2 if a is large, times a factor and added to a
    sum, as f32, and true if its rounding is open."""
    square = fma(m, a, number(m, -0.5, F32), number(m, 0.5, F32), F32)
    root, root_low = quick_root(m, square)
    low = m.select(is_large, root_low, number(m, 0.0, F32))
    high, low = piecewise(m, _ASIN, m.select(is_large, root, a), low, onto)
    return tested_biased_sum(m, high, low, _QUICK_ERROR)


def atan_f32(m: PureEmitter[V], x: V) -> V:
    """Arc tangent in radians; -0 for -0."""
    bits, zero, one = magnitude_bits(m, x), number(m, 0.0, F32), number(m, 1.0, F32)
    a = m.reinterpret(F32, I32, bits)
    is_large = m.compare(F32, Condition.GT, a, one)
    inverse = m.fdiv(F32, one, a)
    left = fma(m, negated(m, inverse, F32), a, one, F32)
    low = m.select(is_large, mul(m, left, inverse, F32), zero)
    factor = m.select(is_large, number(m, -1.0, F32), one)
    base, base_low = (
        m.select(is_large, m.constant(F32, each), zero) for each in coefficient.ATAN_ANGLES[0]
    )
    s = m.select(is_large, inverse, a), low
    high, low = quick_arctangent(m, s, (base, base_low, factor))
    found, is_open = tested_biased_sum(m, high, low, _ATAN_ERROR)
    sign = m.bit_and(I32, m.reinterpret(I32, F32, x), m.constant(I32, 1 << 31))
    found = m.reinterpret(F32, I32, m.bit_or(I32, m.reinterpret(I32, F32, found), sign))
    return m.apply_if(is_open, PARTS["f32.atan_rare"], found, x)


def quick_arctangent(m: PureEmitter[V], s: tuple[V, V], onto: tuple[V, V, V]) -> tuple[V, V]:
    """The arc tangent of a sum from 0 to 1, times a factor and added to a sum, as for `piecewise`, as a
    sum: it is less by that part `_ATAN_ERROR` of it, but for errors."""
    return piecewise(m, _ATAN, *s, onto)


def atan_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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


def asin_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    sign, magnitude = sign_and_magnitude(m, x)
    a = m.promote(magnitude)
    is_large, square, root = _half_angle(m, a)
    s = m.select(is_large, m.fmul(F64, root, number(m, -2.0)), a)
    base = m.select(is_large, m.constant(F64, coefficient.HALF_PI), number(m, 0.0))
    result = m.ffma(F64, s, polynomial(m, square, coefficient.ASIN), base)
    return with_sign(m, sign, m.demote(result))


def acos_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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
