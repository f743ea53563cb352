# SPDX-License-Identifier: Apache-2.0
"""Pieces of meanings over f64: constants, bounds, and sums and products as unevaluated pairs.

A *pair* `(high, low)` stands for the exact sum of two f64, where `low` is at most half a unit in
the last place of `high` (Dekker, "A floating-point technique for extending the available
precision", Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.type import F64, I64, from_float

V = TypeVar("V")


def number(m: PureEmitter[V], value: float) -> V:
    """The f64 constant of a Python number."""
    return m.constant(F64, from_float(F64, value))


def add(m: PureEmitter[V], a: V, b: V) -> V:
    """Sum, rounded."""
    return m.fadd(F64, a, b)


def sub(m: PureEmitter[V], a: V, b: V) -> V:
    """Difference, rounded."""
    return m.fsub(F64, a, b)


def mul(m: PureEmitter[V], a: V, b: V) -> V:
    """Product, rounded."""
    return m.fmul(F64, a, b)


def fma(m: PureEmitter[V], a: V, b: V, c: V) -> V:
    """`a * b + c`, rounded once."""
    return m.ffma(F64, a, b, c)


def negated(m: PureEmitter[V], a: V) -> V:
    """The operand with its sign bit inverted."""
    bits = m.bit_xor(I64, m.reinterpret(I64, F64, a), m.constant(I64, 1 << 63))
    return m.reinterpret(F64, I64, bits)


def fast_two_sum(m: PureEmitter[V], a: V, b: V) -> tuple[V, V]:
    """The pair of `a + b`, where `a` is zero or its exponent is at least that of `b`."""
    high = add(m, a, b)
    return high, sub(m, b, sub(m, high, a))


def two_sum(m: PureEmitter[V], a: V, b: V) -> tuple[V, V]:
    """The pair of `a + b` (Knuth, "The Art of Computer Programming", vol. 2, 4.2.2)."""
    high = add(m, a, b)
    other = sub(m, high, a)
    return high, add(m, sub(m, a, sub(m, high, other)), sub(m, b, other))


def two_product(m: PureEmitter[V], a: V, b: V) -> tuple[V, V]:
    """The f64 nearest to a b, and what is missing."""
    product = m.fmul(F64, a, b)
    return product, m.ffma(F64, a, b, m.fsub(F64, number(m, 0.0), product))


def clamped(m: PureEmitter[V], x: V, lowest: float, highest: float) -> V:
    """The f64 `x` between two bounds; the lower one if it is NaN."""
    low, high = number(m, lowest), number(m, highest)
    x = m.select(m.compare(F64, Condition.GT, x, low), x, low)
    return m.select(m.compare(F64, Condition.LT, x, high), x, high)
