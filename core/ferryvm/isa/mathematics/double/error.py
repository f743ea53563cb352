# SPDX-License-Identifier: Apache-2.0
"""erf and erfc of f64.

    |x| < 3/4     erf x = x (c0 + c1 x^2 + x^4 S(x^2))
    else          erfc a = e^(-a^2) (5/8 + P(t)) / (a + 9/16),  t = 17/2 / (a + 3) - 163/128

The second form (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
0 <= x < infinity", Mathematics of Computation 36, 1981) has a divisor that makes P small, so its
rounding errors hardly count. a^2, the power of e and what follows from it are pairs.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import (
    ERF,
    ERF_0,
    ERF_0_REST,
    ERF_1,
    ERF_1_REST,
    ERFC,
    ERFC_CENTER,
    ERFC_POLE,
    ERFC_SCALE,
    ERFC_SHIFT,
)
from ferryvm.isa.mathematics.double.exponential import near_one, power, reduced, scaled
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import magnitude, number_unless_nan, sign, with_sign
from ferryvm.isa.mathematics.pair import (
    add,
    clamped,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    sub,
    two_product,
    two_sum,
)
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_SMALL = 0.75
_ONE = 6.0
"""An operand beyond which erf is 1."""
_ZERO = 28.0
"""An operand beyond which erfc is 0."""


def erf(m: PureEmitter[V], x: V) -> V:
    """The error function; -0 for -0."""
    a = clamped(m, magnitude(m, x), 0.0, _ONE)
    square = two_product(m, a, a)
    series, series_low = _series(m, *square)
    small = fma(m, a, series, mul(m, a, series_low))
    k, q, rest = _complement(m, a, *square, is_precise=False)
    scale = power(m, k)
    large = _difference(m, 1.0, mul(m, q, scale), mul(m, rest, scale))
    is_small = m.compare(F64, Condition.LT, a, number(m, _SMALL))
    return number_unless_nan(m, x, with_sign(m, sign(m, x), m.select(is_small, small, large)))


def erfc(m: PureEmitter[V], x: V) -> V:
    """The complementary error function."""
    a = clamped(m, magnitude(m, x), 0.0, _ZERO)
    square = two_product(m, a, a)
    series, series_low = _series(m, *square)
    product, error = two_product(m, x, series)
    small = _difference(m, 1.0, product, fma(m, x, series_low, error))
    k, q, rest = _complement(m, a, *square, is_precise=True)
    positive = scaled(m, add(m, q, rest), k)
    negative = _difference(m, 2.0, scaled(m, q, k), scaled(m, rest, k))
    is_negative = m.compare(F64, Condition.LT, x, number(m, 0.0))
    is_small = m.compare(F64, Condition.LT, a, number(m, _SMALL))
    large = m.select(is_negative, negative, positive)
    return number_unless_nan(m, x, m.select(is_small, small, large))


def _difference(m: PureEmitter[V], a: float, high: V, low: V) -> V:
    """a - high - low, where a is larger than both."""
    difference, error = fast_two_sum(m, number(m, a), negated(m, high))
    return add(m, difference, sub(m, error, low))


def _series(m: PureEmitter[V], z: V, z_low: V) -> tuple[V, V]:
    """erf x / x as a pair, for |x| < 3/4; `z` and `z_low`: x^2."""
    first, error = two_product(m, z, number(m, ERF_1))
    error = fma(m, z, number(m, ERF_1_REST), fma(m, z_low, number(m, ERF_1), error))
    high, low = fast_two_sum(m, number(m, ERF_0), first)
    low = add(m, low, add(m, error, number(m, ERF_0_REST)))
    return fast_two_sum(m, high, fma(m, mul(m, z, z), polynomial(m, z, ERF), low))


def _complement(m: PureEmitter[V], a: V, z: V, z_low: V, is_precise: bool) -> tuple[V, V, V]:
    """k as i64 and a pair: erfc a is 2^k times the pair, for a from 3/4 to 28; `z` and `z_low`: a^2. If it
    is to be subtracted from 1, its errors count less than a third."""
    whole, r, r_low = reduced(m, negated(m, z))
    high, tail = near_one(m, *two_sum(m, r, sub(m, r_low, z_low)), is_precise)
    divisor, divisor_low = fast_two_sum(m, a, number(m, ERFC_POLE))
    other, other_low = two_sum(m, a, number(m, 3.0))
    inverse = m.fdiv(F64, number(m, 1.0), mul(m, divisor, other))
    u = mul(m, inverse, divisor)
    t = fma(m, u, number(m, ERFC_SCALE), number(m, -ERFC_SHIFT))
    if is_precise:  # make up for the relative error of u
        minus = negated(m, u)
        missing = fma(m, minus, other_low, fma(m, minus, other, number(m, 1.0)))
        t = fma(m, mul(m, u, missing), number(m, ERFC_SCALE), t)
    n, n_low = fast_two_sum(m, number(m, ERFC_CENTER), polynomial(m, t, ERFC))
    product, error = two_product(m, high, n)
    error = fma(m, high, n_low, fma(m, tail, n, error))
    inverse = mul(m, inverse, other)
    quotient = mul(m, product, inverse)
    minus = negated(m, quotient)
    # What the quotient lacks: (product + error - quotient (divisor + divisor_low)) / divisor.
    left = fma(m, minus, divisor_low, add(m, fma(m, minus, divisor, product), error))
    return m.to_int_s(I64, F64, whole), quotient, mul(m, left, inverse)
