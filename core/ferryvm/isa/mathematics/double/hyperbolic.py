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
from ferryvm.isa.mathematics.double.exponential import near_one, power, reduced
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import (
    magnitude,
    number_unless_nan,
    sign,
    unless_tiny,
    with_sign,
)
from ferryvm.isa.mathematics.pair import (
    add,
    clamped,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    sub,
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
    """(e^2a - 1) / (e^2a + 1) with the sign of x, a = |x|; -0 for -0. From 5/8 on 1 - 2 / (e^2a + 1), whose
    rounding errors get smaller where the function gets flatter, so that it is monotonic."""
    a = clamped(m, magnitude(m, x), 0.0, _ONE)
    whole, r, rest = reduced(m, add(m, a, a))
    high, tail = fast_two_sum(m, *near_one(m, r, rest, is_precise=True))
    scale = power(m, m.to_int_s(I64, F64, whole))
    high, tail = mul(m, high, scale), mul(m, tail, scale)
    less, less_low = two_sum(m, high, number(m, -1.0))
    more, more_low = fast_two_sum(m, high, number(m, 1.0))
    is_small = m.compare(F64, Condition.LT, a, number(m, 0.625))
    dividend = m.select(is_small, less, number(m, 2.0))
    dividend_low = m.select(is_small, add(m, less_low, tail), number(m, 0.0))
    inverse = m.fdiv(F64, number(m, 1.0), more)
    quotient = mul(m, dividend, inverse)
    # What the quotient lacks: (dividend + dividend_low - quotient (more + more_low + tail)) / more.
    minus = negated(m, quotient)
    left = add(m, fma(m, minus, more, dividend), dividend_low)
    left = mul(m, fma(m, minus, add(m, more_low, tail), left), inverse)
    difference, error = fast_two_sum(m, number(m, 1.0), minus)
    large = add(m, difference, sub(m, error, left))
    found = m.select(is_small, add(m, quotient, left), large)
    return number_unless_nan(m, x, with_sign(m, sign(m, x), found))


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
