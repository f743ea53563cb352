# SPDX-License-Identifier: Apache-2.0
"""Minimax polynomials by the exchange of Remez, in 300 bits (Muller, "Elementary Functions", 3rd
edition, 3.5).

Interpolation (`tests.mathematics.chebyshev`) loses up to two bits, which f64 has not to spare; f32
has them, and its coefficients are kept because all operands were tried with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

Number = Any
"""A number of mpmath, which has no types."""

_ROUNDS = 12
_GRID = 40
"""Points between two extremes of the error at which it is looked at."""


def minimax(f: Callable[[Number], Number], low: Number, high: Number, degree: int) -> list[float]:
    """The f64 nearest to the coefficients, lowest power first, of the polynomial of least absolute
    error on an interval."""
    with mp.workprec(300):
        return [float(c) for c in _exchange(f, mpf(low), mpf(high), degree + 1)]


def _exchange(f: Callable[[Number], Number], low: Number, high: Number, terms: int) -> list[Number]:
    middle, radius = (low + high) / 2, (high - low) / 2
    points = [middle - radius * mp.cos(mp.pi * n / terms) for n in range(terms + 1)]
    count = _GRID * (terms + 1)
    grid = [middle - radius * mp.cos(mp.pi * n / count) for n in range(count + 1)]
    values = [f(x) for x in grid]
    found: list[Number] = []
    for _ in range(_ROUNDS):
        matrix, right = mp.matrix(terms + 1, terms + 1), mp.matrix(terms + 1, 1)
        for row, x in enumerate(points):
            for power in range(terms):
                matrix[row, power] = x**power
            matrix[row, terms], right[row] = (-1) ** row, f(x)
        solved = mp.lu_solve(matrix, right)
        found, least = [solved[n] for n in range(terms)], abs(solved[terms])
        errors = [y - _value(found, x) for x, y in zip(grid, values, strict=True)]
        by_sign = itertools.groupby(zip(errors, grid, strict=True), lambda each: each[0] > 0)
        extremes = [max(group, key=lambda each: abs(each[0])) for _, group in by_sign]
        if len(extremes) != terms + 1:
            break
        points = [x for _, x in extremes]
        if max(abs(error) for error, _ in extremes) < least * mpf("1.001"):
            break
    return found


def _value(coefficients: list[Number], x: Number) -> Number:
    total = mpf(0)
    for each in reversed(coefficients):
        total = total * x + each
    return total
