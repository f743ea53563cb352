# SPDX-License-Identifier: Apache-2.0
"""Kernels that solve linear equations: elimination, factors, iteration."""

from __future__ import annotations

import numpy

from benchmarks.groups.sample import Array, Sample, Sizes, Work, grid, uniform


def _dominant(n: int) -> Array:
    """A matrix whose diagonal exceeds the sum of its rows in magnitude."""
    matrix = uniform(n * n, -1.0, 1.0)
    matrix[:: n + 1] += n
    return matrix


def _matrix(sizes: Sizes) -> Work:
    return Work((sizes["n"], _dominant(sizes["n"])), (1,))


def _eliminated(work: Work, sizes: Sizes) -> list[Array]:
    matrix = grid(work.array(1), sizes["n"]).copy()
    for k in range(sizes["n"] - 1):
        factors = matrix[k + 1 :, k] / matrix[k, k]
        matrix[k + 1 :, k:] -= factors[:, None] * matrix[k, k:]
    return [matrix.ravel()]


def _factored(work: Work, sizes: Sizes) -> list[Array]:
    matrix = grid(work.array(1), sizes["n"]).copy()
    for k in range(sizes["n"] - 1):
        matrix[k + 1 :, k] /= matrix[k, k]
        matrix[k + 1 :, k + 1 :] -= matrix[k + 1 :, k, None] * matrix[k, k + 1 :]
    return [matrix.ravel()]


def _jacobi(sizes: Sizes) -> Work:
    n = sizes["n"]
    right, unknowns = uniform(n, -1.0, 1.0, 1), numpy.zeros(n, numpy.float32)
    return Work((n, sizes["steps"], _dominant(n), right, unknowns, unknowns.copy()), (4,))


def _iterated(work: Work, sizes: Sizes) -> list[Array]:
    n = sizes["n"]
    matrix, x = grid(work.array(2), n), work.array(4)
    others = matrix.copy()
    numpy.fill_diagonal(others, 0)
    for _ in range(sizes["steps"]):
        sums = numpy.zeros(n, numpy.float32)
        for column in range(n):
            sums += others[:, column] * x[column]
        x = (work.array(3) - sums) / matrix.diagonal()
    return [x]


SAMPLES = (
    Sample("gauss", _matrix, _eliminated, {"TILE": 2, "n": 4}, {"n": 256}),
    Sample("lu", _matrix, _factored, {"TILE": 2, "n": 6}, {"n": 512}),
    Sample("jacobi", _jacobi, _iterated, {"SIZE": 4, "n": 8, "steps": 2}, {"n": 1024, "steps": 4}),
)
