# SPDX-License-Identifier: Apache-2.0
"""exp, exp2 and expm1 of f32.

    x = k ln 2 + r,  |r| <= ln 2 / 2       exp x = 2^k (1 + q(r)),  q(r) = r P(r) = exp r - 1

The last step is one fused operation, so the error of q counts only in so far as |q| < 1/2.

exp and exp2 are sums of two f32 (`quick`) unless that leaves their rounding open:

    x = (32 k + j) ln 2 / 32 + r,  |r| <= ln 2 / 64       exp x = 2^k 2^(j/32) (1 + r + r^2 Q(r))

where r is a sum, whose lower part has the logarithm of the error of 2^(j/32) as f32, too.
"""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics import PARTS
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
)
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_outside, tested_sum
from ferryvm.isa.mathematics.single.special import excepting, magnitude_bits, unless_nan, zero_as_is
from ferryvm.isa.mathematics.table import EXP_RESTS, EXP_WORDS
from ferryvm.isa.type import F32, F64, I32, I64

V = TypeVar("V")

_SHIFT = 1.5 * 2.0**23
"""The last place of a sum with this number, of f32, is 1."""
_QUICK_ERROR = 2.0**-36
"""More than the error of a quick power."""

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
    bits, high, low = thirty_seconds(m, x, is_exact=False)
    return _quick_power(m, x, (bits, high, low), 77.0, "f32.exp_rare")


def exp2_f32(m: PureEmitter[V], x: V) -> V:
    """2^x; exact for integers."""
    n, shifted = _nearest(m, add(m, x, _short(m, _SHIFT / 32), F32), _SHIFT / 32)
    first, second = (m.constant(F32, each) for each in coefficient.LN2_SHORT)
    high, error = two_product(m, sub(m, x, n, F32), first, F32)
    rest = fma(m, sub(m, x, n, F32), second, m.lookup(EXP_RESTS, shifted), F32)
    return _quick_power(m, x, (shifted, high, add(m, error, rest, F32)), 110.0, "f32.exp2_rare")


def thirty_seconds(m: PureEmitter[V], x: V, is_exact: bool = True) -> tuple[V, V, V]:
    """Bits that end with n, and a sum: x is n ln 2 / 32 and that. If not `is_exact`, with the
    logarithm of the error of 2^(n/32) as an f32."""
    n, bits = _nearest(m, fma(m, x, _short(m, 32 / math.log(2)), _short(m, _SHIFT), F32), _SHIFT)
    minus = negated(m, n, F32)
    first, second = (m.constant(F32, each) for each in coefficient.LN2_32)
    high = fma(m, minus, first, x, F32)  # exact
    if is_exact:
        return bits, high, mul(m, minus, second, F32)
    return bits, high, fma(m, minus, second, m.lookup(EXP_RESTS, bits), F32)


def scale_of(m: PureEmitter[V], bits: V) -> V:
    """2^(n/32) as f32, a normal number; `bits` end with n. The words of the table lack j 2^18, so
    the addition of n 2^18 adds to the exponent."""
    n = m.shl(I32, bits, m.constant(I32, 18))
    return m.reinterpret(F32, I32, m.add(I32, m.lookup(EXP_WORDS, bits), n))


def _short(m: PureEmitter[V], value: float) -> V:
    return number(m, value, F32)


def _nearest(m: PureEmitter[V], shifted: V, shift: float) -> tuple[V, V]:
    """The multiple of the last place of `shift` that a sum with it is nearest to, and the sum's
    bits."""
    return sub(m, shifted, _short(m, shift), F32), m.reinterpret(I32, F32, shifted)


def _quick_power(m: PureEmitter[V], x: V, reduced: tuple[V, V, V], bound: float, rare: str) -> V:
    """2^(n/32) e^(high + low) for bits that end with n; of an operand `x` that is smaller than a
    bound, where all parts of the sum are normal numbers."""
    bits, high, low = reduced
    r = add(m, high, low, F32)
    square = mul(m, r, r, F32)
    more = fma(m, square, polynomial(m, r, coefficient.EXP_QUICK, F32), low, F32)
    scale = scale_of(m, bits)
    product, product_low = two_product(m, scale, high, F32)
    total, total_low = fast_two_sum(m, scale, product, F32)
    rest = add(m, total_low, fma(m, scale, more, product_low, F32), F32)
    result, is_open = tested_sum(m, total, rest, _QUICK_ERROR)
    is_rare = m.any(is_open, is_outside(m, magnitude_bits(m, x), 0.0, bound))
    return m.apply_if(is_rare, PARTS[rare], result, x)


def exp_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    scale, q = exponential_parts(m, clamped(m, m.promote(x), -120.0, 120.0))
    return unless_nan(m, x, m.demote(m.ffma(F64, scale, q, scale)))


def exp2_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
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
