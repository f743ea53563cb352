# SPDX-License-Identifier: Apache-2.0
"""Kernels that combine, scan, sort and count elements."""

from __future__ import annotations

import numpy

from benchmarks.groups.combined import strided, tree
from benchmarks.groups.sample import (
    SEED,
    Array,
    Call,
    Sample,
    Sizes,
    Work,
    grid,
    integers,
    uniform,
)


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


def _radix(sizes: Sizes) -> Work:
    keys = integers(sizes["n"], 0, 1 << sizes["KEY"], "u4")
    return Work((sizes["n"], keys, numpy.zeros_like(keys)), (1,))


def _pairs(sizes: Sizes) -> Work:
    n = sizes["n"]
    keys = numpy.random.default_rng(SEED).permutation(n).astype(numpy.int32)
    return Work((n, keys, integers(n, 0, 1000, "i4")), (1, 2))


def _sorted_pairs(work: Work, sizes: Sizes) -> list[Array]:
    keys, values = (grid(work.array(p), sizes["n"] // (2 * sizes["SIZE"])) for p in (1, 2))
    order = keys.argsort(axis=1)
    return [numpy.take_along_axis(each, order, 1).ravel() for each in (keys, values)]


def _compaction(sizes: Sizes) -> Work:
    n = sizes["n"]
    total = numpy.zeros(1, numpy.int64)
    return Work((n, uniform(n, -1.0, 1.0), numpy.zeros(n, numpy.float32), total), (2, 3))


def _positive(work: Work, _sizes: Sizes) -> list[Array]:
    values, found = work.array(1), work.array(2).copy()
    positive = values[values > 0]
    found[: len(positive)] = positive
    return [found, numpy.array([len(positive)])]


def _runlength(sizes: Sizes) -> Work:
    n = sizes["n"]
    values = numpy.repeat(integers(n, 0, 3, "i4", 0), integers(n, 1, 5, "i4", 1))[:n]
    both = numpy.zeros(n, numpy.int32), numpy.zeros(n, numpy.int32)
    return Work((n, values, *both, numpy.zeros(1, numpy.int64)), (2, 3, 4))


def _runs(work: Work, sizes: Sizes) -> list[Array]:
    values = work.array(1)
    starts = numpy.flatnonzero(numpy.concatenate(([True], values[1:] != values[:-1])))
    found, lengths = work.array(2).copy(), work.array(3).copy()
    found[: len(starts)] = values[starts]
    lengths[: len(starts)] = numpy.diff(starts, append=sizes["n"])
    return [found, lengths, numpy.array([len(starts)])]


def _search(sizes: Sizes) -> Work:
    n, length = sizes["n"], sizes["length"]
    text = integers(n, 0, 2, "u1") + 97
    found, total = numpy.zeros(n, numpy.uint8), numpy.zeros(1, numpy.uint32)
    return Work((n, length, text, text[n // 2 : n // 2 + length].copy(), found, total), (4, 5))


def _found(work: Work, sizes: Sizes) -> list[Array]:
    windows = numpy.lib.stride_tricks.sliding_window_view(work.array(2), sizes["length"])
    found = work.array(4).copy()
    found[: len(windows)] = (windows == work.array(3)).all(axis=1)
    return [found, numpy.array([found.sum()], numpy.uint32)]


def _whole(sizes: Sizes) -> Work:
    n = sizes["n"]
    return Work((n, integers(n, -1000, 1000, "i4"), numpy.zeros(1, numpy.int32)), (2,))


def _whole_sum(work: Work, _sizes: Sizes) -> list[Array]:
    return [work.array(1).sum(dtype=numpy.int32, keepdims=True)]


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
    Sample("reduction-steps", _whole, _whole_sum, {"SIZE": 4, "n": 19}, {"n": 1 << 22}),
    Sample(
        "radix",
        _radix,
        _sorted,
        {"SIZE": 8, "DIGIT": 2, "VALUES": 4, "KEY": 4, "n": 21},
        {"KEY": 32, "n": 1 << 18},
    ),
    Sample("odd-even", _pairs, _sorted_pairs, {"SIZE": 4, "n": 16}, {"SIZE": 64, "n": 1 << 18}),
    Sample("compaction", _compaction, _positive, {"SIZE": 4, "n": 23}, {"n": 1 << 20}),
    Sample("runlength", _runlength, _runs, {"SIZE": 4, "n": 23}, {"n": 1 << 20}),
    Sample(
        "search",
        _search,
        _found,
        {"SIZE": 8, "MOST": 3, "n": 30, "length": 3},
        {"n": 1 << 20, "length": 12},
    ),
)
