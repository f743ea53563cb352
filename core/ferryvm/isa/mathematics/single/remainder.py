# SPDX-License-Identifier: Apache-2.0
"""fmod and remainder of f32: exact.

Both are a long division in f64, whose quotients have 46 bits. A step replaces a by a - q d, where d
is |y| times a power of two and q the integer nearest to a / d: that is a multiple of the last place
of x or of d, and at most d / 2, so `fma` loses nothing.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import add, fma, mul, negated, number, sub
from ferryvm.isa.mathematics.single.special import sign_and_magnitude
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32

V = TypeVar("V")

_SCALES = (231, 185, 139, 93, 47)
"""Exponents of the powers of two, but for the last one: |x / y| is below 2^277."""


def fmod_f32(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is x / y toward zero; a zero has the sign of x."""
    sign, a, b = _magnitudes(m, x, y)
    rest = _divided(m, a, b, 0)
    is_negative = m.compare(F64, Condition.LT, rest, number(m, 0.0))
    return _result(m, sign, a, b, m.select(is_negative, add(m, rest, b), rest))


def remainder_f32(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is the integer nearest to x / y, ties to even; a zero has the sign of x."""
    sign, a, b = _magnitudes(m, x, y)
    rest = _divided(m, a, b, 1)
    # x - rest is a multiple of 2 y, so n is even where rest is the result.
    twice = add(m, rest, rest)
    less = m.select(m.compare(F64, Condition.GT, twice, b), sub(m, rest, b), rest)
    is_below = m.compare(F64, Condition.LT, twice, negated(m, b))
    return _result(m, sign, a, b, m.select(is_below, add(m, rest, b), less))


def _magnitudes(m: PureEmitter[V], x: V, y: V) -> tuple[V, V, V]:
    """The sign bit of x, |x| and |y| as f64."""
    sign, a = sign_and_magnitude(m, x)
    _, b = sign_and_magnitude(m, y)
    return sign, m.promote(a), m.promote(b)


def _divided(m: PureEmitter[V], a: V, b: V, last: int) -> V:
    """a minus a multiple of 2^last b, from -2^(last - 1) b to 2^(last - 1) b."""
    inverse = m.fdiv(F64, number(m, 1.0), b)
    minus = negated(m, b)
    for scale in (*_SCALES, last):
        quotient = m.fnearest(F64, mul(m, a, mul(m, inverse, number(m, 2.0**-scale))))
        a = fma(m, quotient, mul(m, minus, number(m, 2.0**scale)), a)
    return a


def _result(m: PureEmitter[V], sign: V, a: V, b: V, found: V) -> V:
    """`found` with the sign of x, x if y is infinite, NaN if there is no quotient."""
    infinity = number(m, float("inf"))
    found = m.select(m.compare(F64, Condition.EQ, b, infinity), a, found)
    # A zero is +0 here: no sum above is one of two zeros.
    bits = m.bit_xor(I32, m.reinterpret(I32, F32, m.demote(found)), sign)
    is_defined = m.all(
        m.compare(F64, Condition.LT, a, infinity), m.compare(F64, Condition.GT, b, number(m, 0.0))
    )
    nan = m.constant(F32, CANONICAL_NAN[F32])
    return m.select(is_defined, m.reinterpret(F32, I32, bits), nan)
