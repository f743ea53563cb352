# SPDX-License-Identifier: Apache-2.0
"""sin, cos and tan of f32, for operands of any magnitude.

    x / pi = n + h (mod 2), n integer, |h| <= 0.53     sin x = (-1)^n sin pi h

A float of magnitude 2^a or more is a multiple of u = 2^(a - 23), so multiples of 2 / u in 1 / pi
change x / pi by multiples of 2 and can be left out (Payne and Hanek, "Radian reduction for
trigonometric functions", SIGNUM 18(1), 1983). What is left has two parts c + d of 53 bits. There is
such a pair for each of four ranges of |x|. n is the integer nearest to x c, and

    h = fma(x, d, fma(x, c, -n))

where the inner operation is exact, or its error is small beside h: x c is a multiple of 2^-53.
The part of 1 / pi behind d changes h by less than 2^-59.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.special import excepting, magnitude_bits, zero_as_is
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F32, F64, I32, I64

V = TypeVar("V")

_ROUNDER = float(3 * 2**51)
"""Added to a number below 2^51 it leaves the nearest integer in the low bits of the sum."""


def inverse_parts(
    m: PureEmitter[V], magnitude: V, bounds: Sequence[int], parts: Sequence[Sequence[int]]
) -> tuple[V, V]:
    """The parts c and d for the range of |x|, which is given as bits of f32; `bounds` are exponents of
    2."""
    tests = [
        m.compare(I32, Condition.LT_U, magnitude, m.constant(I32, (127 + each) << 23))
        for each in bounds
    ]

    def chosen(place: int) -> V:
        result = m.constant(F64, parts[-1][place])
        for test, pair in zip(reversed(tests), reversed(parts[:-1]), strict=True):
            result = m.select(test, m.constant(F64, pair[place]), result)
        return result

    return chosen(0), chosen(1)


def _with_parity(m: PureEmitter[V], value: V, shifted: V) -> V:
    """The f64 `value`, negated if the integer in the low bits of `shifted` is odd."""
    parity = m.shl(I64, m.reinterpret(I64, F64, shifted), m.constant(I64, 63))
    bits = m.bit_xor(I64, m.reinterpret(I64, F64, value), parity)
    return m.reinterpret(F64, I64, bits)


def _sine(m: PureEmitter[V], h: V) -> V:
    """sin(pi h)."""
    return m.fmul(F64, h, polynomial(m, m.fmul(F64, h, h), coefficient.SIN_PI))


def sin_f32(m: PureEmitter[V], x: V) -> V:
    """Sine of radians; -0 for -0, NaN for infinities."""
    c, d = inverse_parts(
        m, magnitude_bits(m, x), coefficient.INVERSE_PI_BOUNDS, coefficient.INVERSE_PI
    )
    z, rounder = m.promote(x), number(m, _ROUNDER)
    shifted = m.ffma(F64, z, c, rounder)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, m.fsub(F64, rounder, shifted)))
    result = canonical(m, F32, m.demote(_with_parity(m, _sine(m, h), shifted)))
    return zero_as_is(m, x, excepting(m, x, result, coefficient.SIN_EXCEPTIONS))


def cos_f32(m: PureEmitter[V], x: V) -> V:
    """Cosine of radians; NaN for infinities."""
    magnitude = magnitude_bits(m, x)
    c, d = inverse_parts(m, magnitude, coefficient.INVERSE_PI_BOUNDS, coefficient.INVERSE_PI)
    z, rounder, half = m.promote(x), number(m, _ROUNDER), number(m, 0.5)
    # x / pi = n - 1/2 + h, and cos x = (-1)^n sin pi h
    shifted = m.fadd(F64, m.ffma(F64, z, c, half), rounder)
    back = m.fadd(F64, m.fsub(F64, rounder, shifted), half)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, back))
    result = canonical(m, F32, m.demote(_with_parity(m, _sine(m, h), shifted)))
    magnitude = m.reinterpret(F32, I32, magnitude)
    return excepting(m, magnitude, result, coefficient.COS_EXCEPTIONS)


def tan_f32(m: PureEmitter[V], x: V) -> V:
    """Tangent of radians; -0 for -0, NaN for infinities."""
    c, d = inverse_parts(
        m, magnitude_bits(m, x), coefficient.INVERSE_HALF_PI_BOUNDS, coefficient.INVERSE_HALF_PI
    )
    z, rounder = m.promote(x), number(m, _ROUNDER)
    # x / (pi/2) = n + h: tan x is the tangent of h for even n, else minus its cotangent
    shifted = m.ffma(F64, z, c, rounder)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, m.fsub(F64, rounder, shifted)))
    square = m.fmul(F64, h, h)
    sine = m.fmul(F64, h, polynomial(m, square, coefficient.SIN_HALF_PI))
    cosine = polynomial(m, square, coefficient.COS_HALF_PI)
    parity = m.bit_and(I64, m.reinterpret(I64, F64, shifted), m.constant(I64, 1))
    is_odd = m.compare(I64, Condition.NE, parity, m.constant(I64, 0))
    over = m.select(is_odd, cosine, sine)
    under = m.select(is_odd, m.fsub(F64, number(m, 0.0), sine), cosine)
    return zero_as_is(m, x, canonical(m, F32, m.demote(m.fdiv(F64, over, under))))
