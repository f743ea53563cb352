# SPDX-License-Identifier: Apache-2.0
"""sinh, cosh and tanh of f32, by e^|x| and e^|x| - 1 in f64.

E = e^|x| - 1     sinh |x| = (E + E / (E + 1)) / 2,     tanh(|x| / 2) = E / (E + 2)
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.mathematics.single.exponential import exponential_parts
from ferryvm.isa.mathematics.single.special import (
    at_most,
    sign_and_magnitude,
    unless_nan,
    with_sign,
)
from ferryvm.isa.type import F64

V = TypeVar("V")


def _less_one(m: PureEmitter[V], a: V) -> V:
    """e^a - 1."""
    scale, q = exponential_parts(m, a)
    return m.ffma(F64, scale, q, m.fsub(F64, scale, number(m, 1.0)))


def sinh_f32(m: PureEmitter[V], x: V) -> V:
    """Hyperbolic sine; -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    e = _less_one(m, at_most(m, m.promote(magnitude), 120.0))
    twice = m.fadd(F64, e, m.fdiv(F64, e, m.fadd(F64, e, number(m, 1.0))))
    result = m.demote(m.fmul(F64, twice, number(m, 0.5)))
    return unless_nan(m, x, with_sign(m, sign, result))


def cosh_f32(m: PureEmitter[V], x: V) -> V:
    """Hyperbolic cosine."""
    _, magnitude = sign_and_magnitude(m, x)
    scale, q = exponential_parts(m, at_most(m, m.promote(magnitude), 120.0))
    e = m.ffma(F64, scale, q, scale)
    twice = m.fadd(F64, e, m.fdiv(F64, number(m, 1.0), e))
    return unless_nan(m, x, m.demote(m.fmul(F64, twice, number(m, 0.5))))


def tanh_f32(m: PureEmitter[V], x: V) -> V:
    """Hyperbolic tangent; -0 for -0."""
    sign, magnitude = sign_and_magnitude(m, x)
    a = at_most(m, m.promote(magnitude), 20.0)
    e = _less_one(m, m.fadd(F64, a, a))
    result = m.demote(m.fdiv(F64, e, m.fadd(F64, e, number(m, 2.0))))
    return unless_nan(m, x, with_sign(m, sign, result))
