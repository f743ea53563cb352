# SPDX-License-Identifier: Apache-2.0
"""Pieces of meanings over f64: constants, polynomials, and sums as unevaluated pairs.

A *pair* `(high, low)` stands for the exact sum of two f64, where `low` is at most half a unit in
the last place of `high` (Dekker, "A floating-point technique for extending the available
precision", Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.type import F64, I64, from_float

V = TypeVar("V")


def real(m: PureEmitter[V], value: float) -> V:
    """A constant of f64."""
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


def polynomial(m: PureEmitter[V], x: V, coefficients: Sequence[float]) -> V:
    """The polynomial with these coefficients, lowest power first, by Estrin's scheme: about
    log2(n) dependent steps instead of n (Muller, "Elementary Functions", 3rd edition, 5.3)."""
    terms = [real(m, each) for each in coefficients]
    power = x
    while len(terms) > 1:
        pairs = [
            fma(m, terms[place + 1], power, terms[place]) for place in range(0, len(terms) - 1, 2)
        ]
        terms = pairs + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            power = mul(m, power, power)
    return terms[0]
