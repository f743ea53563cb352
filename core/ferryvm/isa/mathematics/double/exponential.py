# SPDX-License-Identifier: Apache-2.0
"""Exponential functions of f64."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import EXP, LN2_HIGH, LN2_LOW, LOG2_E
from ferryvm.isa.mathematics.double.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    negated,
    polynomial,
    real,
    sub,
)
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_LARGEST, _LEAST = 710.0, -746.0
"""Operands beyond which the result is an infinity, or rounds to zero."""


def exp(m: PureEmitter[V], x: V) -> V:
    """e^x = 2^k e^r, where k is an integer and |r| is at most ln(2)/2.

    The reduction is that of Cody and Waite ("Software Manual for the Elementary Functions", 1980,
    chapter 6), exact by `fma`; e^r = 1 + r + r^2 P(r), whose first two terms are a pair.
    """
    inside = m.select(m.compare(F64, Condition.LT, x, real(m, _LARGEST)), x, real(m, _LARGEST))
    inside = m.select(m.compare(F64, Condition.GT, x, real(m, _LEAST)), inside, real(m, _LEAST))
    k = m.fnearest(F64, mul(m, inside, real(m, LOG2_E)))
    minus = negated(m, k)
    near = fma(m, minus, real(m, LN2_HIGH), inside)  # exact: LN2_HIGH has 42 bits
    r = fma(m, minus, real(m, LN2_LOW), near)
    rest = fma(m, minus, real(m, LN2_LOW), sub(m, near, r))
    high, low = fast_two_sum(m, real(m, 1.0), r)
    low = add(m, low, fma(m, rest, r, rest))  # e^(r + rest) is nearly e^r + rest (1 + r)
    tail = fma(m, mul(m, r, r), polynomial(m, r, EXP), low)
    # NaN has been replaced by a number, and comes back here.
    found = _scaled(m, add(m, high, tail), m.to_int_s(I64, F64, k))
    return canonical(m, F64, m.select(m.compare(F64, Condition.NE, x, x), x, found))


def _scaled(m: PureEmitter[V], a: V, k: V) -> V:
    """`a` times 2^k, for |k| up to 2044: by two powers that are normal numbers each."""
    half = m.shr_s(I64, k, m.constant(I64, 1))
    return mul(m, mul(m, a, _power(m, half)), _power(m, m.sub(I64, k, half)))


def _power(m: PureEmitter[V], k: V) -> V:
    """2^k as f64, for k from -1022 to 1023."""
    biased = m.add(I64, k, m.constant(I64, 1023))
    return m.reinterpret(F64, I64, m.shl(I64, biased, m.constant(I64, 52)))
