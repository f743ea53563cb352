# SPDX-License-Identifier: Apache-2.0
"""The goals for data-parallel work, held to what a run found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import geometric_mean
from benchmarks.parallel.contender import LLVM, OPENCL, OPENCL_C, OPENCL_COPIES, PLACED
from benchmarks.parallel.speed import Row
from benchmarks.report import Target

EIGHT = (
    "daxpy", "blackscholes", "nbody", "dft", "mandelbrot", "kmeans", "hilbert", "spectralnorm",
)  # fmt: skip
"""The programs that means are over."""

MOST_LLVM, MOST_MANDELBROT, MOST_OF_ANY = 0.50, 0.20, 1.15
MOST_PLACED = 1.3
MOST_OPENCL = 1.10
"""On a processor, and on a GPU with copies; kernels alone are those of `device_time`."""
MOST_LAUNCH = 5.0
"""Microseconds of a launch over a plain call."""


def mean(rows: Sequence[Row], contender: str, baseline: str = "") -> float | None:
    """The geometric mean of a contender's ratios over the eight programs, of those that ran."""
    ratios = [row.ratio(contender, baseline) for row in rows if row.twin.name in EIGHT]
    return geometric_mean(ratio for ratio in ratios if ratio is not None)


def goals(rows: Sequence[Row], launch: Mapping[str, Any]) -> list[Target]:
    """All goals; `launch` is empty where that part did not take place."""
    ratios = {row.twin.name: row.ratio(LLVM) for row in rows if not row.twin.peer}
    known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    worst = max(known, key=lambda name: known[name]) if known else None
    most = None if worst is None else known[worst]
    shown = "" if worst is None else f" ({worst})"
    # OpenCL C alone leaves out the copies of a device with memory of its own.
    by_hand = OPENCL_COPIES if any(OPENCL_COPIES in row.seconds for row in rows) else OPENCL_C
    return [
        Target("llvm over gcc, geometric mean", mean(rows, LLVM), MOST_LLVM, is_upper=True),
        Target("llvm over gcc, mandelbrot", known.get("mandelbrot"), MOST_MANDELBROT, is_upper=True),
        Target(f"llvm over gcc, worst program{shown}", most, MOST_OF_ANY, is_upper=True),
        Target(f"opencl over {by_hand}, geometric mean", mean(rows, OPENCL, by_hand), MOST_OPENCL,
               is_upper=True),
        _placement(rows),
        Target("launch of 1,000 items over a plain call", launch.get("over"), MOST_LAUNCH,
               is_upper=True, unit=" us"),
    ]  # fmt: skip


def _placement(rows: Sequence[Row]) -> Target:
    """The worst ratio of the default policy to the fastest placement."""
    found: dict[str, float] = {}
    for row in rows:
        ratios = (row.ratio(PLACED, other) for other in (LLVM, OPENCL))
        known = [ratio for ratio in ratios if ratio is not None]
        if known:
            found[row.twin.name] = max(known)
    worst = max(found, key=lambda name: found[name]) if found else None
    most, shown = (None, "") if worst is None else (found[worst], f" ({worst})")
    name = f"default policy over the fastest placement, worst program{shown}"
    return Target(name, most, MOST_PLACED, is_upper=True)
