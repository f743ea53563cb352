# SPDX-License-Identifier: Apache-2.0
"""log, log2, log10 and log1p of f32.

x = 2^k m,  sqrt(1/2) <= m < sqrt 2       log x = k log 2 + log m,  f = m - 1
s = f / (2 + f)                           log m = 2 artanh s = s P(s^2)

They are sums of two f32 (`quick`) unless that leaves their rounding open:

x = 2^k m,  m c = 1 + r,  |r| <= 1/32     log x = k log 2 - log c + (r - r^2 / 2 + r^3 Q(r)) log e

where r is an f32, as c, from a table of 32 inverses, has few bits, and k log 2 - log c has a first
part that is one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics import PARTS
from ferryvm.isa.mathematics.pair import (
    add,
    fast_two_sum,
    fma,
    mul,
    negated,
    number,
    two_product,
    two_sum,
)
from ferryvm.isa.mathematics.single import coefficient
from ferryvm.isa.mathematics.single.polynomial import polynomial
from ferryvm.isa.mathematics.single.quick import is_outside, tested_sum
from ferryvm.isa.mathematics.single.special import excepting, zero_as_is
from ferryvm.isa.mathematics.table import (
    LOG2_RESTS,
    LOG2_TOPS,
    LOG10_RESTS,
    LOG10_TOPS,
    LOG_INVERSES,
    LOG_RESTS,
    LOG_TOPS,
)
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64

V = TypeVar("V")

_HALF_ROOT = 0x3FE6_A09E_6000_0000
"""Bits of the f64 a little below sqrt(1/2); those of m are at least these."""

_FIRST_MANTISSA = 0x3F30_0000
"""Bits of 11/16, as f32: those of a mantissa of the quick result are at least these."""
_QUICK_ERROR = 2.0**-34
"""More than the error of a quick logarithm."""

_INFINITY, _MINUS_INFINITY = 0x7F80_0000, 0xFF80_0000


def exponent_and_mantissa(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """k as f64, and m, of a positive normal f64."""
    bits = m.reinterpret(I64, F64, x)
    width = m.constant(I64, 52)
    k = m.shr_s(I64, m.sub(I64, bits, m.constant(I64, _HALF_ROOT)), width)
    mantissa = m.sub(I64, bits, m.shl(I64, k, width))
    return m.to_float_s(F64, I64, k), m.reinterpret(F64, I64, mantissa)


def _mantissa_logarithm(m: PureEmitter[V], f: V, coefficients: Sequence[int]) -> V:
    """log(1 + f) in the base of the coefficients."""
    s = m.fdiv(F64, f, m.fadd(F64, f, number(m, 2.0)))
    square = m.fmul(F64, s, s)
    first, *rest = coefficients
    tail = m.fmul(F64, polynomial(m, square, rest), square)
    return m.ffma(F64, s, m.constant(F64, first), m.fmul(F64, s, tail))


def _with_exponent(m: PureEmitter[V], k: V, step: Sequence[int], small: V) -> V:
    """`small` and k times the sum of the two f64 whose bits are `step`."""
    small = m.ffma(F64, k, m.constant(F64, step[1]), small)
    return m.ffma(F64, k, m.constant(F64, step[0]), small)


def _with_special(m: PureEmitter[V], x: V, pole: float, result: V) -> V:
    """The f32 `result` for a finite `x` above `pole`: there minus infinity, below it NaN."""
    bound = m.constant(F32, {0.0: 0, -1.0: 0xBF80_0000}[pole])
    infinity = m.constant(F32, _INFINITY)
    at_most = m.select(
        m.compare(F32, Condition.EQ, x, bound),
        m.constant(F32, _MINUS_INFINITY),
        m.constant(F32, CANONICAL_NAN[F32]),
    )
    above = m.select(m.compare(F32, Condition.EQ, x, infinity), infinity, result)
    return m.select(m.compare(F32, Condition.GT, x, bound), above, at_most)


def _logarithm(m: PureEmitter[V], x: V, coefficients: Sequence[int], step: Sequence[int]) -> V:
    """The logarithm whose value at 2 is `step`, as for `_with_exponent`."""
    k, mantissa = exponent_and_mantissa(m, m.promote(x))
    small = _mantissa_logarithm(m, m.fsub(F64, mantissa, number(m, 1.0)), coefficients)
    result = _with_exponent(m, k, step, small)
    return _with_special(m, x, 0.0, m.demote(result))


@dataclasses.dataclass(frozen=True)
class _Base:
    """Constants of a base: logarithms of inverses and of 2 in two parts, and that of e."""

    tops: ConstantTable
    rests: ConstantTable
    step: tuple[int, int]
    scale: tuple[int, int] | None
    """None: 1."""


_NATURAL = _Base(LOG_TOPS, LOG_RESTS, coefficient.LOG_STEP, None)
_BINARY = _Base(LOG2_TOPS, LOG2_RESTS, coefficient.LOG2_STEP, coefficient.LOG2_SCALE)
_DECIMAL = _Base(LOG10_TOPS, LOG10_RESTS, coefficient.LOG10_STEP, coefficient.LOG10_SCALE)


def log_f32(m: PureEmitter[V], x: V) -> V:
    """The natural logarithm."""
    return _quick_logarithm(m, x, _NATURAL, "f32.log_rare")


def log2_f32(m: PureEmitter[V], x: V) -> V:
    """The logarithm to base 2; exact for powers of 2."""
    return _quick_logarithm(m, x, _BINARY, "f32.log2_rare")


def log10_f32(m: PureEmitter[V], x: V) -> V:
    """The logarithm to base 10; exact for powers of 10."""
    return _quick_logarithm(m, x, _DECIMAL, "f32.log10_rare")


def _split_short(m: PureEmitter[V], x: V) -> tuple[V, V, V, V]:
    """Bits, k, m and the place of c of an f32."""
    bits, width = m.reinterpret(I32, F32, x), m.constant(I32, 23)
    above = m.sub(I32, bits, m.constant(I32, _FIRST_MANTISSA))
    exponent = m.shr_s(I32, above, width)
    mantissa = m.reinterpret(F32, I32, m.sub(I32, bits, m.shl(I32, exponent, width)))
    return bits, exponent, mantissa, m.shr_u(I32, above, m.constant(I32, 18))


def _terms(m: PureEmitter[V], r: V) -> tuple[V, V]:
    """log(1 + r) - r as a sum: -r^2 / 2, and the rest."""
    square, square_low = two_product(m, r, r, F32)
    minus_half = number(m, -0.5, F32)
    cubes = mul(m, mul(m, r, square, F32), polynomial(m, r, coefficient.LOG_QUICK, F32), F32)
    return mul(m, square, minus_half, F32), fma(m, square_low, minus_half, cubes, F32)


def _parts(m: PureEmitter[V], exponent: V, index: V, base: _Base) -> tuple[V, V]:
    """k log 2 - log c as a sum."""
    k = m.to_float_s(F32, I32, exponent)
    first, second = (m.constant(F32, each) for each in base.step)
    main = fma(m, k, first, m.lookup(base.tops, index), F32)  # exact
    return main, fma(m, k, second, m.lookup(base.rests, index), F32)


def _natural_sum(m: PureEmitter[V], exponent: V, index: V, r: V, terms: tuple[V, V]) -> tuple[V, V]:
    """The natural logarithm, and true if its rounding is open."""
    (main, low), (half, rest) = _parts(m, exponent, index, _NATURAL), terms
    total, error = fast_two_sum(m, main, r, F32)
    total, more = fast_two_sum(m, total, half, F32)
    low = add(m, add(m, error, more, F32), add(m, low, rest, F32), F32)
    return tested_sum(m, total, low, _QUICK_ERROR)


def _scaled_sum(
    m: PureEmitter[V], exponent: V, index: V, r: V, terms: tuple[V, V], base: _Base
) -> tuple[V, V]:
    """The same of another base."""
    assert base.scale is not None
    (main, low), (half, rest) = _parts(m, exponent, index, base), terms
    scale, scale_low = (m.constant(F32, each) for each in base.scale)
    sum_, error = fast_two_sum(m, r, half, F32)
    product, product_low = two_product(m, sum_, scale, F32)
    product_low = fma(m, sum_, scale_low, product_low, F32)
    product_low = fma(m, add(m, error, rest, F32), scale, product_low, F32)
    total, error = fast_two_sum(m, main, product, F32)
    low = add(m, error, add(m, low, product_low, F32), F32)
    return tested_sum(m, total, low, _QUICK_ERROR)


def _quick_logarithm(m: PureEmitter[V], x: V, base: _Base, rare: str) -> V:
    bits, exponent, mantissa, index = _split_short(m, x)
    c, minus_one = m.lookup(LOG_INVERSES, index), number(m, -1.0, F32)
    r = fma(m, mantissa, c, minus_one, F32)  # exact
    terms = _terms(m, r)
    result, is_open = (
        _natural_sum(m, exponent, index, r, terms)
        if base.scale is None
        else _scaled_sum(m, exponent, index, r, terms, base)
    )
    is_rare = m.any(is_open, is_outside(m, bits, 2.0**-126, math.inf))
    return m.apply_if(is_rare, PARTS[rare], result, x)


def log_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    result = _logarithm(m, x, coefficient.LOG, coefficient.LN2)
    return excepting(m, x, result, coefficient.LOG_EXCEPTIONS)


def log10_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    result = _logarithm(m, x, coefficient.LOG10, coefficient.LOG10_2)
    return excepting(m, x, result, coefficient.LOG10_EXCEPTIONS)


def log2_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    k, mantissa = exponent_and_mantissa(m, m.promote(x))
    small = _mantissa_logarithm(m, m.fsub(F64, mantissa, number(m, 1.0)), coefficient.LOG2)
    return _with_special(m, x, 0.0, m.demote(m.fadd(F64, k, small)))


def log1p_f32(m: PureEmitter[V], x: V) -> V:
    """log(1 + x); -0 for -0. 1 + x is u + e, where e joins r; for small x, r is x itself."""
    u, error = two_sum(m, number(m, 1.0, F32), x, F32)
    bits, exponent, mantissa, index = _split_short(m, u)
    c = m.lookup(LOG_INVERSES, index)
    biased = m.sub(I32, m.constant(I32, 127), exponent)
    scale = m.reinterpret(F32, I32, m.shl(I32, biased, m.constant(I32, 23)))
    more = mul(m, mul(m, error, scale, F32), c, F32)
    r = fma(m, mantissa, c, number(m, -1.0, F32), F32)
    one, zero = number(m, 1.0, F32), m.constant(I32, 0)
    is_small = m.all(
        m.compare(I32, Condition.EQ, exponent, zero), m.compare(F32, Condition.EQ, c, one)
    )
    r = m.select(is_small, x, r)
    more = m.select(is_small, number(m, 0.0, F32), more)
    half, rest = _terms(m, r)
    # e (1 - r + r^2) is what it adds to the logarithm
    factor = fma(m, half, number(m, -2.0, F32), negated(m, r, F32), F32)
    rest = add(m, more, fma(m, factor, more, rest, F32), F32)
    result, is_open = _natural_sum(m, exponent, index, r, (half, rest))
    is_rare = m.any(is_open, is_outside(m, bits, 2.0**-126, 2.0**127))
    found = m.apply_if(is_rare, PARTS["f32.log1p_rare"], result, x)
    return zero_as_is(m, x, found)


def log1p_rare(m: PureEmitter[V], x: V) -> V:
    """The same of any operand."""
    z, one = m.promote(x), number(m, 1.0)
    k, mantissa = exponent_and_mantissa(m, m.fadd(F64, z, one))
    # 1 + x is rounded if x is small; then k is 0, and x itself is what is wanted.
    is_small = m.compare(F64, Condition.EQ, k, number(m, 0.0))
    f = m.select(is_small, z, m.fsub(F64, mantissa, one))
    # s P(s^2) = f - s f + s^3 Q(s^2): the first term is exact.
    s = m.fdiv(F64, f, m.fadd(F64, f, number(m, 2.0)))
    square = m.fmul(F64, s, s)
    tail = m.fmul(F64, square, polynomial(m, square, coefficient.LOG1P))
    small = m.ffma(F64, s, m.fsub(F64, tail, f), f)
    result = m.demote(_with_exponent(m, k, coefficient.LN2, small))
    result = excepting(m, x, result, coefficient.LOG1P_EXCEPTIONS)
    return zero_as_is(m, x, _with_special(m, x, -1.0, result))
