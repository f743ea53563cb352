# SPDX-License-Identifier: Apache-2.0
"""erf and erfc of f32.

    erf a = a P(a^2),  0 <= a <= 4
    erfc a = exp(-a^2) d Q(d),  d = 1 / (a + 3)

The quotient in the second one (Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x)
exp(x^2) erfc x in 0 <= x < infinity", Mathematics of Computation 36, 1981) makes short polynomials.

erf is a sum of two f32 (`quick`), by pieces, unless that leaves its rounding open.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.exponential import exponential_parts
from ferryvm.isa.mathematics.single.piece import Pieces, piecewise
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_tiny, tested_biased_sum
from ferryvm.isa.mathematics.single.special import (
    at_most,
    magnitude_bits,
    sign_and_magnitude,
    unless_nan,
    with_sign,
)
from ferryvm.isa.mathematics.table import ERF_SUMS, ERF_TERMS_SHORT
from ferryvm.isa.type import F32, F64, I32

V = TypeVar("V")

_ERF = Pieces(1 / 8, ERF_SUMS, ERF_TERMS_SHORT)
_ERF_ERROR = 13 * 2.0**-37
"""More than the error of a quick result."""
_ERF_BOUND = 3.9296875
"""erf is 1 from here on, and the nearest center is the last one."""
_LEAST = 2.0**-60
"""The least operand of a quick result but 0, whose parts are normal numbers."""


def erf_f32(m: PureEmitter[V], x: V) -> V:
    """The error function; -0 for -0."""
    bits, bound = magnitude_bits(m, x), number(m, _ERF_BOUND, F32)
    a = m.reinterpret(F32, I32, bits)
    a = m.select(m.compare(F32, Condition.GT, a, bound), bound, a)  # NaN remains, whose test fails
    found, is_open = tested_biased_sum(m, *piecewise(m, _ERF, a), _ERF_ERROR)
    sign = m.bit_and(I32, m.reinterpret(I32, F32, x), m.constant(I32, 1 << 31))
    found = m.reinterpret(F32, I32, m.bit_or(I32, m.reinterpret(I32, F32, found), sign))
    return m.apply_if(m.any(is_open, is_tiny(m, bits, _LEAST)), PARTS["f32.erf_rare"], found, x)


def erf_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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
