# SPDX-License-Identifier: Apache-2.0
"""Kernels of grids: stencils and filters with tiles in arrays of groups."""

from __future__ import annotations

import numpy

from benchmarks.groups import sample
from benchmarks.groups.sample import Array, Sample, Sizes, Work, integers, uniform


def _stencil(sizes: Sizes) -> Work:
    n = sizes["n"]
    values = uniform(n * n, 0.0, 1.0)
    return Work((n, sizes["steps"], values, values.copy()), (2, 3))


def _steps(work: Work, sizes: Sizes) -> list[Array]:
    now, then = (sample.grid(work.array(position), sizes["n"]).copy() for position in (2, 3))
    quarter = numpy.float32(0.25)
    for step in range(sizes["steps"]):
        before, after = (then, now) if step % 2 else (now, then)
        rows = before[:-2, 1:-1] + before[2:, 1:-1]
        after[1:-1, 1:-1] = quarter * (rows + (before[1:-1, :-2] + before[1:-1, 2:]))
    return [now.ravel(), then.ravel()]


def _convolution(sizes: Sizes) -> Work:
    height, width, taps = sizes["height"], sizes["width"], 2 * sizes["RADIUS"] + 1
    image = uniform(height * width, 0.0, 255.0, 0)
    weights = uniform(taps, 0.0, 2.0 / taps, 1)
    return Work((height, width, weights, image, numpy.zeros_like(image)), (4,))


def _convolved(work: Work, sizes: Sizes) -> list[Array]:
    taps, radius = work.array(2), sizes["RADIUS"]
    image = sample.grid(work.array(3), sizes["height"])
    for _ in range(2):  # the columns are the rows of the transpose
        padded = numpy.pad(image, ((0, 0), (radius, radius)))
        image = numpy.zeros_like(image)
        for k, tap in enumerate(taps):
            image += tap * padded[:, k : k + image.shape[1]]
        image = image.T
    return [image.ravel()]


def _mandelbrot(sizes: Sizes) -> Work:
    size = sizes["size"]
    return Work((size, sizes["most"], numpy.zeros(size * size, numpy.int32)), (2,))


def _escaped(work: Work, sizes: Sizes) -> list[Array]:
    size = sizes["size"]
    step = numpy.float32(3) / numpy.float32(size)
    along = numpy.arange(size, dtype=numpy.float32) * step
    real, imaginary = along[None, :] - numpy.float32(2.25), along[:, None] - numpy.float32(1.5)
    a, b = numpy.zeros((size, size), numpy.float32), numpy.zeros((size, size), numpy.float32)
    count = numpy.zeros((size, size), numpy.int32)
    for _ in range(sizes["most"]):
        inside = a * a + b * b <= 4
        count[inside] += 1
        after = a * a - b * b + real, (2 * a) * b + imaginary
        a, b = numpy.where(inside, after[0], a), numpy.where(inside, after[1], b)
    return [count.ravel()]


def _sobel(sizes: Sizes) -> Work:
    count = sizes["height"] * sizes["width"]
    image = integers(count, 0, 256, "u1")
    return Work((sizes["height"], sizes["width"], image, numpy.zeros_like(image)), (3,))


def _edges(work: Work, sizes: Sizes) -> list[Array]:
    image = sample.grid(work.array(2), sizes["height"]).astype(numpy.int64)
    padded = numpy.pad(image, 1, "edge")
    found = []
    for turned in (padded, padded.T):
        smooth = turned[:-2] + 2 * turned[1:-1] + turned[2:]
        found.append(numpy.abs(smooth[:, 2:] - smooth[:, :-2]))
    edges = numpy.minimum((found[0] + found[1].T) // 2, 255)
    return [edges.astype(numpy.uint8).ravel()]


def _life(sizes: Sizes) -> Work:
    cells = integers(sizes["n"] ** 2, 0, 2, "u1")
    return Work((sizes["n"], cells, numpy.zeros_like(cells)), (2,))


def _lived(work: Work, sizes: Sizes) -> list[Array]:
    cells = sample.grid(work.array(1), sizes["n"])
    for _ in range(sizes["STEPS"]):
        shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
        around = sum(numpy.roll(cells, shift, (0, 1)) for shift in shifts)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(numpy.uint8)
    return [cells.ravel()]


SAMPLES = (
    Sample("stencil", _stencil, _steps, {"TILE": 4, "n": 10, "steps": 2}, {"n": 1026, "steps": 4}),
    Sample(
        "convolution",
        _convolution,
        _convolved,
        {"RADIUS": 2, "ROWS": 2, "COLUMNS": 4, "height": 6, "width": 8},
        {"RADIUS": 4, "height": 1024, "width": 1024},
    ),
    Sample(
        "mandelbrot",
        _mandelbrot,
        _escaped,
        {"TILE": 4, "size": 8, "most": 20},
        {"size": 512, "most": 256},
    ),
    Sample(
        "sobel",
        _sobel,
        _edges,
        {"TILE": 4, "height": 8, "width": 12},
        {"height": 1024, "width": 1024},
    ),
    Sample(
        "life",
        _life,
        _lived,
        {"TILE": 4, "STEPS": 2, "n": 8},
        {"STEPS": 2, "n": 1024},
    ),
)
