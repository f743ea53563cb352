# SPDX-License-Identifier: Apache-2.0
"""Logarithms of f64.

    x = 2^k (1 + f),  sqrt(1/2) <= 1 + f < sqrt 2        ln x = k ln 2 + ln(1 + f)
    s = f / (2 + f)         ln(1 + f) = f - f^2/2 + s (f^2/2 + s^2 R(s^2))

The second line is the form of Ng's `log` in fdlibm (1993); here f - f^2/2 and its sum with k ln 2
are pairs.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import (
    LN2_HIGH,
    LN2_LOW,
    LOG,
    LOG2_E,
    LOG2_E_REST,
    LOG10_2_HIGH,
    LOG10_2_LOW,
    LOG10_E,
    LOG10_E_REST,
)
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import unless_zero
from ferryvm.isa.mathematics.pair import (
    add,
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

_LEAST_NORMAL = 2.0**-1022
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of the square root of one half."""


class _Base(NamedTuple):
    """The logarithms of 2 and of e, for a base."""

    two_high: float
    """Of at most 42 bits, so that a product with k is exact."""
    two_low: float
    e: float
    e_rest: float


_BINARY = _Base(1.0, 0.0, LOG2_E, LOG2_E_REST)
_DECIMAL = _Base(LOG10_2_HIGH, LOG10_2_LOW, LOG10_E, LOG10_E_REST)


def log(m: PureEmitter[V], x: V) -> V:
    """ln(x)."""
    return _special(m, x, _natural(m, *split(m, x), number(m, 0.0)))


def log2(m: PureEmitter[V], x: V) -> V:
    """The binary logarithm; exact for powers of 2."""
    return _special(m, x, _to_base(m, *split(m, x), _BINARY))


def log10(m: PureEmitter[V], x: V) -> V:
    """The decimal logarithm; exact for powers of 10."""
    return _special(m, x, _to_base(m, *split(m, x), _DECIMAL))


def is_positive_normal(m: PureEmitter[V], x: V) -> V:
    """True if a number is normal and finite, and not negative."""
    above = m.sub(I64, m.reinterpret(I64, F64, x), m.constant(I64, 1 << 52))
    return m.compare(I64, Condition.LT_U, above, m.constant(I64, 0x7FE << 52))


def log1p(m: PureEmitter[V], x: V) -> V:
    """ln(1 + x) = ln(u) + e / u, where u is the rounded sum and e its error; -0 for -0."""
    u, error = two_sum(m, number(m, 1.0), x)
    found = _special(m, u, _natural(m, *split(m, u), m.fdiv(F64, error, u)))
    return unless_zero(m, x, found)


def split(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """k and f, both as f64, of a positive number."""
    is_small = m.compare(F64, Condition.LT, x, number(m, _LEAST_NORMAL))
    exponent, f = _split(m, m.select(is_small, mul(m, x, number(m, 2.0**54)), x))
    shift = m.select(is_small, m.constant(I64, 54), m.constant(I64, 0))
    return m.to_float_s(F64, I64, m.sub(I64, exponent, shift)), f


def split_normal(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """The same of a normal number."""
    exponent, f = _split(m, x)
    return m.to_float_s(F64, I64, exponent), f


def _split(m: PureEmitter[V], x: V) -> tuple[V, V]:
    above = m.sub(I64, m.reinterpret(I64, F64, x), m.constant(I64, _ROOT_HALF))
    fraction = m.bit_and(I64, above, m.constant(I64, (1 << 52) - 1))
    mantissa = m.reinterpret(F64, I64, m.add(I64, fraction, m.constant(I64, _ROOT_HALF)))
    exponent = m.shr_s(I64, above, m.constant(I64, 52))
    return exponent, sub(m, mantissa, number(m, 1.0))


def _of_fraction(m: PureEmitter[V], f: V) -> tuple[V, V, V, V]:
    """ln(1 + f) as a sum: a pair of f - f^2/2, and a product of two factors."""
    s = m.fdiv(F64, f, add(m, f, number(m, 2.0)))
    z = mul(m, s, s)
    half = mul(m, f, number(m, 0.5))
    square = mul(m, half, f)
    square_low = fma(m, half, f, negated(m, square))
    inner = fma(m, z, polynomial(m, z, LOG), square)
    first, low = fast_two_sum(m, f, negated(m, square))
    return first, sub(m, low, square_low), s, inner


def _natural(m: PureEmitter[V], k: V, f: V, more: V) -> V:
    """k ln 2 + ln(1 + f) + `more`, which is small."""
    first, low, s, inner = _of_fraction(m, f)
    high, high_low = fast_two_sum(m, mul(m, k, number(m, LN2_HIGH)), first)  # an exact product
    low = add(m, add(m, high_low, low), more)
    return add(m, high, fma(m, s, inner, fma(m, k, number(m, LN2_LOW), low)))


def _to_base(m: PureEmitter[V], k: V, f: V, base: _Base) -> V:
    """The logarithm of 2^k (1 + f) to a base."""
    first, low, s, inner = _of_fraction(m, f)
    # The rest joins the pair, whose product with the pair of the constant follows.
    first, low = fast_two_sum(m, first, fma(m, s, inner, low))
    product = mul(m, first, number(m, base.e))
    rest = fma(m, first, number(m, base.e), negated(m, product))
    rest = fma(m, low, number(m, base.e), fma(m, first, number(m, base.e_rest), rest))
    high, high_low = fast_two_sum(m, mul(m, k, number(m, base.two_high)), product)
    return add(m, high, fma(m, k, number(m, base.two_low), add(m, high_low, rest)))


def _special(m: PureEmitter[V], x: V, found: V) -> V:
    """The result for zeros, infinities, negative numbers and NaN, else `found`."""
    zero, infinity = number(m, 0.0), number(m, math.inf)
    found = m.select(m.compare(F64, Condition.EQ, x, zero), number(m, -math.inf), found)
    found = m.select(m.compare(F64, Condition.EQ, x, infinity), infinity, found)
    is_number = m.compare(F64, Condition.GE, x, zero)  # false for NaN
    return m.select(is_number, found, number(m, math.nan))
