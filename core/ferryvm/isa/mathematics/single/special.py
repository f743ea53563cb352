# SPDX-License-Identifier: Apache-2.0
"""Operations on signs and special operands that several functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32

V = TypeVar("V")


def at_most(m: PureEmitter[V], a: V, bound: float) -> V:
    """The lesser of an f64 and a bound; the bound for NaN."""
    return m.select(m.compare(F64, Condition.LT, a, number(m, bound)), a, number(m, bound))


def unless_nan(m: PureEmitter[V], x: V, result: V) -> V:
    """The f32 `result`, or the canonical NaN if the operand `x` is NaN."""
    is_nan = m.compare(F32, Condition.NE, x, x)
    return m.select(is_nan, m.constant(F32, CANONICAL_NAN[F32]), result)


def zero_as_is(m: PureEmitter[V], x: V, result: V) -> V:
    """The f32 `result`, or the operand `x` if it is a zero, whose sign it keeps."""
    return m.select(m.compare(F32, Condition.EQ, x, m.constant(F32, 0)), x, result)


def excepting(m: PureEmitter[V], x: V, result: V, exceptions: Sequence[tuple[int, int]]) -> V:
    """The f32 `result`, or another one for single operands `x`: pairs (operand, result) of bits.

    They are operands for which an f64 near the exact value rounds to the wrong f32."""
    for operand, right in exceptions:
        is_it = m.compare(F32, Condition.EQ, x, m.constant(F32, operand))
        result = m.select(is_it, m.constant(F32, right), result)
    return result


def magnitude_bits(m: PureEmitter[V], x: V) -> V:
    """The bits of an f32 without its sign."""
    return m.bit_and(I32, m.reinterpret(I32, F32, x), m.constant(I32, 0x7FFF_FFFF))


def sign_and_magnitude(m: PureEmitter[V], x: V) -> tuple[V, V]:
    """The sign bit of an f32, as i32, and its magnitude, as f32."""
    bits, magnitude = m.reinterpret(I32, F32, x), magnitude_bits(m, x)
    return m.bit_xor(I32, bits, magnitude), m.reinterpret(F32, I32, magnitude)


def with_sign(m: PureEmitter[V], sign: V, magnitude: V) -> V:
    """The f32 with a sign bit; NaN becomes canonical."""
    bits = m.bit_or(I32, m.reinterpret(I32, F32, magnitude), sign)
    return canonical(m, F32, m.reinterpret(F32, I32, bits))
