# SPDX-License-Identifier: Apache-2.0
"""pow of f64.

    |x| = 2^k (1 + f),  s = 2 f / (2 + f),  z = s^2,  |s| <= 0.344
    ln |x| = k ln 2 + s + s z (1/12 + z (1/80 + z R(z)))
    y ln |x| = n ln 2 / 16 + r,  |r| <= ln 2 / 32,  |x|^y = 2^(n/16) e^r

The exponent may be 2^10 units, whose error becomes the relative one of the result. So s and the
terms up to 1/80 are pairs: the error of the logarithm is about 2^-66 of it.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import (
    LN2_HIGH,
    LN2_LOW,
    POW_LOG,
)
from ferryvm.isa.mathematics.double.exponential import (
    LARGEST_PLAIN,
    grown,
    lifted_sixteenths,
    natural,
)
from ferryvm.isa.mathematics.double.logarithm import is_positive_normal, split, split_normal
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import magnitude, sign, with_sign
from ferryvm.isa.mathematics.pair import add, clamped, fast_two_sum, fma, mul, negated, number
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_SATURATED = 2.0**64
"""An exponent whose powers are 0, 1 or infinite for every base."""


def pow(m: PureEmitter[V], x: V, y: V) -> V:
    """x^y; special operands as in IEEE 754-2019, 9.2.1: 1 for an exponent of 0 and for a base of 1,
    even if the other operand is NaN."""
    is_normal = is_positive_normal(m, x)
    product, rest = _product(m, *_logarithm(m, *split_normal(m, x)), y)
    is_finite = m.compare(F64, Condition.LE, magnitude(m, product), number(m, LARGEST_PLAIN))
    found = grown(m, *natural(m, product, negated(m, rest)))
    is_rare = m.none(m.all(is_normal, is_finite))
    return m.apply_if(is_rare, PARTS["f64.pow_rare"], found, x, y)


def pow_rare(m: PureEmitter[V], x: V, y: V) -> V:
    """The same of any operands."""
    a = magnitude(m, x)
    exponent = clamped(m, y, -_SATURATED, _SATURATED)
    product, rest = _product(m, *_logarithm(m, *split(m, a)), exponent)
    bounded = clamped(m, product, -746.0, 710.0)
    is_in_range = m.compare(F64, Condition.EQ, bounded, product)
    rest = m.select(is_in_range, negated(m, rest), number(m, 0.0))
    is_small = m.compare(F64, Condition.LT, bounded, number(m, -708.0))
    found = lifted_sixteenths(m, *natural(m, bounded, rest), is_small)
    return _special(m, x, y, a, found)


def _product(m: PureEmitter[V], high: V, low: V, y: V) -> tuple[V, V]:
    """The product of a sum and a number, as a pair."""
    product = mul(m, y, high)
    return product, fma(m, y, low, fma(m, y, high, negated(m, product)))


def _logarithm(m: PureEmitter[V], k: V, f: V) -> tuple[V, V]:
    """ln(2^k (1 + f)), as a sum."""
    two = number(m, 2.0)
    under, under_low = fast_two_sum(m, two, f)
    inverse = m.fdiv(F64, number(m, 1.0), under)
    twice = add(m, f, f)
    s = mul(m, twice, inverse)
    minus = negated(m, s)
    s_low = mul(m, fma(m, minus, under_low, fma(m, minus, under, twice)), inverse)
    z = mul(m, s, s)
    z_low = fma(m, add(m, s, s), s_low, fma(m, s, s, negated(m, z)))
    tail = polynomial(m, z, (POW_LOG[2], *POW_LOG[4:]), is_precise=True)
    product = mul(m, z, tail)
    product_low = fma(m, z_low, tail, fma(m, z, tail, negated(m, product)))
    product_low = fma(m, z, number(m, POW_LOG[3]), product_low)
    term, term_low = fast_two_sum(m, number(m, POW_LOG[0]), product)
    term_low = add(m, term_low, add(m, product_low, number(m, POW_LOG[1])))
    factor = mul(m, z, term)
    factor_low = fma(m, z, term_low, fma(m, z, term, negated(m, factor)))
    factor_low = fma(m, z_low, term, factor_low)
    cubic = mul(m, s, factor)
    cubic_low = fma(m, s, factor_low, fma(m, s, factor, negated(m, cubic)))
    cubic_low = fma(m, s_low, factor, cubic_low)
    first, first_low = fast_two_sum(m, s, cubic)
    first_low = add(m, first_low, add(m, cubic_low, s_low))
    high, low = fast_two_sum(m, mul(m, k, number(m, LN2_HIGH)), first)  # an exact product
    return high, fma(m, k, number(m, LN2_LOW), add(m, low, first_low))


def _special(m: PureEmitter[V], x: V, y: V, a: V, found: V) -> V:
    """The power, given that of the magnitude."""
    zero, one, infinity = number(m, 0.0), number(m, 1.0), number(m, math.inf)
    nan = m.constant(F64, CANONICAL_NAN[F64])
    # Negative bases have powers with integers only.
    is_integer = m.compare(F64, Condition.EQ, m.ffloor(F64, y), y)
    half = mul(m, y, number(m, 0.5))
    is_odd = m.all(is_integer, m.compare(F64, Condition.NE, m.ffloor(F64, half), half))
    is_negative = m.compare(F64, Condition.LT, x, zero)
    found = m.select(m.all(is_negative, m.none(is_integer)), nan, found)
    # Powers of zeros and infinities are zeros and infinities.
    is_zero = m.compare(F64, Condition.EQ, a, zero)
    is_extreme = m.any(is_zero, m.compare(F64, Condition.EQ, a, infinity))
    inverse = m.select(is_zero, infinity, zero)
    extreme = m.select(m.compare(F64, Condition.LT, y, zero), inverse, a)
    found = m.select(is_extreme, extreme, found)
    found = with_sign(m, m.select(is_odd, sign(m, x), m.constant(I64, 0)), found)
    is_nan = m.any(m.compare(F64, Condition.NE, x, x), m.compare(F64, Condition.NE, y, y))
    found = m.select(is_nan, nan, found)
    is_one = m.any(m.compare(F64, Condition.EQ, y, zero), m.compare(F64, Condition.EQ, x, one))
    return m.select(is_one, one, found)
