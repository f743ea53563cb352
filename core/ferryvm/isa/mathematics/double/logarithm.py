# SPDX-License-Identifier: Apache-2.0
"""Logarithms of f64."""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.coefficient import LN2_HIGH, LN2_LOW, LOG
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

_LEAST_NORMAL = 2.0**-1022
_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The bits of the square root of one half."""


def log(m: PureEmitter[V], x: V) -> V:
    """ln(x) = k ln(2) + ln(1 + f), where 1 + f is between the roots of 1/2 and of 2.

    With s = f / (2 + f), ln(1 + f) = f - f^2/2 + s (f^2/2 + s^2 R(s^2)) (the form of Ng's log in
    fdlibm, 1993); here the sum of its first two terms and of k ln(2) is a pair.
    """
    is_small = m.compare(F64, Condition.LT, x, real(m, _LEAST_NORMAL))
    normal = m.select(is_small, mul(m, x, real(m, 2.0**54)), x)
    bits = m.reinterpret(I64, F64, normal)
    above = m.sub(I64, bits, m.constant(I64, _ROOT_HALF))
    exponent = m.shr_s(I64, above, m.constant(I64, 52))
    fraction = m.bit_and(I64, above, m.constant(I64, (1 << 52) - 1))
    f = sub(
        m,
        m.reinterpret(F64, I64, m.add(I64, fraction, m.constant(I64, _ROOT_HALF))),
        real(m, 1.0),
    )
    shift = m.select(is_small, m.constant(I64, 54), m.constant(I64, 0))
    k = m.to_float_s(F64, I64, m.sub(I64, exponent, shift))

    s = m.fdiv(F64, f, add(m, f, real(m, 2.0)))
    z = mul(m, s, s)
    half = mul(m, f, real(m, 0.5))
    square = mul(m, half, f)
    square_low = fma(m, half, f, negated(m, square))
    inner = fma(m, z, polynomial(m, z, LOG), square)
    first, first_low = fast_two_sum(m, f, negated(m, square))
    high, high_low = fast_two_sum(m, mul(m, k, real(m, LN2_HIGH)), first)  # an exact product
    low = sub(m, add(m, high_low, first_low), square_low)
    low = fma(m, s, inner, fma(m, k, real(m, LN2_LOW), low))
    found = add(m, high, low)

    zero, infinity = real(m, 0.0), real(m, math.inf)
    found = m.select(m.compare(F64, Condition.EQ, x, zero), real(m, -math.inf), found)
    found = m.select(m.compare(F64, Condition.EQ, x, infinity), infinity, found)
    is_number = m.compare(F64, Condition.GE, x, zero)  # false for NaN
    return canonical(m, F64, m.select(is_number, found, real(m, math.nan)))
