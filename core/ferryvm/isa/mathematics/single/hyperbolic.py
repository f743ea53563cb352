# SPDX-License-Identifier: Apache-2.0
"""sinh, cosh and tanh of f32, by e^|x| and e^|x| - 1 in f64.

E = e^|x| - 1     sinh |x| = (E + E / (E + 1)) / 2,     tanh(|x| / 2) = E / (E + 2)

sinh and cosh are sums of two f32 (`quick`) unless that leaves their rounding open:

|x| = n ln 2 / 32 + r                F = 2^(n/32) + 2^(-n/32),  G = 2^(n/32) - 2^(-n/32)
2 sinh |x| = F sinh r + G cosh r     2 cosh x = F cosh r + G sinh r
"""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    two_product,
)
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.exponential import (
    exponential_parts,
    scale_of,
    thirty_seconds,
)
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_outside, tested_sum
from ferryvm.isa.mathematics.single.special import (
    at_most,
    magnitude_bits,
    sign_and_magnitude,
    unless_nan,
    with_sign,
)
from ferryvm.isa.mathematics.table import EXP_RESTS
from ferryvm.isa.type import F32, F64, I32

V = TypeVar("V")

_LEAST_SINH, _LARGEST = 2.0**-60, 60.0
"""Bounds of operands of quick results, whose parts are normal numbers."""
_QUICK_ERROR = 2.0**-35
"""More than the error of a quick result."""


def _less_one(m: PureEmitter[V], a: V) -> V:
    """e^a - 1."""
    scale, q = exponential_parts(m, a)
    return m.ffma(F64, scale, q, m.fsub(F64, scale, number(m, 1.0)))


def sinh_f32(m: PureEmitter[V], x: V) -> V:
    """Hyperbolic sine; -0 for -0."""
    bits = magnitude_bits(m, x)
    parts = _parts(m, bits)
    product, error = two_product(m, parts.f, parts.r, F32)
    # F r is less than G, or G is 0.
    high, low = fast_two_sum(m, parts.g, product, F32)
    rest = fma(m, parts.f, parts.sinh_rest, error, F32)
    rest = fma(m, parts.f_low, parts.r, add(m, rest, parts.g_low, F32), F32)
    rest = fma(m, add(m, parts.g, parts.g_low, F32), parts.cosh_rest, rest, F32)
    half = number(m, 0.5, F32)
    found, is_open = tested_sum(m, high, add(m, low, rest, F32), _QUICK_ERROR)
    sign = m.bit_and(I32, m.reinterpret(I32, F32, x), m.constant(I32, 1 << 31))
    found = m.bit_or(I32, m.reinterpret(I32, F32, mul(m, found, half, F32)), sign)
    is_rare = m.any(is_open, is_outside(m, bits, _LEAST_SINH, _LARGEST))
    return m.apply_if(is_rare, PARTS["f32.sinh_rare"], m.reinterpret(F32, I32, found), x)


def cosh_f32(m: PureEmitter[V], x: V) -> V:
    """Hyperbolic cosine."""
    bits = magnitude_bits(m, x)
    parts = _parts(m, bits)
    product, error = two_product(m, parts.g, parts.r, F32)
    high, low = fast_two_sum(m, parts.f, product, F32)
    rest = fma(m, parts.g, parts.sinh_rest, error, F32)
    rest = fma(m, parts.g_low, parts.r, add(m, rest, parts.f_low, F32), F32)
    rest = fma(m, parts.f, parts.cosh_rest, rest, F32)
    found, is_open = tested_sum(m, high, add(m, low, rest, F32), _QUICK_ERROR)
    is_rare = m.any(is_open, is_outside(m, bits, 0.0, _LARGEST))
    return m.apply_if(is_rare, PARTS["f32.cosh_rare"], mul(m, found, number(m, 0.5, F32), F32), x)


@dataclasses.dataclass(frozen=True)
class _Parts(Generic[V]):
    """Of a number n ln 2 / 32 + r: F and G as sums, r, what cosh r has above 1, and sinh of the
    whole rest above r."""

    f: V
    f_low: V
    g: V
    g_low: V
    r: V
    cosh_rest: V
    sinh_rest: V


def _parts(m: PureEmitter[V], magnitude: V) -> _Parts[V]:
    """The parts of a number, given as bits."""
    bits, high, low = thirty_seconds(m, m.reinterpret(F32, I32, magnitude))
    minus = m.sub(I32, m.constant(I32, 0), bits)
    grows, shrinks = scale_of(m, bits), scale_of(m, minus)
    f, f_low = fast_two_sum(m, grows, shrinks, F32)
    g, g_low = fast_two_sum(m, grows, negated(m, shrinks, F32), F32)
    more, less = mul(m, grows, m.lookup(EXP_RESTS, bits), F32), m.lookup(EXP_RESTS, minus)
    f_low = add(m, f_low, fma(m, shrinks, less, more, F32), F32)
    g_low = add(m, g_low, fma(m, negated(m, shrinks, F32), less, more, F32), F32)
    r = add(m, high, low, F32)
    square = mul(m, r, r, F32)
    cosh_rest = mul(m, square, polynomial(m, square, coefficient.COSH_QUICK, F32), F32)
    cube, factor = mul(m, square, r, F32), polynomial(m, square, coefficient.SINH_QUICK, F32)
    return _Parts(f, f_low, g, g_low, high, cosh_rest, fma(m, cube, factor, low, F32))


def sinh_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    sign, magnitude = sign_and_magnitude(m, x)
    e = _less_one(m, at_most(m, m.promote(magnitude), 120.0))
    twice = m.fadd(F64, e, m.fdiv(F64, e, m.fadd(F64, e, number(m, 1.0))))
    result = m.demote(m.fmul(F64, twice, number(m, 0.5)))
    return unless_nan(m, x, with_sign(m, sign, result))


def cosh_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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
