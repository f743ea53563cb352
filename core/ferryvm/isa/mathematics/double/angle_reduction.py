# SPDX-License-Identifier: Apache-2.0
"""Angles of f64 less a multiple of pi/2: x = k pi/2 + r + rest, where |r| is at most pi/4, or
little more.

*Below 2^20*, after Cody and Waite ("Software Manual for the Elementary Functions", 1980, chapter
8), exact by `fma`: pi/2 has three parts. x - k HIGH is a multiple of 2^-53 below 1 and so a f64, and k
MIDDLE is one, as k has 20 bits and MIDDLE has 33.

*From 2^20 on*, after Payne and Hanek ("Radian reduction for trigonometric functions", SIGNUM 18(1),
1983): x is M 2^e with an integer M, so bits of 2/pi with weights from 2^(2 - e) up change x / (pi/2)
by multiples of 4. Of the others, 192 bits are selected from constants; the product with M has 128
bits, of which the first two are k. No f64 is nearer to a multiple of pi/2 than 2^-61, so 2^-64 of r
is lost at most.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import (
    PI_2,
    PI_2_LOW,
    PI_2_MIDDLE,
    PI_2_REST,
    TWO_OVER_PI,
    TWO_OVER_PI_WORDS,
)
from ferryvm.isa.mathematics.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    number,
    sub,
    two_product,
)
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_ROUNDER = float(3 << 51)
"""Added to a number below 2^51 it leaves the nearest integer in the low bits of the sum."""

_FIRST = 1023 + 20
"""The exponent field from which on angles are huge; its window of 2/pi begins at the first bit."""
_WINDOW = 3
"""Words of 2/pi that are multiplied."""
_MANTISSA = (1 << 52) - 1


class ReducedAngle(NamedTuple, Generic[V]):
    """An angle less a multiple of pi/2."""

    quadrant: V
    """The multiple, as i64 of which the last two bits count."""
    r: V
    rest: V


def reduced(m: PureEmitter[V], x: V, more: int = 0) -> ReducedAngle[V]:
    """The reduction for |x| below 2^20; `more` is added to it."""
    rounder = number(m, _ROUNDER + more)
    shifted = fma(m, x, number(m, TWO_OVER_PI), rounder)
    minus = sub(m, rounder, shifted)
    near = fma(m, minus, number(m, PI_2), x)
    r = fma(m, minus, number(m, PI_2_MIDDLE), near)
    low = fma(m, minus, number(m, PI_2_MIDDLE), sub(m, near, r))  # exact: the error of r
    rest = fma(m, minus, number(m, PI_2_LOW), low)
    return ReducedAngle(m.reinterpret(I64, F64, shifted), r, rest)


def reduced_huge(m: PureEmitter[V], x: V, more: int = 0) -> ReducedAngle[V]:
    """The reduction of |x| for any f64 from 2^20 on; `more` is added to it."""
    high, low = _product(m, x)
    quadrant = m.shr_u(I64, m.add(I64, high, _i64(m, (1 + 2 * more) << 61)), _i64(m, 62))
    # The fraction, from -1/2 to 1/2: 53 bits, 53 more, and the others.
    above = m.bit_or(I64, m.shl(I64, high, _i64(m, 2)), m.shr_u(I64, low, _i64(m, 62)))
    below = m.shl(I64, low, _i64(m, 2))
    joined = m.shl(I64, m.bit_and(I64, above, _i64(m, 0x7FF)), _i64(m, 42))
    middle = m.bit_or(I64, joined, m.shr_u(I64, below, _i64(m, 22)))
    first, last = m.bit_and(I64, above, _i64(m, ~0x7FF)), m.bit_and(I64, below, _i64(m, 0x3FFFFF))
    parts = zip((first, middle, last), (64, 106, 128), strict=True)
    whole, half, least = (
        mul(m, m.to_float_s(F64, I64, part), number(m, 2.0**-weight)) for part, weight in parts
    )
    fraction, error = fast_two_sum(m, whole, half)
    unit = number(m, PI_2)
    r, rest = two_product(m, fraction, unit)
    left = mul(m, add(m, error, least), unit)
    rest = add(m, rest, fma(m, fraction, number(m, PI_2_REST), left))
    return ReducedAngle(quadrant, r, rest)


def _product(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """|x| / (pi/2) modulo 4 in units of 2^-126: two words, the first one higher."""
    bits = m.reinterpret(I64, F64, x)
    exponent = m.bit_and(I64, m.shr_u(I64, bits, _i64(m, 52)), _i64(m, 0x7FF))
    mantissa = m.bit_or(I64, m.bit_and(I64, bits, _i64(m, _MANTISSA)), _i64(m, _MANTISSA + 1))
    first, second, third = _window(m, m.sub(I64, exponent, _i64(m, _FIRST)))
    # The product modulo 2^192, without its last word.
    lower = m.mul(I64, mantissa, second)
    low = m.add(I64, lower, _product_high(m, mantissa, third))
    carries = m.compare(I64, Condition.LT_U, low, lower)
    carry = m.select(carries, _i64(m, 1), _i64(m, 0))
    upper = m.add(I64, m.mul(I64, mantissa, first), _product_high(m, mantissa, second))
    return m.add(I64, upper, carry), low


def _i64(m: PureEmitter[V], value: int) -> V:
    return m.constant(I64, value & I64.mask)


def _window(m: PureEmitter[V], place: V) -> list[V]:
    """192 bits of 2/pi from a bit on, as words, the first one highest."""
    words: Sequence[V] = [_i64(m, each) for each in TWO_OVER_PI_WORDS]
    for step in (8, 4, 2, 1):
        bit = m.bit_and(I64, place, _i64(m, 64 * step))
        is_further = m.compare(I64, Condition.NE, bit, _i64(m, 0))
        needed = _WINDOW + step
        words = [
            m.select(is_further, words[at + step], words[at])
            if at + step < len(words)
            else words[at]
            for at in range(needed)
        ]
    shift = m.bit_and(I64, place, _i64(m, 63))
    back = m.bit_xor(I64, shift, _i64(m, 63))
    one = _i64(m, 1)
    return [
        m.bit_or(I64, m.shl(I64, a, shift), m.shr_u(I64, m.shr_u(I64, b, one), back))
        for a, b in itertools.pairwise(words)
    ]


def _product_high(m: PureEmitter[V], a: V, b: V) -> V:
    """The high word of the product of `a`, below 2^53, and `b`, unsigned."""
    half, mask = _i64(m, 32), _i64(m, (1 << 32) - 1)
    a_high, a_low = m.shr_u(I64, a, half), m.bit_and(I64, a, mask)
    b_high, b_low = m.shr_u(I64, b, half), m.bit_and(I64, b, mask)
    low = m.shr_u(I64, m.mul(I64, a_low, b_low), half)
    middle = m.add(I64, m.mul(I64, a_high, b_low), low)
    other = m.add(I64, m.mul(I64, a_low, b_high), m.bit_and(I64, middle, mask))
    carried = m.add(I64, m.shr_u(I64, middle, half), m.shr_u(I64, other, half))
    return m.add(I64, m.mul(I64, a_high, b_high), carried)
