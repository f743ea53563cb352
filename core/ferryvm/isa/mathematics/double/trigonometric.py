# SPDX-License-Identifier: Apache-2.0
"""sin, cos and tan of f64, for operands of any magnitude.

    x = k pi/2 + r
    sin r = r + r (w + w S(w)),  w = -r^2 / 8       S(0) = 1/3
    cos r = 1 + w + w C(w),      w = -r^2 / 2       C(0) = 0
    tan r = r + r (w + w T(w)),  w = r^2 / 2        T(0) = -1/3

sin x is sin r or, for odd k, cos r: the coefficients of one polynomial are selected. tan x is tan r
or -1 / tan r. r has a rest; w, the product r w, and the sum with r or 1 are pairs: the power of 2
in w costs no rounding, and little is left for the polynomials, near the extremes of sin nothing: so
sin is monotonic there, too. Huge operands, infinities and NaN have functions of their own, which
compiled code branches over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.angle_reduction import ReducedAngle, reduced, reduced_huge
from ferryvm.isa.mathematics.double.coefficient import COS, SIN, TAN
from ferryvm.isa.mathematics.double.polynomial import horner
from ferryvm.isa.mathematics.double.special import magnitude, with_sign
from ferryvm.isa.mathematics.pair import add, fast_two_sum, fma, mul, negated, number, sub
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_HUGE = 2.0**20
"""Operands from here on have a reduction of their own."""


def sin(m: PureEmitter[V], x: V) -> V:
    """The sine; -0 for -0."""
    a = magnitude(m, x)
    angle = reduced(m, a)
    found = _signed(m, _sine(m, angle), m.bit_xor(I64, _half_turns(m, angle), _bits(m, x)))
    return m.apply_if(_is_huge(m, a), PARTS["f64.sin_huge"], found, x)


def cos(m: PureEmitter[V], x: V) -> V:
    """The cosine: the sine of an angle in the next quadrant."""
    angle = reduced(m, x, more=1)
    found = _signed(m, _sine(m, angle), _half_turns(m, angle))
    return m.apply_if(_is_huge(m, magnitude(m, x)), PARTS["f64.cos_huge"], found, x)


def tan(m: PureEmitter[V], x: V) -> V:
    """The tangent; -0 for -0."""
    a = magnitude(m, x)
    angle = reduced(m, a)
    found = _signed(m, _tangent(m, angle), m.bit_xor(I64, _quarter_turns(m, angle), _bits(m, x)))
    return m.apply_if(_is_huge(m, a), PARTS["f64.tan_huge"], found, x)


def sin_huge(m: PureEmitter[V], x: V) -> V:
    """The sine of an operand from 2^20 on; NaN for an infinity."""
    angle = reduced_huge(m, x)
    signs = m.bit_xor(I64, _half_turns(m, angle), _bits(m, x))
    return _unless_infinite(m, x, _signed(m, _sine(m, angle), signs))


def cos_huge(m: PureEmitter[V], x: V) -> V:
    """The cosine of an operand from 2^20 on; NaN for an infinity."""
    angle = reduced_huge(m, x, more=1)
    return _unless_infinite(m, x, _signed(m, _sine(m, angle), _half_turns(m, angle)))


def tan_huge(m: PureEmitter[V], x: V) -> V:
    """The tangent of an operand from 2^20 on; NaN for an infinity."""
    angle = reduced_huge(m, x)
    signs = m.bit_xor(I64, _quarter_turns(m, angle), _bits(m, x))
    return _unless_infinite(m, x, _signed(m, _tangent(m, angle), signs))


def _sine(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    """The sine of the angle's rest; for odd quarters of a turn its cosine."""
    is_odd = _is_odd(m, angle)
    factor = m.select(is_odd, number(m, 1.0), angle.r)
    scale = m.select(is_odd, number(m, -1 / 2), number(m, -1 / 8))
    terms = [
        m.select(is_odd, number(m, of_cosine), number(m, of_sine))
        for of_cosine, of_sine in zip(COS, SIN, strict=True)
    ]
    square = _square(m, angle.r, scale)
    # Half of the derivative is nearly -r / 2 or 1/2 - r^2 / 4.
    half_cosine = fma(m, square.w, number(m, 2.0), number(m, 0.5))
    half_more = mul(m, angle.rest, m.select(is_odd, square.scaled, half_cosine))
    return add(m, *_sum(m, factor, square, terms, half_more))


def _tangent(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    """The tangent of the angle's rest; for odd quarters of a turn its inverse."""
    square = _square(m, angle.r, number(m, 1 / 2))
    terms = [number(m, each) for each in TAN]
    # The derivative 1 + tan^2 r is nearly 1 + r^2 / (pi/4)^2.
    half_derivative = fma(m, square.w, number(m, 16 / math.pi**2), number(m, 0.5))
    half_more = mul(m, angle.rest, half_derivative)
    high, low = fast_two_sum(m, *_sum(m, angle.r, square, terms, half_more))
    inverse = m.fdiv(F64, number(m, 1.0), high)
    minus = negated(m, inverse)
    left = fma(m, minus, low, fma(m, minus, high, number(m, 1.0)))
    return m.select(_is_odd(m, angle), fma(m, left, inverse, inverse), high)


class _Square(NamedTuple, Generic[V]):
    """A multiple of r^2 as a pair."""

    scaled: V
    """The multiple of r."""
    w: V
    low: V


def _square(m: PureEmitter[V], r: V, scale: V) -> _Square[V]:
    """`scale`: a power of 2, perhaps with a sign."""
    scaled = mul(m, r, scale)
    w = mul(m, scaled, r)
    return _Square(scaled, w, fma(m, scaled, r, negated(m, w)))


def _sum(
    m: PureEmitter[V], factor: V, square: _Square[V], terms: Sequence[V], half_more: V
) -> tuple[V, V]:
    """`factor` (1 + w + w P(w)) + 2 `half_more`, as a sum of which the second part is small."""
    w = square.w
    others = fma(m, w, horner(m, w, terms), square.low)
    high = fma(m, factor, w, factor)
    low = fma(m, factor, w, sub(m, factor, high))
    return high, fma(m, factor, others, fma(m, half_more, number(m, 2.0), low))


def _is_odd(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    last = m.bit_and(I64, angle.quadrant, m.constant(I64, 1))
    return m.compare(I64, Condition.NE, last, m.constant(I64, 0))


def _half_turns(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    """An integer whose first bit says whether the number of half turns is odd."""
    return m.shl(I64, angle.quadrant, m.constant(I64, 62))


def _quarter_turns(m: PureEmitter[V], angle: ReducedAngle[V]) -> V:
    """The same of quarters of a turn."""
    return m.shl(I64, angle.quadrant, m.constant(I64, 63))


def _signed(m: PureEmitter[V], a: V, signs: V) -> V:
    """`a` with its sign inverted where the first bit of an integer is set."""
    return with_sign(m, m.bit_and(I64, signs, m.constant(I64, 1 << 63)), a)


def _bits(m: PureEmitter[V], x: V) -> V:
    return m.reinterpret(I64, F64, x)


def _is_huge(m: PureEmitter[V], a: V) -> V:
    """True if the magnitude `a` is huge or NaN."""
    return m.none(m.compare(F64, Condition.LT, a, number(m, _HUGE)))


def _unless_infinite(m: PureEmitter[V], x: V, found: V) -> V:
    is_finite = m.compare(F64, Condition.LT, magnitude(m, x), number(m, math.inf))
    return m.select(is_finite, found, m.constant(F64, CANONICAL_NAN[F64]))
