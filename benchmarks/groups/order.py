# SPDX-License-Identifier: Apache-2.0
"""Kernels that combine, scan, sort and count elements."""

from __future__ import annotations

import numpy

from benchmarks.groups.combined import strided, tree
from benchmarks.groups.sample import Array, Call, Sample, Sizes, Work, integers, uniform


def _reduction(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, uniform(n, -1.0, 1.0), numpy.zeros(1, numpy.float32)), (2,))


def _sum(work: Work, sizes: Sizes) -> list[Array]:
    size, groups = sizes["SIZE"], sizes["GROUPS"]
    sums = tree(strided(work.array(1), size, groups))
    return [tree(strided(sums, size, 1))]


def _reduction_calls(work: Work, sizes: Sizes) -> list[Call]:
    n, values, to = work.arguments
    size, groups = sizes["SIZE"], sizes["GROUPS"]
    sums = numpy.zeros(groups, numpy.float32)
    return [
        Call((n, values, sums), (size * groups,), local=(size,)),
        Call((groups, sums, to), (size,), local=(size,)),
    ]


def _dot(sizes: Sizes) -> Work:
    n = sizes["n"]
    both = uniform(n, -1.0, 1.0, 0), uniform(n, -1.0, 1.0, 1)
    return Work((n, *both, numpy.zeros(1, numpy.float32)), (3,))


def _dotted(work: Work, sizes: Sizes) -> list[Array]:
    size, groups = sizes["SIZE"], sizes["GROUPS"]
    sums = tree(strided(work.array(1) * work.array(2), size, groups))
    return [tree(strided(sums, size, 1))]


def _minimum(sizes: Sizes) -> Work:
    n = sizes["n"]
    values = integers(n, 0, n // 2, "i4").astype(numpy.float32)
    return Work((n, values, numpy.zeros(1, numpy.float32), numpy.zeros(1, numpy.int64)), (2, 3))


def _least(work: Work, _sizes: Sizes) -> list[Array]:
    index = int(work.array(1).argmin())
    return [work.array(1)[index : index + 1], numpy.array([index])]


def _scan(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, integers(n, -1000, 1000, "i4"), numpy.zeros(n, numpy.int32)), (2,))


def _scanned(work: Work, _sizes: Sizes) -> list[Array]:
    return [numpy.cumsum(work.array(1), dtype=numpy.int32)]


def _scan_calls(work: Work, sizes: Sizes) -> list[Call]:
    n, values, to = work.arguments
    size = sizes["SIZE"]
    tiles = -(-sizes["n"] // (size * sizes["EACH"]))
    sums = numpy.zeros(tiles, numpy.int32)
    return [
        Call((n, values, sums), (tiles * size,), "tile_sums", (size,)),
        Call((tiles, sums), (size,), "carries", (size,)),
        Call((n, values, to, sums), (tiles * size,), local=(size,)),
    ]


def _scanned_before(work: Work, sizes: Sizes) -> list[Array]:
    return [_scanned(work, sizes)[0] - work.array(1)]


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
        kernels=_reduction_calls,
    ),
    Sample("scan-steps", _scan, _scanned, {"SIZE": 4, "n": 19}, {"n": 1 << 20}),
    Sample("scan-tree", _scan, _scanned_before, {"SIZE": 4, "n": 21}, {"n": 1 << 20}),
    Sample(
        "scan-tiles",
        _scan,
        _scanned,
        {"SIZE": 4, "EACH": 2, "n": 43},
        {"SIZE": 64, "EACH": 8, "n": 1 << 20},
        kernels=_scan_calls,
    ),
    Sample(
        "dot",
        _dot,
        _dotted,
        {"SIZE": 8, "GROUPS": 3, "n": 50},
        {"SIZE": 64, "GROUPS": 32, "n": 1 << 22},
    ),
    Sample("minimum", _minimum, _least, {"SIZE": 8, "GROUPS": 3, "n": 50}, {"n": 1 << 22}),
    Sample("bitonic", _keys, _sorted, {"SIZE": 4, "n": 32}, {"n": 1 << 18}),
    Sample(
        "histogram",
        _histogram,
        _counted,
        {"BINS": 8, "SIZE": 4, "EACH": 4, "n": 27},
        {"BINS": 256, "n": 1 << 22},
    ),
)
