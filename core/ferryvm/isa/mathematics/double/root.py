# SPDX-License-Identifier: Apache-2.0
"""cbrt and hypot of f64.

Both correct an approximation by its exact residue: y - (y^3 - a) / (3 y^2), and
y + (s - y^2) / (2 y). Zeros, infinities and NaN are selected at the end.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.special import magnitude, sign, with_sign
from ferryvm.isa.mathematics.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
)
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_SMALL = 2.0**-800
"""The residue of the cube root of an operand below this one may be subnormal."""

_THIRD = 0x5555_5556
"""A number below 2^31 times this, over 2^32, is a third of it."""
_ORIGIN = 0x553E_F0FF
"""High half of the bits of an estimate of a^(-1/3), within 4 percent, for bits of 0."""


def cbrt(m: PureEmitter[V], x: V) -> V:
    """The cube root; -0 for -0. Each step for r = a^(-1/3) is r + r d (1/3 + 2/9 d) with
    d = 1 - a r^3, which triples the digits."""
    positive = magnitude(m, x)
    is_small = m.compare(F64, Condition.LT, positive, number(m, _SMALL))
    a = m.select(is_small, mul(m, positive, number(m, 2.0**300)), positive)
    word = m.constant(I64, 32)
    high = m.shr_u(I64, m.reinterpret(I64, F64, a), word)
    third = m.shr_u(I64, m.mul(I64, high, m.constant(I64, _THIRD)), word)
    estimate = m.shl(I64, m.sub(I64, m.constant(I64, _ORIGIN), third), word)
    r = m.reinterpret(F64, I64, estimate)
    for _ in range(2):
        d = fma(m, negated(m, mul(m, a, r)), mul(m, r, r), number(m, 1.0))
        step = fma(m, d, number(m, 2 / 9), number(m, 1 / 3))
        r = fma(m, mul(m, r, d), step, r)
    y = mul(m, a, mul(m, r, r))
    square = mul(m, y, y)
    rest = fma(m, y, y, negated(m, square))
    excess = fma(m, rest, y, fma(m, square, y, negated(m, a)))
    y = fma(m, negated(m, excess), mul(m, mul(m, r, r), number(m, 1 / 3)), y)
    y = m.select(is_small, mul(m, y, number(m, 2.0**-100)), y)
    found = with_sign(m, sign(m, x), y)
    is_plain = m.all(
        m.compare(F64, Condition.GT, positive, number(m, 0.0)),
        m.compare(F64, Condition.LT, positive, number(m, math.inf)),
    )
    return canonical(m, F64, m.select(is_plain, found, x))


def hypot(m: PureEmitter[V], x: V, y: V) -> V:
    """sqrt(x^2 + y^2); infinite if an operand is, even if the other one is NaN."""
    first = m.reinterpret(I64, F64, magnitude(m, x))
    second = m.reinterpret(I64, F64, magnitude(m, y))
    # Of positive numbers the larger one has larger bits.
    is_less = m.compare(I64, Condition.LT_U, first, second)
    larger, smaller = m.select(is_less, second, first), m.select(is_less, first, second)
    # Powers of two bring the larger operand near 1; the result is multiplied by the inverse.
    huge, tiny = m.constant(I64, 0x5FE << 52), m.constant(I64, 0x200 << 52)
    is_huge = m.compare(I64, Condition.GT_U, larger, huge)
    is_tiny = m.compare(I64, Condition.LT_U, larger, tiny)
    down = m.select(is_huge, number(m, 2.0**-600), number(m, 1.0))
    down = m.select(is_tiny, number(m, 2.0**600), down)
    up = m.select(is_huge, number(m, 2.0**600), number(m, 1.0))
    up = m.select(is_tiny, number(m, 2.0**-600), up)
    a = mul(m, m.reinterpret(F64, I64, larger), down)
    b = mul(m, m.reinterpret(F64, I64, smaller), down)
    square, other = mul(m, a, a), mul(m, b, b)
    rest = add(m, fma(m, a, a, negated(m, square)), fma(m, b, b, negated(m, other)))
    s, low = fast_two_sum(m, square, other)
    root = m.fsqrt(F64, s)
    left = add(m, fma(m, negated(m, root), root, s), add(m, low, rest))
    found = add(m, root, m.fdiv(F64, left, add(m, root, root)))
    # A zero is its own root, and the quotient is none.
    found = m.select(m.compare(F64, Condition.EQ, s, number(m, 0.0)), s, found)
    found = canonical(m, F64, mul(m, found, up))
    infinite = m.constant(I64, 0x7FF << 52)
    is_infinite = m.any(
        m.compare(I64, Condition.EQ, first, infinite),
        m.compare(I64, Condition.EQ, second, infinite),
    )
    return m.select(is_infinite, number(m, math.inf), found)
