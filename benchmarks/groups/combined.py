# SPDX-License-Identifier: Apache-2.0
"""Sums of f32 in the orders in which groups add them up."""

from __future__ import annotations

import numpy

from benchmarks.groups.sample import Array


def tree(values: Array) -> Array:
    """The sums of rows of a power of two of values, the upper half added to the lower one each
    time."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def reduced(values: Array) -> Array:
    """The sums of rows of up to 1,024 values in the order of `reduce`."""
    count, found = values.shape[-1], values[..., 0].copy()
    rest = count // 16 * 16
    if rest:
        sums = values[..., :16].copy()
        for first in range(16, rest, 16):
            sums = sums + values[..., first : first + 16]
        found = tree(sums)
    for i in range(rest or 1, count):
        found = found + values[..., i]
    return found


def strided(values: Array, size: int, groups: int) -> Array:
    """Sums of values that are `size * groups` apart, in order: a row for each group."""
    padded = numpy.zeros(-(-len(values) // (size * groups)) * size * groups, values.dtype)
    padded[: len(values)] = values
    found = numpy.zeros((groups, size), values.dtype)
    for each in padded.reshape(-1, groups, size):
        found += each
    return found
