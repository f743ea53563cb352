# SPDX-License-Identifier: Apache-2.0
"""Kernels that combine, scan, sort and count elements."""

from __future__ import annotations

import numpy

from benchmarks.groups.sample import Array, Sample, Sizes, Work, integers, uniform


def _reduction(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, uniform(n, -1.0, 1.0), numpy.zeros(1, numpy.float32)), (2,))


def tree(values: Array) -> Array:
    """The sums of rows of a power of two of values, the upper half added to the lower one each time."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def strided(values: Array, size: int, groups: int) -> Array:
    """Sums of values that are `size * groups` apart, in order: a row for each group."""
    padded = numpy.zeros(-(-len(values) // (size * groups)) * size * groups, values.dtype)
    padded[: len(values)] = values
    found = numpy.zeros((groups, size), values.dtype)
    for each in padded.reshape(-1, groups, size):
        found += each
    return found


def _sum(work: Work, sizes: Sizes) -> list[Array]:
    size, groups = sizes["SIZE"], sizes["GROUPS"]
    sums = tree(strided(work.array(1), size, groups))
    return [tree(strided(sums, size, 1))]


def _scan(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, integers(n, -1000, 1000, "i4"), numpy.zeros(n, numpy.int32)), (2,))


def _scanned(work: Work, _sizes: Sizes) -> list[Array]:
    return [numpy.cumsum(work.array(1), dtype=numpy.int32)]


def _keys(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, integers(n, -(1 << 31), 1 << 31, "i4")), (1,))


def _sorted(work: Work, _sizes: Sizes) -> list[Array]:
    return [numpy.sort(work.array(1))]


def _histogram(sizes: Sizes) -> Work:
    n, bins = sizes["n"], sizes["BINS"]
    return Work((n, integers(n, 0, bins, "u1"), numpy.zeros(bins, numpy.uint32)), (2,))


def _counted(work: Work, sizes: Sizes) -> list[Array]:
    return [numpy.bincount(work.array(1), minlength=sizes["BINS"]).astype(numpy.uint32)]


SAMPLES = (
    Sample(
        "reduction",
        _reduction,
        _sum,
        {"SIZE": 4, "GROUPS": 4, "n": 50},
        {"SIZE": 128, "GROUPS": 64, "n": 1 << 22},
    ),
    Sample("scan-steps", _scan, _scanned, {"SIZE": 4, "n": 19}, {"n": 1 << 20}),
    Sample("bitonic", _keys, _sorted, {"SIZE": 4, "n": 32}, {"n": 1 << 18}),
    Sample(
        "histogram",
        _histogram,
        _counted,
        {"BINS": 8, "SIZE": 4, "EACH": 4, "n": 27},
        {"BINS": 256, "n": 1 << 22},
    ),
)
