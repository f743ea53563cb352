# SPDX-License-Identifier: Apache-2.0
"""Exponential functions of f64.

    x = (16 k + j) ln 2 / 16 + r,  |r| <= ln 2 / 32        e^x = 2^k 2^(j/16) e^r,  e^r = 1 + r + r^2 P(r)

The reduction is that of Cody and Waite ("Software Manual for the Elementary Functions", 1980,
chapter 6), exact by `fma`; the powers 2^(j/16) are in a table, with their errors (Tang,
"Table-driven implementation of the exponential function in IEEE floating-point arithmetic", ACM
Transactions on Mathematical Software 15(2), 1989). Where the result may be infinite, subnormal or
NaN, a function that code branches over computes it again.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import (
    EXP_SIXTEENTH,
    LN2,
    LN2_16_HIGH,
    LN2_16_LOW,
    SIXTEENTHS_E,
)
from ferryvm.isa.mathematics.double.polynomial import polynomial_by_pairs
from ferryvm.isa.mathematics.double.special import magnitude, number_unless_nan, unless_zero
from ferryvm.isa.mathematics.pair import (
    add,
    clamped,
    fast_two_sum,
    fma,
    mul,
    number,
    sub,
    two_product,
    two_sum,
)
from ferryvm.isa.mathematics.table import POWER_TAILS, POWER_WORDS
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

LARGEST_PLAIN = 708.0
"""The magnitude up to which powers of e are finite normal numbers."""
_LARGEST_PLAIN_2 = 1021.0
"""The same for powers of 2."""

SHIFT = 1.5 * 2.0**52
"""The last place of a sum with this number is 1: the sum is rounded to an integer."""

_LIFT = 64
"""Binary places by which small results are lifted."""


def exp(m: PureEmitter[V], x: V) -> V:
    """e^x."""
    is_plain = m.compare(F64, Condition.LE, magnitude(m, x), number(m, LARGEST_PLAIN))
    bits, q = natural(m, x)
    return m.apply_if(m.none(is_plain), PARTS["f64.exp_rare"], grown(m, bits, q), x)


def exp2(m: PureEmitter[V], x: V) -> V:
    """2^x; exact for integers."""
    is_plain = m.compare(F64, Condition.LE, magnitude(m, x), number(m, _LARGEST_PLAIN_2))
    bits, q = _binary(m, x)
    return m.apply_if(m.none(is_plain), PARTS["f64.exp2_rare"], grown(m, bits, q), x)


def exp_rare(m: PureEmitter[V], x: V) -> V:
    """e^x of any operand."""
    inside = clamped(m, x, -746.0, 710.0)
    is_small = m.compare(F64, Condition.LT, inside, number(m, -708.0))
    return number_unless_nan(m, x, lifted_sixteenths(m, *natural(m, inside), is_small))


def exp2_rare(m: PureEmitter[V], x: V) -> V:
    """2^x of any operand."""
    inside = clamped(m, x, -1080.0, 1024.0)
    is_small = m.compare(F64, Condition.LT, inside, number(m, -1021.0))
    return number_unless_nan(m, x, lifted_sixteenths(m, *_binary(m, inside), is_small))


def natural(m: PureEmitter[V], x: V, less: V | None = None) -> tuple[V, V]:
    """Bits that end with n, and q: e^x = 2^(n/16) (1 + q) with the f64 nearest to 2^(j/16); or of
    x - `less`, which is small."""
    bits, r, _ = sixteenths(m, x)
    return bits, _rest(m, bits, r if less is None else sub(m, r, less))


def sixteenths(m: PureEmitter[V], x: V) -> tuple[V, V, V]:
    """Bits that end with n, and r as a pair: x is n ln 2 / 16 + r."""
    shifted = fma(m, x, number(m, SIXTEENTHS_E), number(m, SHIFT))
    bits, whole = nearest(m, shifted)
    near = fma(m, whole, number(m, -LN2_16_HIGH), x)  # exact: a multiple of 2^-58 below 2^-5
    r = fma(m, whole, number(m, -LN2_16_LOW), near)
    return bits, r, fma(m, whole, number(m, -LN2_16_LOW), sub(m, near, r))


def _binary(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """The same for 2^x."""
    shifted = add(m, x, number(m, SHIFT / 16))  # the last place of the sum is 1/16
    bits = m.reinterpret(I64, F64, shifted)
    difference = sub(m, x, sub(m, shifted, number(m, SHIFT / 16)))
    return bits, _rest(m, bits, mul(m, difference, number(m, LN2)))


def _rest(m: PureEmitter[V], bits: V, r: V) -> V:
    """q of e^r: it does not fall where r rises, as r has the last places that q has."""
    square = mul(m, r, r)
    first = add(m, r, m.lookup(POWER_TAILS, bits))
    return fma(m, square, polynomial_by_pairs(m, r, square, EXP_SIXTEENTH), first)


def scale_of(m: PureEmitter[V], bits: V) -> V:
    """2^(n/16), a normal number; `bits` end with n = 16 k + j. The words of the table lack j 2^48,
    so the addition of n 2^48 adds k to the exponent."""
    n = m.shl(I64, bits, m.constant(I64, 48))
    return m.reinterpret(F64, I64, m.add(I64, m.lookup(POWER_WORDS, bits), n))


def grown(m: PureEmitter[V], bits: V, q: V) -> V:
    """2^(n/16) (1 + q), a normal number."""
    scale = scale_of(m, bits)
    return fma(m, scale, q, scale)


def lifted_sixteenths(m: PureEmitter[V], bits: V, q: V, is_small: V) -> V:
    """The same, for any n: see `lifted`."""
    j = m.bit_and(I64, bits, m.constant(I64, 15))
    k = m.shr_s(I64, bits, m.constant(I64, 4))
    return lifted(m, grown(m, j, q), k, is_small)


def expm1(m: PureEmitter[V], x: V) -> V:
    """e^x - 1, where the subtraction is exact; -0 for -0."""
    found = unless_zero(m, x, add(m, *less_one(m, x)))
    is_plain = m.compare(F64, Condition.LE, magnitude(m, x), number(m, LARGEST_PLAIN))
    return m.apply_if(m.none(is_plain), PARTS["f64.expm1_rare"], found, x)


def less_one(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """e^x - 1 as a sum, for magnitudes up to 708."""
    bits, r, r_low = sixteenths(m, x)
    scale = scale_of(m, bits)
    difference, error = two_sum(m, scale, number(m, -1.0))
    # The power's part in r may be half of the result, so it is a pair. The difference is larger in
    # magnitude, or 0.
    product, product_low = two_product(m, scale, r)
    high, low = fast_two_sum(m, difference, product)
    square, tail = mul(m, r, r), m.lookup(POWER_TAILS, bits)
    more = add(m, r_low, fma(m, tail, r, tail))
    more = fma(m, square, polynomial_by_pairs(m, r, square, EXP_SIXTEENTH), more)
    return high, add(m, low, fma(m, scale, more, add(m, error, product_low)))


def expm1_rare(m: PureEmitter[V], x: V) -> V:
    """The same of large operands and NaN."""
    is_negative = m.compare(F64, Condition.LT, x, number(m, 0.0))
    return m.select(is_negative, number(m, -1.0), exp_rare(m, x))


def nearest(m: PureEmitter[V], shifted: V) -> tuple[V, V]:
    """The bits of a sum with `SHIFT`, which end with the nearest integer, and that integer as
    f64."""
    return m.reinterpret(I64, F64, shifted), sub(m, shifted, number(m, SHIFT))


def lifted(m: PureEmitter[V], a: V, shifted: V, is_small: V) -> V:
    """`a`, from 1/2 to 2, times 2^k, where k is the last bits of `shifted`, -1080 to 1024: infinite
    if it is too large. An addition to the exponent; where the result is small it is a normal
    number, 2^64 times as large, at first."""
    fraction = m.constant(I64, 52)
    lift = m.select(is_small, m.constant(I64, _LIFT << 52), m.constant(I64, 0))
    exponent = m.add(I64, m.shl(I64, shifted, fraction), lift)
    bits = m.add(I64, m.reinterpret(I64, F64, a), exponent)
    infinite = m.constant(I64, 0x7FF << 52)
    bits = m.select(m.compare(I64, Condition.LT_S, bits, infinite), bits, infinite)
    down = m.select(is_small, number(m, 2.0**-_LIFT), number(m, 1.0))
    return mul(m, m.reinterpret(F64, I64, bits), down)


def scaled(m: PureEmitter[V], a: V, k: V) -> V:
    """`a` times 2^k, for |k| up to 2044: by two powers that are normal numbers each."""
    half = m.shr_s(I64, k, m.constant(I64, 1))
    return mul(m, mul(m, a, power(m, half)), power(m, m.sub(I64, k, half)))


def power(m: PureEmitter[V], k: V) -> V:
    """2^k as f64, for k from -1022 to 1023."""
    biased = m.add(I64, k, m.constant(I64, 1023))
    return m.reinterpret(F64, I64, m.shl(I64, biased, m.constant(I64, 52)))
