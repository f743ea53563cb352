# SPDX-License-Identifier: Apache-2.0
"""cbrt and hypot of f32.

Both are sums of two f32 (`quick`) unless that leaves their rounding open: an approximation, and a
Newton step whose residue is computed in pairs. For cbrt in f64:

Bits of a float are nearly its logarithm, so a third of them, negated, gives an estimate r of
a^(-1/3) within 4 percent. One polynomial step makes it good to 2^-20. Then y = a r^2, cut to 18
bits so that y^3 is exact, needs the factor (1 + d)^(-1/3) with d = (y^3 - a) / a.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import add, fma, mul, negated, number, sub, two_product, two_sum
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_outside, tested_sum
from ferryvm.isa.mathematics.single.rounding import demoted_sum
from ferryvm.isa.mathematics.single.special import magnitude_bits, sign_and_magnitude, with_sign
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F32, F64, I32, I64

V = TypeVar("V")

_THIRD = 0x5555_5556
"""A number below 2^31 times this, over 2^32, is a third of it."""

_ORIGIN = 0x553E_F0FF
"""High half of the bits of the estimate for bits of 0."""

_QUICK_ORIGIN = float(0x54A1_F5B5)
"""Bits of the estimate, of f32, for bits of 0, as f32."""
_QUICK_ERROR = 2.0**-36
"""More than the error of a quick cube root."""

_QUICK_ROOT_ORIGIN = 0x5F37_4740
"""Bits of an estimate of an inverse root, within 4 percent, for bits of 0, of f32."""
_QUICK_ROOT_ERROR = 2.0**-37
"""More than the error of a quick root."""

_FIRST_18_BITS = 0xFFFF_FFF8_0000_0000


def cbrt_f32(m: PureEmitter[V], x: V) -> V:
    """The cube root; exact for cubes, -0 for -0."""
    bits = magnitude_bits(m, x)
    a = m.reinterpret(F32, I32, bits)
    third = fma(
        m, m.to_float_s(F32, I32, bits), number(m, -1 / 3, F32), number(m, _QUICK_ORIGIN, F32), F32
    )
    r = m.reinterpret(F32, I32, m.to_int_s(I32, F32, third))
    d = fma(m, mul(m, a, r, F32), mul(m, r, r, F32), number(m, -1.0, F32), F32)
    r = fma(m, mul(m, r, d, F32), polynomial(m, d, coefficient.CBRT_QUICK, F32), r, F32)
    square = mul(m, r, r, F32)
    y = mul(m, x, square, F32)
    # y - (y^3 - x) / (3 y^2), where the difference is of pairs
    square_high, square_low = two_product(m, y, y, F32)
    cube, cube_low = two_product(m, square_high, y, F32)
    excess = add(m, sub(m, cube, x, F32), fma(m, square_low, y, cube_low, F32), F32)
    step = mul(m, mul(m, square, number(m, -1 / 3, F32), F32), excess, F32)
    result, is_open = tested_sum(m, y, step, _QUICK_ERROR)
    is_rare = m.any(is_open, is_outside(m, bits, 2.0**-100, math.inf))
    return m.apply_if(is_rare, PARTS["f32.cbrt_rare"], result, x)


def cbrt_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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


def quick_root(m: PureEmitter[V], s: V, low: V | None = None) -> tuple[V, V]:
    """The root of a positive normal f32, or of a sum of two, as a sum with an error of 2^-37 of it.

    A quick inverse root r and the root s r have errors of at most 2^-19.2, as all mantissas of s
    show, and the Newton step to the root has one of 3/2 of their square, 2^-37.8."""
    half = m.shr_u(I32, m.reinterpret(I32, F32, s), m.constant(I32, 1))
    r = m.reinterpret(F32, I32, m.sub(I32, m.constant(I32, _QUICK_ROOT_ORIGIN), half))
    d = fma(m, negated(m, mul(m, s, r, F32), F32), r, number(m, 1.0, F32), F32)
    r = fma(m, mul(m, r, d, F32), polynomial(m, d, coefficient.ROOT_QUICK, F32), r, F32)
    root = mul(m, s, r, F32)
    left = fma(m, negated(m, root, F32), root, s, F32)
    if low is not None:
        left = add(m, left, low, F32)
    return root, mul(m, mul(m, left, r, F32), number(m, 0.5, F32), F32)


def hypot_f32(m: PureEmitter[V], x: V, y: V) -> V:
    """sqrt(x^2 + y^2); infinite if an operand is, even if the other one is NaN.

    It is correctly rounded for all operands. The sum of squares is a pair with an error of 2^-46 of
    it."""
    square, square_low = two_product(m, x, x, F32)
    other, other_low = two_product(m, y, y, F32)
    s, s_low = two_sum(m, square, other, F32)
    low = add(m, s_low, add(m, square_low, other_low, F32), F32)
    root, step = quick_root(m, s, low)
    bits = m.reinterpret(I32, F32, s)
    result, is_open = tested_sum(m, root, step, _QUICK_ROOT_ERROR)
    is_rare = m.any(is_open, is_outside(m, bits, 2.0**-80, 2.0**126))
    return m.apply_if(is_rare, PARTS["f32.hypot_rare"], result, x, y)


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
