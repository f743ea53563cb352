# SPDX-License-Identifier: Apache-2.0
"""erf and erfc of f64.

    erf (c + t) = v + t (s + t R(t))         c = 25/64 j,  |t| <= 25/128
    erfc a = e^(-a^2) g(a)                   g (c + t) = v + t (s + t R(t))

where j is from 0 to 15, and g has a center c in each quarter of an octave of a + 2. Values v and
slopes s at the centers are pairs, in tables, as are the coefficients of R.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import ERF_STEP
from ferryvm.isa.mathematics.double.exponential import SHIFT, lifted, natural, nearest, scale_of
from ferryvm.isa.mathematics.double.polynomial import horner
from ferryvm.isa.mathematics.double.special import (
    at_most,
    magnitude,
    number_unless_nan,
    sign,
    with_sign,
)
from ferryvm.isa.mathematics.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    sub,
    two_product,
)
from ferryvm.isa.mathematics.table import ERF_TERMS, ERFCX_CENTERS, ERFCX_TERMS
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_ONE = 6.0
"""An operand beyond which erf is 1."""
_PLAIN = 26.0
"""An operand up to which erfc is a normal number, with room for the low part of a pair."""
_ZERO = 27.25
"""An operand beyond which erfc is 0."""
_TWO = 0x4000_0000_0000_0000
"""Bits of 2."""


def erf(m: PureEmitter[V], x: V) -> V:
    """The error function; -0 for -0."""
    a = at_most(m, magnitude(m, x), _ONE)
    index, whole = nearest(m, fma(m, a, number(m, 1 / ERF_STEP), number(m, SHIFT)))
    t = fma(m, whole, number(m, -ERF_STEP), a)  # exact
    found = add(m, *_near_center(m, ERF_TERMS, index, t))
    return number_unless_nan(m, x, with_sign(m, sign(m, x), found))


def erfc(m: PureEmitter[V], x: V) -> V:
    """The complementary error function."""
    is_plain = m.compare(F64, Condition.LE, x, number(m, _PLAIN))
    bits, high, low = _complement(m, at_most(m, magnitude(m, x), _PLAIN))
    scale = scale_of(m, bits)
    product, error = two_product(m, scale, high)
    rest = fma(m, scale, low, error)
    difference, difference_low = fast_two_sum(m, number(m, 2.0), negated(m, product))
    negative = add(m, difference, sub(m, difference_low, rest))
    is_negative = m.compare(F64, Condition.LT, x, number(m, 0.0))
    found = m.select(is_negative, negative, add(m, product, rest))
    return m.apply_if(m.none(is_plain), PARTS["f64.erfc_rare"], found, x)


def erfc_rare(m: PureEmitter[V], x: V) -> V:
    """The same of large operands and NaN."""
    bits, high, low = _complement(m, at_most(m, magnitude(m, x), _ZERO))
    scale = scale_of(m, m.bit_and(I64, bits, m.constant(I64, 15)))
    product, error = two_product(m, scale, high)
    found = add(m, product, fma(m, scale, low, error))
    # g is above 1/64 there.
    six = m.constant(I64, 6)
    k = m.sub(I64, m.shr_s(I64, bits, m.constant(I64, 4)), six)
    is_small = m.compare(F64, Condition.EQ, x, x)
    found = lifted(m, mul(m, found, number(m, 64.0)), k, is_small)
    return number_unless_nan(m, x, found)


def _near_center(m: PureEmitter[V], tables: Sequence[ConstantTable], index: V, t: V) -> tuple[V, V]:
    """v + t (s + t R(t)) as a sum."""
    value, value_low, slope, slope_low, *others = (m.lookup(each, index) for each in tables)
    factor, factor_low = fast_two_sum(m, slope, mul(m, t, horner(m, t, others)))
    product, error = two_product(m, t, factor)
    high, low = fast_two_sum(m, value, product)
    rest = fma(m, t, add(m, factor_low, slope_low), add(m, error, value_low))
    return high, add(m, low, rest)


def _complement(m: PureEmitter[V], a: V) -> tuple[V, V, V]:
    """Bits that end with n, and a sum: erfc a is 2^(n/16) times the sum, for a from 0 to 27.25."""
    octave = m.sub(I64, m.reinterpret(I64, F64, add(m, a, number(m, 2.0))), m.constant(I64, _TWO))
    index = m.shr_u(I64, octave, m.constant(I64, 50))
    t = sub(m, a, m.lookup(ERFCX_CENTERS, index))
    high, low = _near_center(m, ERFCX_TERMS, index, t)
    square, square_low = two_product(m, a, a)
    bits, q = natural(m, negated(m, square), square_low)
    return bits, high, fma(m, high, q, low)
