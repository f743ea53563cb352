# SPDX-License-Identifier: Apache-2.0
"""Hyperbolic functions of f64.

    |x| = n ln 2 / 16 + r                F = 2^(n/16) + 2^(-n/16),  G = 2^(n/16) - 2^(-n/16)
    2 sinh |x| = F sinh r + G cosh r     2 cosh x = F cosh r + G sinh r

(addition theorems: Abramowitz and Stegun, 4.5.24 and 4.5.25). sinh r = r + r^3 S(r^2) and
cosh r = 1 + r^2 C(r^2) lose nothing to cancellation, so small operands need no case of their own: n
is 0, and F = 2, G = 0.
"""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.coefficient import COSH, SINH
from ferryvm.isa.mathematics.double.exponential import (
    LARGEST_PLAIN,
    less_one,
    lifted_sixteenths,
    natural,
    scale_of,
    sixteenths,
)
from ferryvm.isa.mathematics.double.polynomial import horner
from ferryvm.isa.mathematics.double.special import (
    magnitude,
    number_unless_nan,
    sign,
    with_sign,
)
from ferryvm.isa.mathematics.pair import (
    add,
    clamped,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    sub,
    two_product,
    two_sum,
)
from ferryvm.isa.mathematics.table import POWER_TAILS
from ferryvm.isa.type import F64, I64

V = TypeVar("V")

_LARGEST = 710.7
"""An operand beyond which sinh and cosh are infinite."""

_ONE = 20.0
"""An operand beyond which tanh is 1."""


def sinh(m: PureEmitter[V], x: V) -> V:
    """(e^x - e^-x) / 2; -0 for -0."""
    a = magnitude(m, x)
    parts = _parts(m, a)
    # F r may be half of the result, so it is a pair; G is 0 or larger.
    product, error = two_product(m, parts.f, parts.r)
    high, low = fast_two_sum(m, parts.g, product)
    rest = fma(m, parts.f, add(m, parts.sinh_rest, parts.r_low), add(m, error, parts.g_low))
    rest = fma(m, parts.g, parts.cosh_rest, fma(m, parts.f_low, parts.r, rest))
    found = mul(m, add(m, high, add(m, low, rest)), number(m, 0.5))
    return _unless_large(m, x, a, "f64.sinh_rare", with_sign(m, sign(m, x), found))


def cosh(m: PureEmitter[V], x: V) -> V:
    """(e^x + e^-x) / 2."""
    a = magnitude(m, x)
    parts = _parts(m, a)
    rest = fma(m, parts.f, parts.cosh_rest, parts.f_low)
    rest = fma(m, parts.g, add(m, parts.r, parts.sinh_rest), rest)
    found = mul(m, add(m, parts.f, rest), number(m, 0.5))
    return _unless_large(m, x, a, "f64.cosh_rare", found)


def _unless_large(m: PureEmitter[V], x: V, a: V, name: str, found: V) -> V:
    is_plain = m.compare(F64, Condition.LE, a, number(m, LARGEST_PLAIN))
    return m.apply_if(m.none(is_plain), PARTS[name], found, x)


def sinh_rare(m: PureEmitter[V], x: V) -> V:
    """The same of large operands and NaN."""
    found = with_sign(m, sign(m, x), _half_power(m, magnitude(m, x)))
    return number_unless_nan(m, x, found)


def cosh_rare(m: PureEmitter[V], x: V) -> V:
    """The same of large operands and NaN."""
    return number_unless_nan(m, x, _half_power(m, magnitude(m, x)))


def _half_power(m: PureEmitter[V], a: V) -> V:
    """e^a / 2 of a large number."""
    inside = clamped(m, a, 0.0, _LARGEST)
    bits, q = natural(m, inside)
    is_small = m.compare(F64, Condition.LT, inside, number(m, 0.0))
    return lifted_sixteenths(m, m.sub(I64, bits, m.constant(I64, 16)), q, is_small)


def tanh(m: PureEmitter[V], x: V) -> V:
    """(e^2a - 1) / (e^2a + 1) with the sign of x, a = |x|; -0 for -0. From 5/8 on 1 - 2 / (e^2a +
    1), whose rounding errors get smaller where the function gets flatter, so that it is
    monotonic."""
    a = clamped(m, magnitude(m, x), 0.0, _ONE)
    less, less_low = fast_two_sum(m, *less_one(m, add(m, a, a)))
    more, more_low = two_sum(m, less, number(m, 2.0))
    is_small = m.compare(F64, Condition.LT, a, number(m, 0.625))
    dividend = m.select(is_small, less, number(m, 2.0))
    dividend_low = m.select(is_small, less_low, number(m, 0.0))
    inverse = m.fdiv(F64, number(m, 1.0), more)
    quotient = mul(m, dividend, inverse)
    # What the quotient lacks: (dividend + dividend_low - quotient (more + more_low + less_low)) /
    # more.
    minus = negated(m, quotient)
    left = add(m, fma(m, minus, more, dividend), dividend_low)
    left = mul(m, fma(m, minus, add(m, more_low, less_low), left), inverse)
    difference, error = fast_two_sum(m, number(m, 1.0), minus)
    large = add(m, difference, sub(m, error, left))
    found = m.select(is_small, add(m, quotient, left), large)
    return number_unless_nan(m, x, with_sign(m, sign(m, x), found))


@dataclasses.dataclass(frozen=True)
class _Parts(Generic[V]):
    """Of x = n ln 2 / 16 + r: F and G as sums, and what cosh r has above 1, sinh r above r."""

    f: V
    f_low: V
    g: V
    g_low: V
    r: V
    r_low: V
    cosh_rest: V
    sinh_rest: V


def _parts(m: PureEmitter[V], a: V) -> _Parts[V]:
    """The parts of a number from 0 to 708."""
    bits, r, r_low = sixteenths(m, a)
    minus = m.sub(I64, m.constant(I64, 0), bits)
    grows, shrinks = scale_of(m, bits), scale_of(m, minus)
    f, f_error = fast_two_sum(m, grows, shrinks)
    g, g_error = fast_two_sum(m, grows, negated(m, shrinks))
    more = mul(m, grows, m.lookup(POWER_TAILS, bits))
    less = m.lookup(POWER_TAILS, minus)
    f_low = add(m, f_error, fma(m, shrinks, less, more))
    g_low = add(m, g_error, fma(m, negated(m, shrinks), less, more))
    square = mul(m, r, r)
    cosh_rest = mul(m, square, horner(m, square, [number(m, each) for each in COSH]))
    odd = horner(m, square, [number(m, each) for each in SINH])
    return _Parts(f, f_low, g, g_low, r, r_low, cosh_rest, mul(m, mul(m, square, r), odd))
