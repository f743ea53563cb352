# SPDX-License-Identifier: Apache-2.0
"""Functions of f32 by pieces, as sums of two f32.

    x = j w + t,  |t| <= w / 2       f(x) = a0 + a1 t + a2 t^2 + ...,  a0, a1, ... from tables, by j

for 32 multiples of a width w that has so few bits that t is exact. The first coefficients are sums
of two f32, of which the first one of a0 is a multiple of 2^-22; the others need not be, since t is
small. At 0 the polynomial is one for positive t alone, and a0 is 0, so that the error is one of t.

All are those of the function times 1 - e, where e is more than the error (`quick`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics.pair import add, fast_two_sum, fma, mul, number, sub, two_product
from ferryvm.isa.type import F32, I32

V = TypeVar("V")

_SHIFT = 1.5 * 2.0**23
"""The last place of a sum with this number, of f32, is 1."""


@dataclasses.dataclass(frozen=True)
class Pieces:
    """Coefficients of a function, as tables, and the width."""

    width: float
    sums: Sequence[ConstantTable]
    """a0, a1 and perhaps a2, each in two parts."""
    terms: Sequence[ConstantTable]
    """The others."""


def piecewise(
    m: PureEmitter[V],
    pieces: Pieces,
    x: V,
    low: V | None = None,
    onto: tuple[V, V, V] | None = None,
) -> tuple[V, V]:
    """The function of an f32 or a sum of two that is not negative, as a sum.

    `onto`: b, c and a factor that is a power of 2 or its negative: then b + c + factor f, where b
    is a multiple of 2^-22, or 0, and either at least factor f or 0."""
    shift = number(m, _SHIFT, F32)
    shifted = fma(m, x, number(m, 1 / pieces.width, F32), shift, F32)
    place = sub(m, shifted, shift, F32)
    index = m.reinterpret(I32, F32, shifted)
    t = fma(m, place, number(m, -pieces.width, F32), x, F32)  # exact
    a0, a0_low, a1, a1_low, *second = (m.lookup(each, index) for each in pieces.sums)
    near = t if low is None else add(m, t, low, F32)
    *others, last = pieces.terms
    tail = m.lookup(last, index)
    for each in reversed(others):
        tail = fma(m, near, tail, m.lookup(each, index), F32)
    if second:
        a1, a1_low = _slope(m, t, (a1, a1_low), second, (near, tail))
        rest = fma(m, t, a1_low, a0_low, F32)
    else:
        rest = fma(m, mul(m, near, near, F32), tail, fma(m, t, a1_low, a0_low, F32), F32)
    if low is not None:
        rest = fma(m, low, a1, rest, F32)
    if onto is not None:
        base, base_low, factor = onto
        a0, t = fma(m, a0, factor, base, F32), mul(m, t, factor, F32)  # exact
        rest = fma(m, rest, factor, base_low, F32)
    product, product_low = two_product(m, t, a1, F32)
    total, total_low = fast_two_sum(m, a0, product, F32)
    return total, add(m, add(m, total_low, product_low, F32), rest, F32)


def _slope(
    m: PureEmitter[V], t: V, first: tuple[V, V], second: Sequence[V], rest: tuple[V, V]
) -> tuple[V, V]:
    """a1 + t (a2 + b c) as a sum, for sums a1 and a2, and b and c as `rest`."""
    (a1, a1_low), (a2, a2_low) = first, second
    high = fma(m, *rest, a2, F32)
    low = add(m, fma(m, *rest, sub(m, a2, high, F32), F32), a2_low, F32)
    product, product_low = two_product(m, t, high, F32)
    total, total_low = fast_two_sum(m, a1, product, F32)
    low = fma(m, t, low, product_low, F32)
    return total, add(m, add(m, total_low, a1_low, F32), low, F32)
