# SPDX-License-Identifier: Apache-2.0
"""Rounding an unevaluated sum of two f64 once to f32.

The f64 nearest to a sum may lie in the middle of two f32 where the sum does not; f32's rounding to
even would decide then. So the sum is rounded to odd first (Boldo and Melquiond, "Emulation of a FMA
and correctly rounded sums", IEEE Transactions on Computers 57(4), 2008): the last bit is set if
anything is cut off, and no middle of two f32 is odd.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.mathematics.pair import number
from ferryvm.isa.type import F64, I64

V = TypeVar("V")


def rounded_to_odd(m: PureEmitter[V], high: V, rest: V) -> V:
    """The sum of an f64 that is not negative and a rest of less than its last place, to odd.

    Only the sign of the rest counts, and that it is not 0."""
    zero, one, none = number(m, 0.0), m.constant(I64, 1), m.constant(I64, 0)
    below = m.select(m.compare(F64, Condition.LT, rest, zero), one, none)
    sticky = m.select(m.compare(F64, Condition.NE, rest, zero), one, none)
    bits = m.sub(I64, m.reinterpret(I64, F64, high), below)
    return m.reinterpret(F64, I64, m.bit_or(I64, bits, sticky))


def demoted_sum(m: PureEmitter[V], high: V, rest: V) -> V:
    """The f32 nearest to such a sum."""
    return m.demote(rounded_to_odd(m, high, rest))


_CUT = 29
"""Bits of f64 that f32 has not."""


def is_near_middle(m: PureEmitter[V], a: V, error: int) -> V:
    """True if an f64, of the range of normal f32, is within so many of its last places of the
    middle of two f32: then an error of that size decides which one is nearest."""
    middle = m.constant(I64, error - (1 << _CUT - 1) & I64.mask)
    cut = m.bit_and(
        I64, m.add(I64, m.reinterpret(I64, F64, a), middle), m.constant(I64, (1 << _CUT) - 1)
    )
    return m.compare(I64, Condition.LE_U, cut, m.constant(I64, 2 * error))
