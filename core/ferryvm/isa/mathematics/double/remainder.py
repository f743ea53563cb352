# SPDX-License-Identifier: Apache-2.0
"""fmod and remainder of f64: exact, also where the quotient has 2,000 bits.

    |x| = M 2^e, |y| = N 2^f, k = e - f        rest = (M 2^k mod N) 2^f

where M and N are integers of 53 bits. 2^k mod N = (2^(k / 32))^32 2^(k mod 32) mod N: five squares, each
a product of residues. A product is a pair, which `fma` makes exact, and its quotient by N needs no
more than 52 bits because residues are at most N / 2 in magnitude (van der Hoeven, Lecerf and Quintin,
"Modular SIMD arithmetic in Mathemagix", ACM Transactions on Mathematical Software 43, 2016, 3.3).
"""

from __future__ import annotations

import dataclasses
from typing import Generic, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.double.exponential import scaled
from ferryvm.isa.mathematics.pair import add, fma, mul, negated, number, sub
from ferryvm.isa.type import CANONICAL_NAN, F64, I64

V = TypeVar("V")

_SIGN = 1 << 63
_LEAST_NORMAL = 2.0**-1022
_FRACTION = (1 << 52) - 1
_INTEGER = 1075 << 52
"""The exponent bits of f64 from 2^52 to 2^53: integers of 53 bits."""

_SQUARES = 5


def fmod(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is x / y toward zero; a zero has the sign of x."""
    of = _Operands.of(m, x, y)
    residue = of.residue(m, of.k)
    is_negative = m.compare(F64, Condition.LT, residue, number(m, 0.0))
    residue = m.select(is_negative, add(m, residue, of.n), residue)
    rest = scaled(m, residue, of.f)
    is_less = m.compare(F64, Condition.LT, of.a, of.b)
    return of.result(m, m.select(is_less, of.a, rest))


def remainder(m: PureEmitter[V], x: V, y: V) -> V:
    """x - n y, where n is the integer nearest to x / y, ties to even; a zero has the sign of x."""
    of, one = _Operands.of(m, x, y), m.constant(I64, 1)
    # Modulo 2 |y|: n is even where this is the result.
    large = scaled(m, of.residue(m, m.sub(I64, of.k, one)), m.add(I64, of.f, one))
    is_most = m.compare(F64, Condition.LE, of.a, of.b)
    small = m.select(is_most, of.a, fma(m, of.b, number(m, -2.0), of.a))
    is_small = m.compare(I64, Condition.LT_S, of.k, one)  # |x| < 2 |y|
    rest = m.select(is_small, small, large)
    twice = add(m, rest, rest)
    less = m.select(m.compare(F64, Condition.GT, twice, of.b), sub(m, rest, of.b), rest)
    is_below = m.compare(F64, Condition.LT, twice, negated(m, of.b))
    return of.result(m, m.select(is_below, add(m, rest, of.b), less))


@dataclasses.dataclass(frozen=True)
class _Operands(Generic[V]):
    """The operands, taken apart."""

    sign: V
    """The sign bit of x, as i64."""
    a: V
    """|x|"""
    b: V
    """|y|"""
    mantissa: V
    """M"""
    n: V
    """N"""
    f: V
    k: V

    @classmethod
    def of(cls, m: PureEmitter[V], x: V, y: V) -> _Operands[V]:
        """x and y, taken apart."""
        bits, others = m.reinterpret(I64, F64, x), m.reinterpret(I64, F64, y)
        mask = m.constant(I64, _SIGN - 1)
        a = m.reinterpret(F64, I64, m.bit_and(I64, bits, mask))
        b = m.reinterpret(F64, I64, m.bit_and(I64, others, mask))
        mantissa, e = _parts(m, a)
        n, f = _parts(m, b)
        sign = m.bit_and(I64, bits, m.constant(I64, _SIGN))
        return cls(sign, a, b, mantissa, n, f, m.sub(I64, e, f))

    def residue(self, m: PureEmitter[V], k: V) -> V:
        """The integer congruent to M 2^k modulo N from -N/2 to N/2, give or take 2; anything if k is
        negative."""
        modulus = _Modulus(m, self.n)
        count = m.constant(I64, _SQUARES)
        power = modulus.reduced(_power(m, m.shr_u(I64, k, count)))
        for _ in range(_SQUARES):
            power = modulus.product(power, power)
        rest = m.bit_and(I64, k, m.constant(I64, (1 << _SQUARES) - 1))
        return modulus.product(power, modulus.reduced(mul(m, self.mantissa, _power(m, rest))))

    def result(self, m: PureEmitter[V], found: V) -> V:
        """`found` with the sign of x, or NaN if there is no quotient."""
        # A zero is +0 here: no sum above is one of two zeros.
        signed = m.reinterpret(F64, I64, m.bit_xor(I64, m.reinterpret(I64, F64, found), self.sign))
        is_defined = m.all(
            m.compare(F64, Condition.LT, self.a, number(m, float("inf"))),
            m.compare(F64, Condition.GT, self.b, number(m, 0.0)),
        )
        return m.select(is_defined, signed, m.constant(F64, CANONICAL_NAN[F64]))


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
        # The quotient is below 2^51 (1 + 2^-17), so rounding takes 1/4 at most; `left` is below 4/5 N.
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
