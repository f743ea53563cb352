# SPDX-License-Identifier: Apache-2.0
"""Polynomials whose coefficients are bits of floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.type import F64, Type

V = TypeVar("V")


def polynomial(m: PureEmitter[V], x: V, coefficients: Sequence[int], t: Type = F64) -> V:
    """The polynomial with these coefficients (bits of type `t`, constant term first) at `x`, by
    Horner's scheme with one rounding a step."""
    *rest, last = coefficients
    total = m.constant(t, last)
    for bits in reversed(rest):
        total = m.ffma(t, total, x, m.constant(t, bits))
    return total
