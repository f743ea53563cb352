# SPDX-License-Identifier: Apache-2.0
"""erf and erfc of f32.

    erf a = a P(a^2),  0 <= a <= 4
    erfc a = exp(-a^2) d Q(d),  d = 1 / (a + 3)

The quotient in the second one (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x)
exp(x^2) erfc x in 0 <= x < infinity", Mathematics of Computation 36, 1981) makes short polynomials.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.exponential import exponential_parts
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.special import (
    at_most,
    sign_and_magnitude,
    unless_nan,
    with_sign,
)
from ferryvm.isa.type import F32, F64

V = TypeVar("V")


def erf_f32(m: PureEmitter[V], x: V) -> V:
    """The error function; -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    a = at_most(m, m.promote(magnitude), 4.0)
    p = polynomial(m, m.ffma(F64, a, a, number(m, -8.0)), coefficient.ERF)
    return unless_nan(m, x, with_sign(m, sign, m.demote(m.fmul(F64, a, p))))


def erfc_f32(m: PureEmitter[V], x: V) -> V:
    """The complementary error function."""
    _, magnitude = sign_and_magnitude(m, x)
    a = at_most(m, m.promote(magnitude), 10.1)
    scale, q = exponential_parts(m, m.fsub(F64, number(m, 0.0), m.fmul(F64, a, a)))
    d = m.fdiv(F64, number(m, 1.0), m.fadd(F64, a, number(m, 3.0)))
    t = m.ffma(F64, d, number(m, 8.0), number(m, -1.625))
    p = m.fmul(F64, d, polynomial(m, t, coefficient.ERFC))
    p = m.fmul(F64, p, m.ffma(F64, scale, q, scale))
    is_negative = m.compare(F32, Condition.LT, x, m.constant(F32, 0))
    result = m.select(is_negative, m.fsub(F64, number(m, 2.0), p), p)
    return unless_nan(m, x, m.demote(result))
