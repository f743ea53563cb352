# SPDX-License-Identifier: Apache-2.0
"""Exponential functions of f64.

    x = k ln 2 + r,  |r| <= ln 2 / 2       e^x = 2^k e^r,  e^r = 1 + r + r^2 P(r)

The reduction is that of Cody and Waite ("Software Manual for the Elementary Functions", 1980,
chapter 6), exact by `fma`. e^r is a sum of two f64: `high`, near 1, and a small `tail`.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import (
    EXP,
    EXP2,
    LN2,
    LN2_HIGH,
    LN2_LOW,
    LN2_REST,
    LOG2_E,
)
from ferryvm.isa.mathematics.double.polynomial import polynomial, polynomial_by_fours
from ferryvm.isa.mathematics.double.special import number_unless_nan, unless_zero
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

_LARGEST = 709.782712893384
"""The largest operand whose power of e is finite."""

SHIFT = 1.5 * 2.0**52
"""The last place of a sum with this number is 1: the sum is rounded to an integer."""

_LIFT = 64
"""Binary places by which small results are lifted."""


def exp(m: PureEmitter[V], x: V) -> V:
    """e^x."""
    inside = clamped(m, x, -746.0, 710.0)
    shifted, whole = nearest(m, fma(m, inside, number(m, LOG2_E), number(m, SHIFT)))
    near = fma(m, whole, number(m, -LN2_HIGH), inside)  # exact: LN2_HIGH has 42 bits
    r = fma(m, whole, number(m, -LN2_LOW), near)
    high, low = fast_two_sum(m, number(m, 1.0), near)
    low = fma(m, whole, number(m, -LN2_LOW), low)
    tail = fma(m, mul(m, r, r), polynomial_by_fours(m, r, EXP), low)
    is_small = m.compare(F64, Condition.LT, inside, number(m, -708.0))
    return number_unless_nan(m, x, lifted(m, add(m, high, tail), shifted, is_small))


def exp2(m: PureEmitter[V], x: V) -> V:
    """2^x = 2^k 2^r, |r| <= 1/2; exact for integers."""
    inside = clamped(m, x, -1080.0, 1024.0)
    shifted, whole = nearest(m, add(m, inside, number(m, SHIFT)))
    r = sub(m, inside, whole)
    first = mul(m, r, number(m, LN2))
    rest = fma(m, r, number(m, LN2_REST), fma(m, r, number(m, LN2), negated(m, first)))
    high, low = fast_two_sum(m, number(m, 1.0), first)
    tail = fma(m, mul(m, r, r), polynomial_by_fours(m, r, EXP2), add(m, low, rest))
    is_small = m.compare(F64, Condition.LT, inside, number(m, -1021.0))
    return number_unless_nan(m, x, lifted(m, add(m, high, tail), shifted, is_small))


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
