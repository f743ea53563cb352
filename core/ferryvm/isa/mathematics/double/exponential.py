# SPDX-License-Identifier: Apache-2.0
"""Exponential functions of f64.

    x = (16 k + j) ln 2 / 16 + r,  |r| <= ln 2 / 32        e^x = 2^k 2^(j/16) e^r,  e^r = 1 + r + r^2 P(r)

The reduction is that of Cody and Waite ("Software Manual for the Elementary Functions", 1980,
chapter 6), exact by `fma`; the powers 2^(j/16) are in a table, with their errors (Tang, "Table-driven
implementation of the exponential function in IEEE floating-point arithmetic", ACM Transactions on
Mathematical Software 15(2), 1989). expm1 and others reduce to |r| <= ln 2 / 2, with no table: e^r is a
sum of two f64 then, `high`, near 1, and a small `tail`.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import (
    EXP,
    EXP_SIXTEENTH,
    LN2,
    LN2_16_HIGH,
    LN2_16_LOW,
    LN2_HIGH,
    LN2_LOW,
    LOG2_E,
    SIXTEENTHS_E,
)
from ferryvm.isa.mathematics.double.polynomial import polynomial, polynomial_by_pairs
from ferryvm.isa.mathematics.double.special import magnitude, number_unless_nan, unless_zero
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
from ferryvm.isa.mathematics.table import POWER_TAILS, POWER_WORDS
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_LARGEST = 709.782712893384
"""The largest operand whose power of e is finite."""

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
    shifted = fma(m, x, number(m, SIXTEENTHS_E), number(m, SHIFT))
    bits, whole = nearest(m, shifted)
    near = fma(m, whole, number(m, -LN2_16_HIGH), x)  # exact: a multiple of 2^-58 below 2^-5
    r = fma(m, whole, number(m, -LN2_16_LOW), near)
    return bits, _rest(m, bits, r if less is None else sub(m, r, less))


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
    """2^(n/16), a normal number; `bits` end with n = 16 k + j. The words of the table lack j 2^48, so
    the addition of n 2^48 adds k to the exponent."""
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
    k, high, tail = _parts(m, clamped(m, x, -60.0, 710.0), is_precise=True)
    difference, error = two_sum(m, scaled(m, high, k), number(m, -1.0))
    found = add(m, difference, add(m, error, scaled(m, tail, k)))
    found = unless_zero(m, x, found)
    # The sum above is no number where the power is infinite.
    is_large = m.compare(F64, Condition.GT, x, number(m, _LARGEST))
    return number_unless_nan(m, x, m.select(is_large, number(m, float("inf")), found))


def nearest(m: PureEmitter[V], shifted: V) -> tuple[V, V]:
    """The bits of a sum with `SHIFT`, which end with the nearest integer, and that integer as f64."""
    return m.reinterpret(I64, F64, shifted), sub(m, shifted, number(m, SHIFT))


def lifted(m: PureEmitter[V], a: V, shifted: V, is_small: V) -> V:
    """`a`, from 1/2 to 2, times 2^k, where k is the last bits of `shifted`, -1080 to 1024: infinite if
    it is too large. An addition to the exponent; where the result is small it is a normal number, 2^64
    times as large, at first."""
    fraction = m.constant(I64, 52)
    lift = m.select(is_small, m.constant(I64, _LIFT << 52), m.constant(I64, 0))
    exponent = m.add(I64, m.shl(I64, shifted, fraction), lift)
    bits = m.add(I64, m.reinterpret(I64, F64, a), exponent)
    infinite = m.constant(I64, 0x7FF << 52)
    bits = m.select(m.compare(I64, Condition.LT_S, bits, infinite), bits, infinite)
    down = m.select(is_small, number(m, 2.0**-_LIFT), number(m, 1.0))
    return mul(m, m.reinterpret(F64, I64, bits), down)


def reduced(m: PureEmitter[V], x: V) -> tuple[V, V, V]:
    """k as f64, and r as a pair."""
    whole = m.fnearest(F64, mul(m, x, number(m, LOG2_E)))
    minus = negated(m, whole)
    near = fma(m, minus, number(m, LN2_HIGH), x)  # exact: LN2_HIGH has 42 bits
    r = fma(m, minus, number(m, LN2_LOW), near)
    return whole, r, fma(m, minus, number(m, LN2_LOW), sub(m, near, r))


def _parts(m: PureEmitter[V], x: V, is_precise: bool = False) -> tuple[V, V, V]:
    """k as i64, and e^r as high and tail."""
    whole, r, rest = reduced(m, x)
    return m.to_int_s(I64, F64, whole), *near_one(m, r, rest, is_precise)


def near_one(m: PureEmitter[V], r: V, rest: V, is_precise: bool = False) -> tuple[V, V]:
    """e^(r + rest) as high and tail. High has r^2/2, too, where the error of the tail counts more."""
    high, low = fast_two_sum(m, number(m, 1.0), r)
    low = add(m, low, fma(m, rest, r, rest))  # e^(r + rest) is nearly e^r + rest (1 + r)
    if is_precise:
        half = mul(m, r, number(m, EXP[0]))  # exact: that is 1/2
        square = mul(m, half, r)
        low = add(m, low, fma(m, half, r, negated(m, square)))
        high, error = fast_two_sum(m, high, square)
        cubic = mul(m, mul(m, r, square), number(m, 2.0))
        tail = fma(m, cubic, polynomial(m, r, EXP[1:]), add(m, low, error))
    else:
        tail = fma(m, mul(m, r, r), polynomial(m, r, EXP), low)
    return high, tail


def scaled(m: PureEmitter[V], a: V, k: V) -> V:
    """`a` times 2^k, for |k| up to 2044: by two powers that are normal numbers each."""
    half = m.shr_s(I64, k, m.constant(I64, 1))
    return mul(m, mul(m, a, power(m, half)), power(m, m.sub(I64, k, half)))


def power(m: PureEmitter[V], k: V) -> V:
    """2^k as f64, for k from -1022 to 1023."""
    biased = m.add(I64, k, m.constant(I64, 1023))
    return m.reinterpret(F64, I64, m.shl(I64, biased, m.constant(I64, 52)))
