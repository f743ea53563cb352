# SPDX-License-Identifier: Apache-2.0
"""cbrt and hypot of f64.

Both correct an approximation by its exact residue: y - (y^3 - a) / (3 y^2), and y + (s - y^2) / (2
y), where an inverse root is at hand. Zeros, infinities and NaN are selected at the end.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import INVERSE_ROOT
from ferryvm.isa.mathematics.double.polynomial import horner
from ferryvm.isa.mathematics.double.special import magnitude, sign, with_sign
from ferryvm.isa.mathematics.pair import (
    add,
    fma,
    mul,
    negated,
    number,
    sub,
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
_ROOT_ORIGIN = 0x5FE6_E750_0000_0000
"""Bits of an estimate of a^(-1/2), within 4 percent, for bits of 0."""

_LEAST_SUM = (0x3FF - 900) << 52
"""Bits of the least sum of squares of which each one, if it counts, has an exact residue."""
_SUMS = 1900 << 52
"""The distance of the bits of the largest such sum."""


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
    larger, smaller = _ordered(m, magnitude(m, x), magnitude(m, y))
    s, low = _squares(m, larger, smaller)
    above = m.sub(I64, m.reinterpret(I64, F64, s), m.constant(I64, _LEAST_SUM))
    is_rare = m.compare(I64, Condition.GT_U, above, m.constant(I64, _SUMS))
    return m.apply_if(is_rare, PARTS["f64.hypot_rare"], root_of_sum(m, s, low), x, y)


def _ordered(m: PureEmitter[V], a: V, b: V) -> tuple[V, V]:
    """The larger and the smaller one of two numbers without signs, or NaN first: of them the larger
    one has larger bits."""
    first, second = m.reinterpret(I64, F64, a), m.reinterpret(I64, F64, b)
    is_less = m.compare(I64, Condition.LT_U, first, second)
    return m.select(is_less, b, a), m.select(is_less, a, b)


def _squares(m: PureEmitter[V], a: V, b: V) -> tuple[V, V]:
    """a^2 + b^2 and its error, where a is not less than b."""
    square = mul(m, a, a)
    s = fma(m, b, b, square)
    error = fma(m, a, a, negated(m, square))
    return s, add(m, fma(m, b, b, sub(m, square, s)), error)


def root_of_sum(m: PureEmitter[V], s: V, low: V | None) -> V:
    """The root of the sum of a positive normal number and a small one: r (1 + d P(d)) with d = 1 -
    s r^2 is the inverse root from an estimate r within 4 percent, and a Newton step with its half
    corrects the root. No root and no quotient are taken: those take as long as all the rest."""
    half = m.shr_u(I64, m.reinterpret(I64, F64, s), m.constant(I64, 1))
    r = m.reinterpret(F64, I64, m.sub(I64, m.constant(I64, _ROOT_ORIGIN), half))
    d = fma(m, negated(m, mul(m, s, r)), r, number(m, 1.0))
    r = fma(m, mul(m, r, d), horner(m, d, [number(m, each) for each in INVERSE_ROOT]), r)
    root = mul(m, s, r)
    left = fma(m, negated(m, root), root, s)
    left = left if low is None else add(m, left, low)
    return fma(m, left, mul(m, r, number(m, 0.5)), root)


def hypot_rare(m: PureEmitter[V], x: V, y: V) -> V:
    """The same of operands of any magnitude."""
    a, b = _ordered(m, magnitude(m, x), magnitude(m, y))
    # A power of 2 brings the larger operand between 2^-474 and 2^600.
    is_large = m.compare(F64, Condition.GT, a, number(m, 1.0))
    down = m.select(is_large, number(m, 2.0**-600), number(m, 2.0**600))
    up = m.select(is_large, number(m, 2.0**600), number(m, 2.0**-600))
    s, low = _squares(m, mul(m, a, down), mul(m, b, down))
    found = mul(m, root_of_sum(m, s, low), up)
    # A zero is its own root.
    found = m.select(m.compare(F64, Condition.EQ, s, number(m, 0.0)), s, found)
    infinity = number(m, math.inf)
    found = m.select(m.compare(F64, Condition.LT, a, infinity), found, number(m, math.nan))
    is_infinite = m.any(
        m.compare(F64, Condition.EQ, a, infinity), m.compare(F64, Condition.EQ, b, infinity)
    )
    return m.select(is_infinite, infinity, found)
