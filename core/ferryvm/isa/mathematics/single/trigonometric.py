# SPDX-License-Identifier: Apache-2.0
"""sin, cos and tan of f32, for operands of any magnitude.

    x / pi = n + h (mod 2), n integer, |h| <= 0.53     sin x = (-1)^n sin pi h

A float of magnitude 2^a or more is a multiple of u = 2^(a - 23), so multiples of 2 / u in 1 / pi
change x / pi by multiples of 2 and can be left out (Payne and Hanek, "Radian reduction for
trigonometric functions", SIGNUM 18(1), 1983). What is left has two parts c + d of 53 bits. There is
such a pair for each of four ranges of |x|. n is the integer nearest to x c, and

    h = fma(x, d, fma(x, c, -n))

where the inner operation is exact, or its error is small beside h: x c is a multiple of 2^-53. The
part of 1 / pi behind d changes h by less than 2^-59. Code branches over the ranges but the first,
that of operands below 2^49.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import negated, number
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
    magnitude = magnitude_bits(m, x)
    found = zero_as_is(m, x, _sin(m, x, _plain_parts(m, coefficient.INVERSE_PI)))
    rare = [m.compare(I32, Condition.EQ, magnitude, each) for each in _magnitudes(m)]
    is_rare = functools.reduce(m.any, rare, _is_large(m, magnitude, coefficient.INVERSE_PI_BOUNDS))
    return m.apply_if(is_rare, PARTS["f32.sin_rare"], found, x)


def cos_f32(m: PureEmitter[V], x: V) -> V:
    """Cosine of radians; NaN for infinities."""
    found = _cos(m, x, _plain_parts(m, coefficient.INVERSE_PI))
    is_large = _is_large(m, magnitude_bits(m, x), coefficient.INVERSE_PI_BOUNDS)
    return m.apply_if(is_large, PARTS["f32.cos_rare"], found, x)


def tan_f32(m: PureEmitter[V], x: V) -> V:
    """Tangent of radians; -0 for -0, NaN for infinities."""
    found = zero_as_is(m, x, _tan(m, x, _plain_parts(m, coefficient.INVERSE_HALF_PI)))
    is_large = _is_large(m, magnitude_bits(m, x), coefficient.INVERSE_HALF_PI_BOUNDS)
    return m.apply_if(is_large, PARTS["f32.tan_rare"], found, x)


def sin_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    parts = inverse_parts(
        m, magnitude_bits(m, x), coefficient.INVERSE_PI_BOUNDS, coefficient.INVERSE_PI
    )
    result = excepting(m, x, _sin(m, x, parts), coefficient.SIN_EXCEPTIONS)
    return canonical(m, F32, zero_as_is(m, x, result))


def cos_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    magnitude = magnitude_bits(m, x)
    parts = inverse_parts(m, magnitude, coefficient.INVERSE_PI_BOUNDS, coefficient.INVERSE_PI)
    result = canonical(m, F32, _cos(m, x, parts))
    return excepting(m, m.reinterpret(F32, I32, magnitude), result, coefficient.COS_EXCEPTIONS)


def tan_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    parts = inverse_parts(
        m, magnitude_bits(m, x), coefficient.INVERSE_HALF_PI_BOUNDS, coefficient.INVERSE_HALF_PI
    )
    return canonical(m, F32, zero_as_is(m, x, _tan(m, x, parts)))


def _plain_parts(m: PureEmitter[V], parts: Sequence[Sequence[int]]) -> tuple[V, V]:
    """c and d of operands that are not large."""
    first, second = parts[0]
    return m.constant(F64, first), m.constant(F64, second)


def _is_large(m: PureEmitter[V], magnitude: V, bounds: Sequence[int]) -> V:
    """True for operands that take other parts, and for NaN."""
    return m.compare(I32, Condition.GE_U, magnitude, m.constant(I32, (127 + bounds[0]) << 23))


def _magnitudes(m: PureEmitter[V]) -> list[V]:
    """Magnitudes of operands whose sines are exceptions, as bits."""
    found = dict.fromkeys(bits & 0x7FFF_FFFF for bits, _ in coefficient.SIN_EXCEPTIONS)
    return [m.constant(I32, each) for each in found]


def _sin(m: PureEmitter[V], x: V, parts: tuple[V, V]) -> V:
    (c, d), z, rounder = parts, m.promote(x), number(m, _ROUNDER)
    shifted = m.ffma(F64, z, c, rounder)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, m.fsub(F64, rounder, shifted)))
    return m.demote(_with_parity(m, _sine(m, h), shifted))


def _cos(m: PureEmitter[V], x: V, parts: tuple[V, V]) -> V:
    (c, d), z, rounder, half = parts, m.promote(x), number(m, _ROUNDER), number(m, 0.5)
    # x / pi = n - 1/2 + h, and cos x = (-1)^n sin pi h
    shifted = m.fadd(F64, m.ffma(F64, z, c, half), rounder)
    back = m.fadd(F64, m.fsub(F64, rounder, shifted), half)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, back))
    return m.demote(_with_parity(m, _sine(m, h), shifted))


def _tan(m: PureEmitter[V], x: V, parts: tuple[V, V]) -> V:
    (c, d), z, rounder = parts, m.promote(x), number(m, _ROUNDER)
    # x / (pi/2) = n + h: tan x is the tangent of h for even n, else minus its cotangent
    shifted = m.ffma(F64, z, c, rounder)
    h = m.ffma(F64, z, d, m.ffma(F64, z, c, m.fsub(F64, rounder, shifted)))
    square = m.fmul(F64, h, h)
    sine = m.fmul(F64, h, polynomial(m, square, coefficient.SIN_HALF_PI))
    cosine = polynomial(m, square, coefficient.COS_HALF_PI)
    parity = m.bit_and(I64, m.reinterpret(I64, F64, shifted), m.constant(I64, 1))
    is_odd = m.compare(I64, Condition.NE, parity, m.constant(I64, 0))
    over = m.select(is_odd, cosine, sine)
    under = m.select(is_odd, negated(m, sine), cosine)
    return m.demote(m.fdiv(F64, over, under))
