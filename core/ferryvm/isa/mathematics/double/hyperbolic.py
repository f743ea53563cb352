# SPDX-License-Identifier: Apache-2.0
"""Hyperbolic functions of f64.

    x = k ln 2 + r                       F = 2^(k-1) + 2^(-k-1),  G = 2^(k-1) - 2^(-k-1)
    sinh x = F sinh r + G cosh r         cosh x = F cosh r + G sinh r

(addition theorems: Abramowitz and Stegun, 4.5.24 and 4.5.25). sinh r = r + r^3 S(r^2) and
cosh r = 1 + r^2/2 + r^4 C(r^2) lose nothing to cancellation, so small operands need no case of their own: k
is 0, and F = 1, G = 0.
"""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import COSH, SINH
from ferryvm.isa.mathematics.double.exponential import power, reduced
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import number_unless_nan, unless_tiny
from ferryvm.isa.mathematics.pair import (
    add,
    clamped,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    two_sum,
)
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_LARGEST = 710.7
"""An operand beyond which sinh and cosh are infinite; its k is 1025, so F halved is finite."""

_ONE = 20.0
"""An operand beyond which tanh is 1."""


def sinh(m: PureEmitter[V], x: V) -> V:
    """(e^x - e^-x) / 2; -0 for -0."""
    factors, parts = _reduced(m, clamped(m, x, -_LARGEST, _LARGEST))
    high, low = parts.sinh_of(m, factors)
    return number_unless_nan(m, x, unless_tiny(m, x, _doubled(m, add(m, high, low))))


def cosh(m: PureEmitter[V], x: V) -> V:
    """(e^x + e^-x) / 2."""
    factors, parts = _reduced(m, clamped(m, x, -_LARGEST, _LARGEST))
    high, low = parts.cosh_of(m, factors)
    return number_unless_nan(m, x, _doubled(m, add(m, high, low)))


def tanh(m: PureEmitter[V], x: V) -> V:
    """sinh x / cosh x, as a quotient of pairs; -0 for -0."""
    factors, parts = _reduced(m, clamped(m, x, -_ONE, _ONE))
    high, low = parts.sinh_of(m, factors)
    divisor, divisor_low = fast_two_sum(m, *parts.cosh_of(m, factors))
    quotient = m.fdiv(F64, high, divisor)
    # What the quotient lacks: (high + low - quotient (divisor + divisor_low)) / divisor.
    left = add(m, fma(m, negated(m, quotient), divisor, high), low)
    left = fma(m, negated(m, quotient), divisor_low, left)
    found = add(m, quotient, m.fdiv(F64, left, divisor))
    return number_unless_nan(m, x, unless_tiny(m, x, found))


@dataclasses.dataclass(frozen=True)
class _Factors(Generic[V]):
    """F and G, both halved so that they are finite, as pairs."""

    f: V
    f_low: V
    g: V
    g_low: V


@dataclasses.dataclass(frozen=True)
class _Parts(Generic[V]):
    """sinh and cosh of a reduced operand: r + `sinh_rest`, `cosh` + `cosh_rest`."""

    r: V
    sinh_rest: V
    cosh: V
    """1 + r^2/2, rounded."""
    cosh_rest: V

    def sinh_of(self, m: PureEmitter[V], by: _Factors[V]) -> tuple[V, V]:
        """F sinh r + G cosh r, as a sum."""
        low = fma(m, by.g_low, self.cosh, mul(m, by.f_low, self.r))
        rest = fma(m, self.sinh_rest, by.f, fma(m, self.cosh_rest, by.g, low))
        return _sum(m, (by.g, self.cosh), (by.f, self.r), rest)

    def cosh_of(self, m: PureEmitter[V], by: _Factors[V]) -> tuple[V, V]:
        """F cosh r + G sinh r, as a sum."""
        low = fma(m, by.f_low, self.cosh, mul(m, by.g_low, self.r))
        rest = fma(m, self.cosh_rest, by.f, fma(m, self.sinh_rest, by.g, low))
        return _sum(m, (by.f, self.cosh), (by.g, self.r), rest)


def _sum(m: PureEmitter[V], a: tuple[V, V], b: tuple[V, V], rest: V) -> tuple[V, V]:
    """The product of `a`, that of `b`, and `rest`, which is small."""
    first, second = mul(m, *a), mul(m, *b)
    error = add(m, fma(m, *a, negated(m, first)), fma(m, *b, negated(m, second)))
    high, low = two_sum(m, first, second)
    return high, add(m, add(m, low, error), rest)


def _reduced(m: PureEmitter[V], x: V) -> tuple[_Factors[V], _Parts[V]]:
    whole, r, rest = reduced(m, x)
    square = mul(m, r, r)
    sinh_rest = fma(m, mul(m, square, r), polynomial(m, square, SINH), rest)
    half = mul(m, square, number(m, 0.5))
    cosh, low = fast_two_sum(m, number(m, 1.0), half)
    half_error = mul(m, fma(m, r, r, negated(m, square)), number(m, 0.5))
    # The derivative of cosh r is nearly r.
    low = add(m, low, fma(m, r, rest, half_error))
    parts = _Parts(
        r, sinh_rest, cosh, fma(m, mul(m, square, square), polynomial(m, square, COSH), low)
    )
    k, two = m.to_int_s(I64, F64, whole), m.constant(I64, 2)
    grows = power(m, _normal(m, m.sub(I64, k, two)))
    shrinks = power(m, _normal(m, m.sub(I64, m.sub(I64, m.constant(I64, 0), k), two)))
    f, f_low = two_sum(m, grows, shrinks)
    g, g_low = two_sum(m, grows, negated(m, shrinks))
    return _Factors(f, f_low, g, g_low), parts


def _normal(m: PureEmitter[V], k: V) -> V:
    """The exponent, or the least one of a normal number: the other power is large then."""
    least = m.constant(I64, -1022 & I64.mask)
    return m.select(m.compare(I64, Condition.LT_S, k, least), least, k)


def _doubled(m: PureEmitter[V], a: V) -> V:
    return add(m, a, a)
