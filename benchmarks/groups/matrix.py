# SPDX-License-Identifier: Apache-2.0
"""Kernels of dense matrices: product, transpose, cosine transform."""

from __future__ import annotations

import itertools
import math

import numpy

from benchmarks.groups.combined import strided, tree
from benchmarks.groups.sample import Array, Call, Sample, Sizes, Work, grid, integers, uniform


def _matmul(sizes: Sizes) -> Work:
    n = sizes["n"]
    both = uniform(n * n, -1.0, 1.0, 0), uniform(n * n, -1.0, 1.0, 1)
    return Work((n, *both, numpy.zeros(n * n, numpy.float32)), (3,))


def _product(work: Work, sizes: Sizes) -> list[Array]:
    n = sizes["n"]
    return [product(grid(work.array(1), n), grid(work.array(2), n)).ravel()]


def product(left: Array, right: Array) -> Array:
    """The product of two matrices of f32, whose parts are added in order."""
    found = numpy.zeros((left.shape[0], right.shape[1]), numpy.float32)
    for k in range(left.shape[1]):
        found += left[:, k, None] * right[None, k, :]
    return found


def _matmul_calls(work: Work, sizes: Sizes) -> list[Call]:
    n, tile = sizes["n"], sizes["TILE"]
    return [Call(work.arguments, (n, n), local=(tile, tile))]


def _transpose(sizes: Sizes) -> Work:
    rows, columns = sizes["rows"], sizes["columns"]
    count = rows * columns
    return Work((rows, columns, uniform(count, -1.0, 1.0), numpy.zeros(count, numpy.float32)), (3,))


def _transposed(work: Work, sizes: Sizes) -> list[Array]:
    return [grid(work.array(2), sizes["rows"]).T.ravel()]


def _transpose_calls(work: Work, sizes: Sizes) -> list[Call]:
    tile, step = sizes["TILE"], sizes["ROWS"]
    items = sizes["columns"], sizes["rows"] // tile * step
    return [Call(work.arguments, items, local=(tile, step))]


def cosines() -> Array:
    """The cosine transform of eight values as a matrix, row by row."""
    rows = [
        [
            math.sqrt((1 if k == 0 else 2) / 8) * math.cos(math.pi * k * (2 * i + 1) / 16)
            for i in range(8)
        ]
        for k in range(8)
    ]
    return numpy.array(rows, numpy.float32).ravel()


def _dct(sizes: Sizes) -> Work:
    side = sizes["side"]
    pixels = uniform(side * side, -128.0, 128.0)
    return Work((side, side, pixels, cosines(), numpy.zeros_like(pixels)), (4,))


def _transformed(work: Work, sizes: Sizes) -> list[Array]:
    side = sizes["side"]
    pixels, transform = grid(work.array(2), side), grid(work.array(3), 8)
    found = numpy.zeros((side, side), numpy.float32)
    for y in range(0, side, 8):
        for x in range(0, side, 8):
            rows = product(pixels[y : y + 8, x : x + 8], transform.T)
            found[y : y + 8, x : x + 8] = product(transform, rows)
    return [found.ravel()]


def _dct_calls(work: Work, sizes: Sizes) -> list[Call]:
    return [Call(work.arguments[1:], (sizes["side"], sizes["side"]), local=(8, 8))]


def _matvec(sizes: Sizes) -> Work:
    rows, columns = sizes["rows"], sizes["columns"]
    matrix, vector = uniform(rows * columns, -1.0, 1.0, 0), uniform(columns, -1.0, 1.0, 1)
    return Work((rows, columns, matrix, vector, numpy.zeros(rows, numpy.float32)), (4,))


def _times_vector(work: Work, sizes: Sizes) -> list[Array]:
    products = grid(work.array(2), sizes["rows"]) * work.array(3)
    sums = [tree(strided(row, sizes["SIZE"], 1))[0] for row in products]
    return [numpy.array(sums, numpy.float32)]


def _sparse(sizes: Sizes) -> Work:
    rows = sizes["rows"]
    lengths = integers(rows, 0, sizes["most"] + 1, "i4", 0)
    starts = numpy.zeros(rows + 1, numpy.int32)
    starts[1:] = numpy.cumsum(lengths)
    count = int(starts[-1])
    columns = integers(count, 0, rows, "i4", 1)
    values, vector = uniform(count, -1.0, 1.0, 2), uniform(rows, -1.0, 1.0, 3)
    return Work((rows, starts, columns, values, vector, numpy.zeros(rows, numpy.float32)), (5,))


def _sparse_product(work: Work, sizes: Sizes) -> list[Array]:
    products = work.array(3) * work.array(4)[work.array(2)]
    bounds = work.array(1).tolist()
    lanes = sizes["LANES"]
    sums = [
        tree(strided(products[start:end], lanes, 1))[0] for start, end in itertools.pairwise(bounds)
    ]
    return [numpy.array(sums, numpy.float32)]


SAMPLES = (
    Sample(
        "matmul",
        _matmul,
        _product,
        {"TILE": 4, "n": 8},
        {"TILE": 16, "n": 512},
        kernels=_matmul_calls,
    ),
    Sample(
        "transpose",
        _transpose,
        _transposed,
        {"TILE": 4, "ROWS": 2, "rows": 12, "columns": 8},
        {"TILE": 16, "ROWS": 4, "rows": 2048, "columns": 2048},
        kernels=_transpose_calls,
    ),
    Sample("dct", _dct, _transformed, {"side": 8}, {"side": 1024}, kernels=_dct_calls),
    Sample(
        "matvec",
        _matvec,
        _times_vector,
        {"SIZE": 4, "rows": 3, "columns": 10},
        {"SIZE": 64, "rows": 2048, "columns": 2048},
    ),
    Sample(
        "sparse",
        _sparse,
        _sparse_product,
        {"ROWS": 2, "LANES": 4, "rows": 7, "most": 9},
        {"LANES": 8, "rows": 1 << 16, "most": 64},
    ),
    Sample("matmul-strips", _matmul, _product, {"TILE": 4, "ROWS": 1, "n": 8}, {"n": 512}),
)
