# SPDX-License-Identifier: Apache-2.0
"""Near-minimax polynomials: interpolation at Chebyshev nodes in 80 digits.

Its error exceeds that of the minimax polynomial by a factor of at most 1 + 2/pi log n + 1, here
about 3 (Trefethen, "Approximation Theory and Approximation Practice", SIAM 2013, theorems 15.3 and
16.1), which costs less than two bits and needs no exchange of points.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from mpmath import mp, mpf

mp.dps = 80


def interpolate(f: Callable[[Any], Any], low: Any, high: Any, terms: int) -> list[Any]:
    """Coefficients, constant term first, of the polynomial that equals `f` at the nodes."""
    low, high = mpf(low), mpf(high)
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * n + 1) / (2 * terms))
        for n in range(terms)
    ]
    # Newton's divided differences, then expanded.
    table = [f(x) for x in nodes]
    for level in range(1, terms):
        for n in range(terms - 1, level - 1, -1):
            table[n] = (table[n] - table[n - 1]) / (nodes[n] - nodes[n - level])
    result = [table[-1]]
    for n in range(terms - 2, -1, -1):
        shifted = [mpf(0), *result]
        for place, value in enumerate(result):
            shifted[place] -= value * nodes[n]
        shifted[0] += table[n]
        result = shifted
    return result


def bits(value: Any) -> int:
    """Bits of the f64 nearest to a number, to nearest even."""
    with mp.workprec(53):
        rounded = +value
    return int(struct.unpack("<Q", struct.pack("<d", float(rounded)))[0])


def single(value: Any) -> int:
    """Bits of the f32 nearest to a number that is no subnormal one."""
    with mp.workprec(24):
        rounded = +value
    return int(struct.unpack("<I", struct.pack("<f", float(rounded)))[0])


def double(value: Any) -> Any:
    """The number that is the f64 nearest to one."""
    with mp.workprec(53):
        return +value


def truncated(value: Any, places: int) -> Any:
    """The multiple of 2^-places nearest to a number."""
    return mp.nint(value * mpf(2) ** places) / mpf(2) ** places


def split(value: Any, places: int) -> list[int]:
    """Bits of two f64 whose sum is nearly a number; the first is a multiple of 2^-places."""
    high = truncated(value, places)
    return [bits(high), bits(value - high)]


def nudged(coefficients: Sequence[int], steps: Sequence[int]) -> list[int]:
    """Coefficients moved by so many units in the last place each."""
    padded = [*steps, *[0] * (len(coefficients) - len(steps))]
    return [each + step for each, step in zip(coefficients, padded, strict=True)]
