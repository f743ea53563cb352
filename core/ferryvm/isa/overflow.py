# SPDX-License-Identifier: Apache-2.0
"""Overflow of signed sums, differences and products in terms of the other pure operations.

Processors have a flag for it. Vectors and machines without one compute it so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.type import F64, I32, I64, Type

V = TypeVar("V")

_TWO_TO_32 = (1023 + 32) << 52
"""2^32 as bits of f64."""


def sum_overflows(m: PureEmitter[V], t: Type, a: V, b: V) -> V:
    """The boolean of `PureEmitter.add_overflows`: both operands have another sign than the sum."""
    total = m.add(t, a, b)
    return _is_negative(m, t, m.bit_and(t, m.bit_xor(t, a, total), m.bit_xor(t, b, total)))


def difference_overflows(m: PureEmitter[V], t: Type, a: V, b: V) -> V:
    """The boolean of `PureEmitter.sub_overflows`: the first operand has another sign than the
    second and the difference."""
    rest = m.sub(t, a, b)
    return _is_negative(m, t, m.bit_and(t, m.bit_xor(t, a, b), m.bit_xor(t, a, rest)))


def product_overflows(m: PureEmitter[V], t: Type, a: V, b: V) -> V:
    """The boolean of `PureEmitter.mul_overflows`."""
    product = m.mul(t, a, b)
    if t is I32:
        wide = m.mul(I64, m.extend_s(a), m.extend_s(b))
        return m.compare(I64, Condition.NE, wide, m.extend_s(product))
    # The exact product is the wrapped one plus a multiple of 2^64. In f64 it is known to
    # 2^-51 of itself, so the distance is below 2^13, or at least 2^63.
    x, y, z = (m.to_float_s(F64, I64, each) for each in (a, b, product))
    distance = m.fsub(F64, m.fmul(F64, x, y), z)
    bits = m.reinterpret(I64, F64, distance)
    magnitude = m.bit_and(I64, bits, m.constant(I64, (1 << 63) - 1))
    return m.compare(I64, Condition.GT_S, magnitude, m.constant(I64, _TWO_TO_32))


def _is_negative(m: PureEmitter[V], t: Type, a: V) -> V:
    return m.compare(t, Condition.LT_S, a, m.constant(t, 0))


EXPANSIONS: Mapping[str, Callable[[PureEmitter[Any], Type, Any, Any], Any]] = {
    "add_overflows": sum_overflows,
    "sub_overflows": difference_overflows,
    "mul_overflows": product_overflows,
}
"""By the names of the emitter's operations."""
