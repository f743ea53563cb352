# SPDX-License-Identifier: Apache-2.0
"""Polynomials, whose steps hardly wait for each other or are as few as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ferryvm.isa.emitter import PureEmitter
from ferryvm.isa.mathematics.pair import fma, mul, number

V = TypeVar("V")


def polynomial(
    m: PureEmitter[V], x: V, coefficients: Sequence[float], is_precise: bool = False
) -> V:
    """The polynomial with these coefficients, lowest power first, by Estrin's scheme: about
    log2(n) dependent steps instead of n (Muller, "Elementary Functions", 3rd edition, 5.3).

    `is_precise`: the last step is that of Horner's scheme, with one rounding instead of two, and
    the others are those of `polynomial_by_fours`."""
    if is_precise:
        rest = polynomial_by_fours(m, x, coefficients[1:])
        return fma(m, x, rest, number(m, coefficients[0]))
    terms = [number(m, each) for each in coefficients]
    power = x
    while len(terms) > 1:
        pairs = [
            fma(m, terms[place + 1], power, terms[place]) for place in range(0, len(terms) - 1, 2)
        ]
        terms = pairs + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            power = mul(m, power, power)
    return terms[0]


def polynomial_by_fours(m: PureEmitter[V], x: V, coefficients: Sequence[float]) -> V:
    """The same, of groups of four terms, which Horner's scheme over x^4 joins: as fast as Estrin's
    for up to 12 coefficients, with a product less."""
    square = mul(m, x, x)
    fourth = mul(m, square, square)
    total: V | None = None
    for start in reversed(range(0, len(coefficients), 4)):
        group = [number(m, each) for each in coefficients[start : start + 4]]
        pairs = [
            fma(m, group[place + 1], x, group[place]) if place + 1 < len(group) else group[place]
            for place in range(0, len(group), 2)
        ]
        term = fma(m, pairs[1], square, pairs[0]) if len(pairs) > 1 else pairs[0]
        total = term if total is None else fma(m, total, fourth, term)
    assert total is not None
    return total


def polynomial_by_pairs(m: PureEmitter[V], x: V, square: V, coefficients: Sequence[float]) -> V:
    """The same, of an even number of terms in pairs, which Horner's scheme over x^2 joins."""
    group = [number(m, each) for each in coefficients]
    pairs = [fma(m, odd, x, even) for even, odd in zip(group[::2], group[1::2], strict=True)]
    return horner(m, square, pairs)


def horner(m: PureEmitter[V], x: V, terms: Sequence[V]) -> V:
    """The same by Horner's scheme, of coefficients that are values: no products but those of the
    steps. Where many elements are computed side by side, as in loops over arrays, nothing else
    counts."""
    *others, found = terms
    for each in reversed(others):
        found = fma(m, found, x, each)
    return found
