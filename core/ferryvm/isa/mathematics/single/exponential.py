# SPDX-License-Identifier: Apache-2.0
"""exp, exp2 and expm1 of f32.

    x = k ln 2 + r,  |r| <= ln 2 / 2       exp x = 2^k (1 + q(r)),  q(r) = r P(r) = exp r - 1

The last step is one fused operation, so the error of q counts only in so far as |q| < 1/2.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics.pair import clamped, number
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.special import excepting, unless_nan, zero_as_is
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_ROUNDER = float(3 * 2**51 + 1023)
"""Added to a number below 2^51 it leaves, in the low bits of the sum, the nearest integer plus the
bias of exponents."""


def power_of_two(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """The integer k nearest to an f64 `x`, as f64, and 2^k; k is a normal exponent."""
    shifted = m.fadd(F64, x, number(m, _ROUNDER))
    k = m.fsub(F64, shifted, number(m, _ROUNDER))
    exponent = m.shl(I64, m.reinterpret(I64, F64, shifted), m.constant(I64, 52))
    return k, m.reinterpret(F64, I64, exponent)


def exponential_parts(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """2^k and q of exp x = 2^k (1 + q), for an f64 `x` between -700 and 700."""
    k, scale = power_of_two(m, m.fmul(F64, x, m.constant(F64, coefficient.LOG2_E)))
    # The first part of ln 2 has few bits, so that the first difference is exact.
    r = m.ffma(F64, k, m.constant(F64, coefficient.MINUS_LN2[0]), x)
    r = m.ffma(F64, k, m.constant(F64, coefficient.MINUS_LN2[1]), r)
    return scale, m.fmul(F64, r, polynomial(m, r, coefficient.EXP))


def exp_f32(m: PureEmitter[V], x: V) -> V:
    """e^x."""
    scale, q = exponential_parts(m, clamped(m, m.promote(x), -120.0, 120.0))
    return unless_nan(m, x, m.demote(m.ffma(F64, scale, q, scale)))


def exp2_f32(m: PureEmitter[V], x: V) -> V:
    """2^x; exact for integers."""
    z = clamped(m, m.promote(x), -160.0, 160.0)
    k, scale = power_of_two(m, z)
    r = m.fsub(F64, z, k)
    q = m.fmul(F64, r, polynomial(m, r, coefficient.EXP2))
    result = excepting(m, x, m.demote(m.ffma(F64, scale, q, scale)), coefficient.EXP2_EXCEPTIONS)
    return unless_nan(m, x, result)


def expm1_f32(m: PureEmitter[V], x: V) -> V:
    """e^x - 1; -0 for -0."""
    scale, q = exponential_parts(m, clamped(m, m.promote(x), -120.0, 120.0))
    result = m.ffma(F64, scale, q, m.fsub(F64, scale, number(m, 1.0)))
    return zero_as_is(m, x, unless_nan(m, x, m.demote(result)))
