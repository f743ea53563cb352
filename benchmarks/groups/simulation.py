# SPDX-License-Identifier: Apache-2.0
"""Kernels of bodies, graphs, clusters and sequences."""

from __future__ import annotations

import numpy

from benchmarks.groups.combined import reduced
from benchmarks.groups.sample import Array, Sample, Sizes, Work, grid, integers, uniform

FAR = 1 << 28
"""A length that stands for no edge: the sum of two is an i32."""


PENALTY = 10
"""Of a gap in an alignment."""


def _nbody(sizes: Sizes) -> Work:
    n = sizes["n"]
    places = (uniform(n, -1.0, 1.0, stream) for stream in range(3))
    results = (numpy.zeros(n, numpy.float32) for _ in range(3))
    return Work((n, *places, uniform(n, 0.5, 1.5, 3), *results), (5, 6, 7))


def _accelerations(work: Work, _sizes: Sizes) -> list[Array]:
    places = [work.array(position) for position in (1, 2, 3)]
    found = [numpy.zeros_like(place) for place in places]
    for j, mass in enumerate(work.array(4)):
        dx, dy, dz = (place[j] - place for place in places)
        squared = dx * dx + dy * dy + dz * dz + numpy.float32(0.01)
        force = mass / (squared * numpy.sqrt(squared))
        for sum_, distance in zip(found, (dx, dy, dz), strict=True):
            sum_ += force * distance
    return found


def _graph(sizes: Sizes) -> Work:
    n = sizes["n"]
    lengths = integers(n * n, 1, 100, "i4", 0)
    lengths[integers(n * n, 0, 4, "i4", 1) > 0] = FAR
    lengths[:: n + 1] = 0
    return Work((n, lengths), (1,))


def _shortest(work: Work, sizes: Sizes) -> list[Array]:
    lengths = grid(work.array(1), sizes["n"]).copy()
    for through in range(sizes["n"]):
        lengths = numpy.minimum(lengths, lengths[:, through, None] + lengths[None, through, :])
    return [lengths.ravel()]


def _kmeans(sizes: Sizes) -> Work:
    n, clusters = sizes["n"], sizes["CLUSTERS"]
    points = uniform(n, 0.0, 1.0, 0), uniform(n, 0.0, 1.0, 1)
    centres = uniform(clusters, 0.0, 1.0, 2), uniform(clusters, 0.0, 1.0, 3)
    return Work((n, sizes["steps"], *points, *centres, numpy.zeros(n, numpy.int32)), (4, 5, 6))


def _clustered(work: Work, sizes: Sizes) -> list[Array]:
    n, size = sizes["n"], sizes["SIZE"]
    points = work.array(2), work.array(3)
    centres = [work.array(4).copy(), work.array(5).copy()]
    padding = -n % size
    labels = work.array(6)
    for _ in range(sizes["steps"]):
        dx, dy = (point[:, None] - centre for point, centre in zip(points, centres, strict=True))
        labels = (dx * dx + dy * dy).argmin(axis=1).astype(numpy.int32)
        for cluster in range(sizes["CLUSTERS"]):
            is_mine = labels == cluster
            for point, centre in zip(points, centres, strict=True):
                padded = numpy.pad(numpy.where(is_mine, point, 0), (0, padding))
                total = numpy.float32(0)
                for part in reduced(padded.reshape(-1, size)):
                    total += part
                if is_mine.any():
                    centre[cluster] = total / numpy.float32(is_mine.sum())
    return [*centres, labels]


def _alignment(sizes: Sizes) -> Work:
    n = sizes["n"]
    scores = numpy.zeros((n + 1, n + 1), numpy.int32)
    scores[0] = scores[:, 0] = -PENALTY * numpy.arange(n + 1)
    alike = integers((n + 1) ** 2, -10, 15, "i4")
    return Work((n, scores.ravel(), alike), (1,))


def _aligned(work: Work, sizes: Sizes) -> list[Array]:
    rows = sizes["n"] + 1
    scores, alike = grid(work.array(1), rows).copy(), grid(work.array(2), rows)
    for diagonal in range(2, 2 * rows - 1):
        y = numpy.arange(max(1, diagonal - rows + 1), min(diagonal, rows))
        x = diagonal - y
        gap = numpy.maximum(scores[y, x - 1], scores[y - 1, x]) - PENALTY
        scores[y, x] = numpy.maximum(scores[y - 1, x - 1] + alike[y, x], gap)
    return [scores.ravel()]


SAMPLES = (
    Sample("nbody", _nbody, _accelerations, {"SIZE": 4, "n": 8}, {"n": 4096}),
    Sample("floyd", _graph, _shortest, {"TILE": 2, "n": 6}, {"n": 256}),
    Sample(
        "kmeans",
        _kmeans,
        _clustered,
        {"SIZE": 4, "CLUSTERS": 2, "n": 10, "steps": 2},
        {"SIZE": 64, "CLUSTERS": 8, "n": 1 << 18, "steps": 2},
    ),
    Sample("alignment", _alignment, _aligned, {"TILE": 3, "n": 6}, {"n": 1024}),
)
