# SPDX-License-Identifier: Apache-2.0
"""Kernels of grids: stencils and filters with tiles in arrays of groups."""

from __future__ import annotations

import numpy

from benchmarks.groups import sample
from benchmarks.groups.sample import Array, Sample, Sizes, Work, uniform


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


SAMPLES = (
    Sample("stencil", _stencil, _steps, {"TILE": 4, "n": 10, "steps": 2}, {"n": 1026, "steps": 4}),
)
