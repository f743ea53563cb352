# SPDX-License-Identifier: Apache-2.0
"""Kernels of bodies and of graphs."""

from __future__ import annotations

import numpy

from benchmarks.groups.sample import Array, Sample, Sizes, Work, grid, integers, uniform

FAR = 1 << 28
"""A length that stands for no edge: the sum of two is an i32."""


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


SAMPLES = (
    Sample("nbody", _nbody, _accelerations, {"SIZE": 4, "n": 8}, {"n": 4096}),
    Sample("floyd", _graph, _shortest, {"TILE": 2, "n": 6}, {"n": 256}),
)
