# SPDX-License-Identifier: Apache-2.0
"""Operands that a method does not cover: large ones, and NaN."""

from __future__ import annotations

import math
from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import F64, I64

V = TypeVar("V")


def unless_nan(m: PureEmitter[V], x: V, found: V) -> V:
    """`found`, or the canonical NaN if the operand is any NaN."""
    return canonical(m, F64, m.select(m.compare(F64, Condition.NE, x, x), x, found))


def number_unless_nan(m: PureEmitter[V], x: V, found: V) -> V:
    """`found`, which is a number, or the canonical NaN if the operand is any NaN."""
    is_number = m.compare(F64, Condition.EQ, x, x)
    return m.select(is_number, found, number(m, math.nan))


def at_most(m: PureEmitter[V], a: V, bound: float) -> V:
    """The lesser of a number and a bound; the bound for NaN."""
    return m.select(m.compare(F64, Condition.LT, a, number(m, bound)), a, number(m, bound))


def unless_zero(m: PureEmitter[V], x: V, found: V) -> V:
    """`found`, or the operand if that is a zero: for functions that preserve its sign."""
    return m.select(m.compare(F64, Condition.EQ, x, number(m, 0.0)), x, found)


def magnitude(m: PureEmitter[V], x: V) -> V:
    """The operand without its sign bit."""
    bits = m.bit_and(I64, m.reinterpret(I64, F64, x), m.constant(I64, (1 << 63) - 1))
    return m.reinterpret(F64, I64, bits)


def sign(m: PureEmitter[V], x: V) -> V:
    """The sign bit, in its place, as i64."""
    return m.bit_and(I64, m.reinterpret(I64, F64, x), m.constant(I64, 1 << 63))


def with_sign(m: PureEmitter[V], bit: V, a: V) -> V:
    """`a`, negated if the sign bit, an i64, is set."""
    return m.reinterpret(F64, I64, m.bit_xor(I64, m.reinterpret(I64, F64, a), bit))
