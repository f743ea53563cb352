# SPDX-License-Identifier: Apache-2.0
"""Pieces of meanings over f64, or f32 where that is said: constants, bounds, and sums and products
as unevaluated pairs.

A *pair* `(high, low)` stands for the exact sum of two floats, where `low` is at most half a unit in
the last place of `high` (Dekker, "A floating-point technique for extending the available
precision", Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.type import F64, Type, from_float

V = TypeVar("V")


def number(m: PureEmitter[V], value: float, t: Type = F64) -> V:
    """The constant nearest to a Python number."""
    return m.constant(t, from_float(t, value))


def add(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> V:
    """Sum, rounded."""
    return m.fadd(t, a, b)


def sub(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> V:
    """Difference, rounded."""
    return m.fsub(t, a, b)


def mul(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> V:
    """Product, rounded."""
    return m.fmul(t, a, b)


def fma(m: PureEmitter[V], a: V, b: V, c: V, t: Type = F64) -> V:
    """`a * b + c`, rounded once."""
    return m.ffma(t, a, b, c)


def negated(m: PureEmitter[V], a: V, t: Type = F64) -> V:
    """The operand with its sign bit inverted."""
    integer = t.integer
    bits = m.bit_xor(
        integer, m.reinterpret(integer, t, a), m.constant(integer, 1 << integer.bits - 1)
    )
    return m.reinterpret(t, integer, bits)


def fast_two_sum(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> tuple[V, V]:
    """The pair of `a + b`, where `a` is zero or its exponent is at least that of `b`."""
    high = add(m, a, b, t)
    return high, sub(m, b, sub(m, high, a, t), t)


def two_sum(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> tuple[V, V]:
    """The pair of `a + b` (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2)."""
    high = add(m, a, b, t)
    other = sub(m, high, a, t)
    return high, add(m, sub(m, a, sub(m, high, other, t), t), sub(m, b, other, t), t)


def two_product(m: PureEmitter[V], a: V, b: V, t: Type = F64) -> tuple[V, V]:
    """The float nearest to a b, and what is missing."""
    product = mul(m, a, b, t)
    return product, fma(m, a, b, negated(m, product, t), t)


def clamped(m: PureEmitter[V], x: V, lowest: float, highest: float) -> V:
    """The f64 `x` between two bounds; the lower one if it is NaN."""
    low, high = number(m, lowest), number(m, highest)
    x = m.select(m.compare(F64, Condition.GT, x, low), x, low)
    return m.select(m.compare(F64, Condition.LT, x, high), x, high)
