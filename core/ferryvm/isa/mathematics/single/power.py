# SPDX-License-Identifier: Apache-2.0
"""pow of f32.

    x = 2^k m,  m c = 1 + r,  |r| <= 1/16               log2 x = k - log2 c + r P(r)
    y log2 x = n / 16 + r,  |r| <= 1/32                 x^y = 2^(n/16) (1 + r Q(r))

with c from a table of 16 inverses of mantissas: in f64 the result has an error of less than 2^-41
of itself. If that leaves open to which f32 it is nearest, which is so for one pair in 2^15, it is
computed again (Ziv, "Fast evaluation of elementary mathematical functions with correctly rounded
last bit", ACM Transactions on Mathematical Software 17(3), 1991), as are the special ones:

    |x| = 2^k m,  s = (m - 1) / (m + 1),  w = s^2       log2 |x| = k + s (c0 + w (c1 + w R(w)))
    y log2 |x| = n + r,  |r| <= 1/2       |x|^y = 2^n (1 + r (e0 + r (e1 + r E(r))))

Terms that matter beyond 53 bits are sums of two f64: log2 |x| has an error of about 2^-65 of itself
and the result one of about 2^-58. An exact result may be in the middle of two f32; what is so near
to it that no other result can be expected there counts as exact.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.exponential import scale_of
from ferryvm.isa.mathematics.double.special import magnitude
from ferryvm.isa.mathematics.pair import clamped, fast_two_sum, number, two_product
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.exponential import power_of_two
from ferryvm.isa.mathematics.single.logarithm import exponent_and_mantissa
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.rounding import is_near_middle, rounded_to_odd
from ferryvm.isa.mathematics.single.special import sign_and_magnitude
from ferryvm.isa.mathematics.table import POW_INVERSES, POW_LOGARITHMS
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64

V = TypeVar("V")

_INFINITY, _ONE = 0x7F80_0000, 0x3F80_0000

_FIRST_MANTISSA = 0x3FE6_0000_0000_0000
"""Bits of 11/16, the least mantissa."""
_SIXTEENTHS = 1.5 * 2.0**48
"""The last place of a sum with this number is 1/16."""
_LARGEST_QUICK = 125.5
"""The exponent of 2 up to which powers are finite normal f32, for certain."""
_ERROR = 1 << 13
"""The largest error of a quick result, in units in the last place of f64: at least 2^-40 of it."""

_NEGLIGIBLE = 2.0**-57
"""A rest of at most this, beside a number of about 1, is an error."""


def _pair(m: PureEmitter[V], bits: tuple[int, int]) -> tuple[V, V]:
    return m.constant(F64, bits[0]), m.constant(F64, bits[1])


def _binary_logarithm(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """The logarithm to base 2 of a positive f64 with 24 bits of mantissa, as a sum."""
    k, mantissa = exponent_and_mantissa(m, x)
    one = number(m, 1.0)
    over, under = m.fsub(F64, mantissa, one), m.fadd(F64, mantissa, one)
    s = m.fdiv(F64, over, under)
    missing = m.ffma(F64, m.fsub(F64, number(m, 0.0), s), under, over)
    s_low = m.fdiv(F64, missing, under)
    w, w_low = two_product(m, s, s)
    w_low = m.ffma(F64, m.fadd(F64, s, s), s_low, w_low)
    (c0, c0_low), (c1, c1_low) = (_pair(m, each) for each in coefficient.POW_LOG2_FIRST)
    tail = m.fmul(F64, w, polynomial(m, w, coefficient.POW_LOG2))
    high, low = fast_two_sum(m, c1, tail)
    low = m.fadd(F64, low, c1_low)
    product, product_low = two_product(m, high, w)
    product_low = m.ffma(F64, high, w_low, m.ffma(F64, low, w, product_low))
    high, low = fast_two_sum(m, c0, product)
    low = m.fadd(F64, low, m.fadd(F64, c0_low, product_low))
    product, product_low = two_product(m, s, high)
    product_low = m.ffma(F64, s, low, m.ffma(F64, s_low, high, product_low))
    high, low = fast_two_sum(m, k, product)
    return high, m.fadd(F64, low, product_low)


def _power_of_two(m: PureEmitter[V], high: V, low: V) -> V:
    """2 to the power of a sum, rounded to odd."""
    n, scale = power_of_two(m, high)
    r = m.fsub(F64, high, n)
    (e0, e0_low), (e1, e1_low) = (_pair(m, each) for each in coefficient.POW_EXP2_FIRST)
    tail = m.fmul(F64, r, polynomial(m, r, coefficient.POW_EXP2))
    factor, factor_low = fast_two_sum(m, e1, tail)
    product, product_low = two_product(m, r, factor)
    product_low = m.ffma(F64, r, m.fadd(F64, factor_low, e1_low), product_low)
    factor, factor_low = fast_two_sum(m, e0, product)
    factor_low = m.fadd(F64, factor_low, m.fadd(F64, e0_low, product_low))
    q, q_low = two_product(m, r, factor)
    q_low = m.ffma(F64, r, factor_low, q_low)
    step = m.fmul(F64, low, e0)
    q_low = m.fadd(F64, q_low, m.ffma(F64, step, q, step))
    total, rest = fast_two_sum(m, number(m, 1.0), q)
    total, rest = fast_two_sum(m, total, m.fadd(F64, rest, q_low))
    is_exact = m.compare(
        F64, Condition.LT, m.fmul(F64, rest, rest), number(m, _NEGLIGIBLE * _NEGLIGIBLE)
    )
    rest = m.select(is_exact, number(m, 0.0), rest)
    return m.fmul(F64, rounded_to_odd(m, total, rest), scale)


def pow_f32(m: PureEmitter[V], x: V, y: V) -> V:
    """x^y; special operands as in IEEE 754-2019, 9.2.1: 1 for an exponent of 0 and for a base of 1,
    even if the other operand is NaN."""
    product = m.fmul(F64, m.promote(y), _quick_logarithm(m, m.promote(x)))
    found = _quick_power(m, product)
    above = m.sub(I32, m.reinterpret(I32, F32, x), m.constant(I32, 1))
    is_positive = m.compare(I32, Condition.LT_U, above, m.constant(I32, _INFINITY - 1))
    is_normal = m.compare(F64, Condition.LE, magnitude(m, product), number(m, _LARGEST_QUICK))
    is_quick = m.all(m.all(is_positive, is_normal), m.none(is_near_middle(m, found, _ERROR)))
    return m.apply_if(m.none(is_quick), PARTS["f32.pow_rare"], m.demote(found), x, y)


def _quick_logarithm(m: PureEmitter[V], x: V) -> V:
    """The logarithm to base 2 of a positive normal f64, with an error of about 2^-48 of itself."""
    bits, width = m.reinterpret(I64, F64, x), m.constant(I64, 52)
    above = m.sub(I64, bits, m.constant(I64, _FIRST_MANTISSA))
    exponent = m.shr_s(I64, above, width)
    mantissa = m.reinterpret(F64, I64, m.sub(I64, bits, m.shl(I64, exponent, width)))
    index = m.shr_u(I64, above, m.constant(I64, 48))
    r = m.ffma(F64, mantissa, m.lookup(POW_INVERSES, index), number(m, -1.0))  # exact
    small = m.ffma(
        F64, r, polynomial(m, r, coefficient.POW_FAST_LOG2), m.lookup(POW_LOGARITHMS, index)
    )
    return m.fadd(F64, m.to_float_s(F64, I64, exponent), small)


def _quick_power(m: PureEmitter[V], x: V) -> V:
    """2 to the power of a number, with an error of about 2^-46 of itself."""
    rounder = number(m, _SIXTEENTHS)
    shifted = m.fadd(F64, x, rounder)
    r = m.fsub(F64, x, m.fsub(F64, shifted, rounder))
    q = m.fmul(F64, r, polynomial(m, r, coefficient.POW_FAST_EXP2))
    scale = scale_of(m, m.reinterpret(I64, F64, shifted))
    return m.ffma(F64, scale, q, scale)


def pow_rare(m: PureEmitter[V], x: V, y: V) -> V:
    """The same for any operands."""
    zero = m.constant(F32, 0)
    nan, infinity = m.constant(F32, CANONICAL_NAN[F32]), m.constant(F32, _INFINITY)
    sign, a = sign_and_magnitude(m, x)
    logarithm, logarithm_low = _binary_logarithm(m, m.promote(a))
    exponent = clamped(m, m.promote(y), -(2.0**200), 2.0**200)
    product, low = two_product(m, exponent, logarithm)
    low = m.ffma(F64, exponent, logarithm_low, low)
    bounded = clamped(m, product, -200.0, 200.0)
    is_in_range = m.compare(F64, Condition.EQ, bounded, product)
    low = m.select(is_in_range, low, number(m, 0.0))
    result = m.demote(_power_of_two(m, bounded, low))

    # Negative bases have powers with integers only.
    is_integer = m.compare(F32, Condition.EQ, m.ffloor(F32, y), y)
    half = m.fmul(F32, y, m.constant(F32, 0x3F00_0000))
    is_odd = m.all(is_integer, m.compare(F32, Condition.NE, m.ffloor(F32, half), half))
    is_negative = m.compare(F32, Condition.LT, x, zero)
    result = m.select(m.all(is_negative, m.none(is_integer)), nan, result)
    # Powers of zeros and infinities are zeros and infinities.
    is_zero = m.compare(F32, Condition.EQ, a, zero)
    is_extreme = m.any(is_zero, m.compare(F32, Condition.EQ, a, infinity))
    inverse = m.select(is_zero, infinity, zero)
    extreme = m.select(m.compare(F32, Condition.LT, y, zero), inverse, a)
    result = m.select(is_extreme, extreme, result)
    bits = m.bit_or(
        I32, m.reinterpret(I32, F32, result), m.select(is_odd, sign, m.constant(I32, 0))
    )
    result = m.reinterpret(F32, I32, bits)
    is_nan = m.any(m.compare(F32, Condition.NE, x, x), m.compare(F32, Condition.NE, y, y))
    result = m.select(is_nan, nan, result)
    one = m.constant(F32, _ONE)
    is_one = m.any(m.compare(F32, Condition.EQ, y, zero), m.compare(F32, Condition.EQ, x, one))
    return m.select(is_one, one, result)
