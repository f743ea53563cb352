# SPDX-License-Identifier: Apache-2.0
"""fmod and remainder of f64: exact, also where the quotient has 2,000 bits.

Where |x / y| is below 2^52, x - q y is exact, q being the rounded quotient as an integer, and q is
off by one at most. Other operands have functions of their own, which compiled code branches over:

    |x| = M 2^e, |y| = N 2^f, k = e - f        rest = (M 2^k mod N) 2^f

where M and N are integers of 53 bits. 2^k mod N = (2^(k / 32))^32 2^(k mod 32) mod N: five squares,
each a product of residues. A product is a pair, which `fma` makes exact, and its quotient by N
needs no more than 52 bits because residues are at most N / 2 in magnitude (van der Hoeven, Lecerf
and Quintin, "Modular SIMD arithmetic in Mathemagix", ACM Transactions on Mathematical Software 43,
2016, 3.3).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Generic, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.double.exponential import scaled
from ferryvm.isa.mathematics.double.special import magnitude, sign, with_sign
from ferryvm.isa.mathematics.pair import add, fma, mul, negated, number, sub
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_LEAST_NORMAL = 2.0**-1022
_FRACTION = (1 << 52) - 1
_INTEGER = 1075 << 52
"""The exponent bits of f64 from 2^52 to 2^53: integers of 53 bits."""

_SQUARES = 5
_LONG = 2.0**52
"""Quotients from here on are long ones."""


def fmod(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is x / y toward zero; a zero has the sign of x."""
    a, b = magnitude(m, x), magnitude(m, y)
    quotient = m.fdiv(F64, a, b)
    rest = fma(m, m.ftrunc(F64, quotient), negated(m, b), a)
    is_negative = m.compare(F64, Condition.LT, rest, number(m, 0.0))
    rest = m.select(is_negative, add(m, rest, b), rest)
    rest = m.select(m.compare(F64, Condition.LT, a, b), a, rest)
    return _result(
        m, x, a, b, m.apply_if(_is_long(m, quotient), PARTS["f64.fmod_long"], rest, a, b)
    )


def remainder(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is the integer nearest to x / y, ties to even; a zero has the sign of x."""
    a, b = magnitude(m, x), magnitude(m, y)
    quotient = m.fdiv(F64, a, b)
    # A quotient in the middle is exact, so q is the even one.
    rest = fma(m, m.fnearest(F64, quotient), negated(m, b), a)
    is_infinite = m.compare(F64, Condition.EQ, b, number(m, math.inf))
    rest = m.select(is_infinite, a, _nearest(m, rest, b))
    part = PARTS["f64.remainder_long"]
    return _result(m, x, a, b, m.apply_if(_is_long(m, quotient), part, rest, a, b))


def fmod_long(m: PureEmitter[V], a: V, b: V) -> V:
    """The rest of positive numbers of which the first is larger."""
    of = _Division.of(m, a, b)
    residue = of.residue(m, of.k)
    is_negative = m.compare(F64, Condition.LT, residue, number(m, 0.0))
    return scaled(m, m.select(is_negative, add(m, residue, of.n), residue), of.f)


def remainder_long(m: PureEmitter[V], a: V, b: V) -> V:
    """The remainder of positive numbers of which the first is at least twice the other."""
    of, one = _Division.of(m, a, b), m.constant(I64, 1)
    # Modulo 2 b: the quotient is even where this is the result.
    rest = scaled(m, of.residue(m, m.sub(I64, of.k, one)), m.add(I64, of.f, one))
    return _nearest(m, rest, b)


def _is_long(m: PureEmitter[V], quotient: V) -> V:
    return m.compare(F64, Condition.GE, quotient, number(m, _LONG))


def _nearest(m: PureEmitter[V], rest: V, b: V) -> V:
    """The rest from -b / 2 to b / 2, of one from -b to b."""
    twice = add(m, rest, rest)
    less = m.select(m.compare(F64, Condition.GT, twice, b), sub(m, rest, b), rest)
    is_below = m.compare(F64, Condition.LT, twice, negated(m, b))
    return m.select(is_below, add(m, rest, b), less)


def _result(m: PureEmitter[V], x: V, a: V, b: V, found: V) -> V:
    """`found` with the sign of x, or NaN if there is no quotient."""
    # A zero is +0 here: no sum above is one of two zeros.
    signed = with_sign(m, sign(m, x), found)
    is_defined = m.all(
        m.compare(F64, Condition.LT, a, number(m, math.inf)),
        m.compare(F64, Condition.GT, b, number(m, 0.0)),
    )
    return m.select(is_defined, signed, m.constant(F64, CANONICAL_NAN[F64]))


@dataclasses.dataclass(frozen=True)
class _Division(Generic[V]):
    """Positive numbers, taken apart."""

    mantissa: V
    """M"""
    n: V
    """N"""
    f: V
    k: V

    @classmethod
    def of(cls, m: PureEmitter[V], a: V, b: V) -> _Division[V]:
        """a and b, taken apart."""
        mantissa, e = _parts(m, a)
        n, f = _parts(m, b)
        return cls(mantissa, n, f, m.sub(I64, e, f))

    def residue(self, m: PureEmitter[V], k: V) -> V:
        """The integer congruent to M 2^k modulo N from -N/2 to N/2, give or take 2; anything if k
        is negative."""
        modulus = _Modulus(m, self.n)
        count = m.constant(I64, _SQUARES)
        power = modulus.reduced(_power(m, m.shr_u(I64, k, count)))
        for _ in range(_SQUARES):
            power = modulus.product(power, power)
        rest = m.bit_and(I64, k, m.constant(I64, (1 << _SQUARES) - 1))
        return modulus.product(power, modulus.reduced(mul(m, self.mantissa, _power(m, rest))))


class _Modulus(Generic[V]):
    """Arithmetic modulo an integer of 53 bits."""

    def __init__(self, m: PureEmitter[V], n: V) -> None:
        self.m, self.minus = m, negated(m, n)
        self.inverse = m.fdiv(F64, number(m, 1.0), n)
        self.inverse_low = mul(m, fma(m, self.minus, self.inverse, number(m, 1.0)), self.inverse)

    def reduced(self, a: V) -> V:
        """The residue of a, below 2^33 N: at most (1/2 + 2^-18) N in magnitude."""
        m = self.m
        return fma(m, m.fnearest(F64, mul(m, a, self.inverse)), self.minus, a)

    def product(self, a: V, b: V) -> V:
        """The residue of the product of two, at most N/2 in magnitude, give or take 2."""
        m = self.m
        high = mul(m, a, b)
        low = fma(m, a, b, negated(m, high))  # at most N/8
        # The quotient is below 2^51 (1 + 2^-17), so rounding takes 1/4 at most; `left` is below 4/5
        # N.
        quotient = fma(m, high, self.inverse, mul(m, high, self.inverse_low))
        left = fma(m, m.fnearest(F64, quotient), self.minus, high)
        again = fma(m, low, self.inverse, mul(m, left, self.inverse))
        return add(m, fma(m, m.fnearest(F64, again), self.minus, left), low)


def _parts(m: PureEmitter[V], a: V) -> tuple[V, V]:
    """The integer of 53 bits and the exponent of a positive number."""
    is_small = m.compare(F64, Condition.LT, a, number(m, _LEAST_NORMAL))
    normal = m.select(is_small, mul(m, a, number(m, 2.0**52)), a)
    bits = m.reinterpret(I64, F64, normal)
    fraction = m.bit_and(I64, bits, m.constant(I64, _FRACTION))
    integer = m.reinterpret(F64, I64, m.bit_or(I64, fraction, m.constant(I64, _INTEGER)))
    bias = m.select(is_small, m.constant(I64, 1075 + 52), m.constant(I64, 1075))
    return integer, m.sub(I64, m.shr_u(I64, bits, m.constant(I64, 52)), bias)


def _power(m: PureEmitter[V], k: V) -> V:
    """2^k, for k from 0 to 1023."""
    biased = m.add(I64, k, m.constant(I64, 1023))
    return m.reinterpret(F64, I64, m.shl(I64, biased, m.constant(I64, 52)))
