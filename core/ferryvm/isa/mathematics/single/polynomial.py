# SPDX-License-Identifier: Apache-2.0
"""Polynomials in f64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.type import F64

V = TypeVar("V")


def polynomial(m: PureEmitter[V], x: V, coefficients: Sequence[int]) -> V:
    """The polynomial with these coefficients (bits of f64, constant term first) at `x`, by
    Horner's scheme with one rounding a step."""
    *rest, last = coefficients
    total = m.constant(F64, last)
    for bits in reversed(rest):
        total = m.ffma(F64, total, x, m.constant(F64, bits))
    return total
