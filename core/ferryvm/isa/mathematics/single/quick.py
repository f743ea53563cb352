# SPDX-License-Identifier: Apache-2.0
"""Quick results of f32: sums of two f32 that are right unless they are near the middle of two f32.

A vector has twice as many f32 as f64, and a pair of f32 has 48 bits: enough for a result with an
error of 2^-34 of itself. A rounding test (Ziv, "Fast evaluation of elementary mathematical
functions with correctly rounded last bit", ACM Transactions on Mathematical Software 17(3), 1991)
finds the few results that such an error could change. They are computed again in f64, by a function
that code branches over.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import add, fma, number
from ferryvm.isa.type import F32, I32, from_float

V = TypeVar("V")


def tested_sum(m: PureEmitter[V], high: V, low: V, error: float) -> tuple[V, V]:
    """The f32 nearest to a sum of two, and true if an error of that part of `high` could change
    it."""
    return tested_range(m, high, low, -error, error)


def tested_range(m: PureEmitter[V], high: V, low: V, least: float, most: float) -> tuple[V, V]:
    """The f32 nearest to a number that exceeds a sum of two by `least` to `most` of `high`, and
    true if there are two such."""
    above = add(m, high, fma(m, high, number(m, most, F32), low, F32), F32)
    below = add(m, high, fma(m, high, number(m, least, F32), low, F32), F32)
    return above, m.compare(F32, Condition.NE, above, below)


def tested_biased_sum(m: PureEmitter[V], high: V, low: V, error: float) -> tuple[V, V]:
    """The same of a number less the error, which saves one operation."""
    below = add(m, high, low, F32)
    above = add(m, high, fma(m, high, number(m, 2 * error, F32), low, F32), F32)
    return above, m.compare(F32, Condition.NE, above, below)


def is_outside(m: PureEmitter[V], bits: V, lowest: float, highest: float) -> V:
    """True if an f32 without a sign, given as its bits, is not from `lowest` to below `highest`; of
    NaN, too."""
    first = from_float(F32, lowest)
    above = m.sub(I32, bits, m.constant(I32, first))
    size = m.constant(I32, from_float(F32, highest) - first)
    return m.compare(I32, Condition.GE_U, above, size)


def is_tiny(m: PureEmitter[V], bits: V, lowest: float) -> V:
    """True if an f32 without a sign, given as its bits, is below `lowest` and not 0."""
    less = m.sub(I32, bits, m.constant(I32, 1))
    return m.compare(I32, Condition.LT_U, less, m.constant(I32, from_float(F32, lowest) - 1))
