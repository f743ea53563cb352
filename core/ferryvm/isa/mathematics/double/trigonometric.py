# SPDX-License-Identifier: Apache-2.0
"""sin, cos and tan of f64, for operands of any magnitude.

    x = k pi/2 + r + rest                          (`ferryvm.isa.mathematics.double.angle_reduction`)
    sin r = r + r^3 S(r^2)        cos r = 1 - r^2/2 + r^4 C(r^2)

An odd k exchanges the two, and its second bit is a sign. Huge operands, infinities and NaN have
functions of their own, which compiled code branches over.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Generic, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.angle_reduction import (
    ReducedAngle,
    reduced_angle,
    reduced_huge_angle,
)
from ferryvm.isa.mathematics.double.coefficient import COS, SIN
from ferryvm.isa.mathematics.double.polynomial import polynomial
from ferryvm.isa.mathematics.double.special import unless_zero
from ferryvm.isa.mathematics.pair import add, fast_two_sum, fma, mul, negated, number, sub
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_HUGE = 2.0**20
"""Operands from here on have a reduction of their own."""
_SIGN = 1 << 63


def sin(m: PureEmitter[V], x: V) -> V:
    """The sine; -0 for -0."""
    found = unless_zero(m, x, _sine(m, reduced_angle(m, x)))
    return m.apply_if(_is_huge(m, x), PARTS["f64.sin_huge"], found, x)


def cos(m: PureEmitter[V], x: V) -> V:
    """The cosine: the sine of an angle in the next quadrant."""
    found = _sine(m, reduced_angle(m, x, more=1))
    return m.apply_if(_is_huge(m, x), PARTS["f64.cos_huge"], found, x)


def tan(m: PureEmitter[V], x: V) -> V:
    """The tangent; -0 for -0."""
    found = unless_zero(m, x, _tangent(m, reduced_angle(m, x)))
    return m.apply_if(_is_huge(m, x), PARTS["f64.tan_huge"], found, x)


def sin_huge(m: PureEmitter[V], x: V) -> V:
    """The sine of an operand from 2^20 on; NaN for an infinity."""
    return _unless_infinite(m, x, _with_sign(m, _sine(m, reduced_huge_angle(m, x)), x))


def cos_huge(m: PureEmitter[V], x: V) -> V:
    """The cosine of an operand from 2^20 on; NaN for an infinity."""
    angle = reduced_huge_angle(m, x)
    next_one = m.add(I64, angle.quadrant, m.constant(I64, 1))
    return _unless_infinite(m, x, _sine(m, dataclasses.replace(angle, quadrant=next_one)))


def tan_huge(m: PureEmitter[V], x: V) -> V:
    """The tangent of an operand from 2^20 on; NaN for an infinity."""
    return _unless_infinite(m, x, _with_sign(m, _tangent(m, reduced_huge_angle(m, x)), x))


@dataclasses.dataclass(frozen=True)
class _Parts(Generic[V]):
    """sin and cos of r + rest, each as a sum of two f64 of which the second one is small."""

    sine: V
    sine_low: V
    cosine: V
    cosine_low: V


def _parts(m: PureEmitter[V], angle: ReducedAngle[V]) -> _Parts[V]:
    r, rest = angle.r, angle.rest
    square = mul(m, r, r)
    missing = fma(m, r, r, negated(m, square))
    cosine = fma(m, square, number(m, -0.5), number(m, 1.0))
    # The derivatives of sin r and cos r are nearly 1 - r^2/2 and -r.
    cube = fma(m, r, square, mul(m, r, missing))
    small = fma(m, mul(m, cube, square), polynomial(m, square, SIN[1:]), mul(m, rest, cosine))
    sine_low = fma(m, cube, number(m, SIN[0]), small)
    error = fma(m, square, number(m, -0.5), sub(m, number(m, 1.0), cosine))
    twice = fma(m, add(m, r, r), rest, missing)
    error = fma(m, twice, number(m, -0.5), error)
    cosine_low = fma(m, mul(m, square, square), polynomial(m, square, COS), error)
    return _Parts(r, sine_low, cosine, cosine_low)


def _sine(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    parts = _parts(m, angle)
    is_odd = _is_odd(m, angle.quadrant)
    high = m.select(is_odd, parts.cosine, parts.sine)
    low = m.select(is_odd, parts.cosine_low, parts.sine_low)
    half_turns = m.shr_u(I64, angle.quadrant, m.constant(I64, 1))
    return _negated_if_odd(m, add(m, high, low), half_turns)


def _tangent(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    """The quotient of two pairs; for odd k, minus the inverse one."""
    parts = _parts(m, angle)
    sine, sine_low = fast_two_sum(m, parts.sine, parts.sine_low)
    cosine, cosine_low = fast_two_sum(m, parts.cosine, parts.cosine_low)
    is_odd = _is_odd(m, angle.quadrant)
    over, over_low = m.select(is_odd, cosine, sine), m.select(is_odd, cosine_low, sine_low)
    under, under_low = m.select(is_odd, sine, cosine), m.select(is_odd, sine_low, cosine_low)
    inverse = m.fdiv(F64, number(m, 1.0), under)
    quotient = mul(m, over, inverse)
    minus = negated(m, quotient)
    left = fma(m, minus, under_low, add(m, fma(m, minus, under, over), over_low))
    return _negated_if_odd(m, fma(m, left, inverse, quotient), angle.quadrant)


def _is_odd(m: PureEmitter[V], quadrant: V) -> V:
    last = m.bit_and(I64, quadrant, m.constant(I64, 1))
    return m.compare(I64, Condition.NE, last, m.constant(I64, 0))


def _negated_if_odd(m: PureEmitter[V], a: V, number_: V) -> V:
    """`a` with the last bit of an integer added to its sign."""
    sign = m.shl(I64, number_, m.constant(I64, 63))
    return m.reinterpret(F64, I64, m.bit_xor(I64, m.reinterpret(I64, F64, a), sign))


def _with_sign(m: PureEmitter[V], a: V, x: V) -> V:
    """`a`, negated if `x` is negative."""
    return _negated_if_odd(m, a, m.shr_u(I64, m.reinterpret(I64, F64, x), m.constant(I64, 63)))


def _magnitude(m: PureEmitter[V], x: V) -> V:
    bits = m.bit_and(I64, m.reinterpret(I64, F64, x), m.constant(I64, _SIGN - 1))
    return m.reinterpret(F64, I64, bits)


def _is_huge(m: PureEmitter[V], x: V) -> V:
    """True for NaN, too."""
    return m.none(m.compare(F64, Condition.LT, _magnitude(m, x), number(m, _HUGE)))


def _unless_infinite(m: PureEmitter[V], x: V, found: V) -> V:
    is_finite = m.compare(F64, Condition.LT, _magnitude(m, x), number(m, math.inf))
    return m.select(is_finite, found, m.constant(F64, CANONICAL_NAN[F64]))
