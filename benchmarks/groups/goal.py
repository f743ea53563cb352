# SPDX-License-Identifier: Apache-2.0
"""The goals for kernels of groups, held to what a run found."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.groups.compiling import Compilation
from benchmarks.groups.contender import INTEL_C, INTEL_OPENCL, LLVM, OPENCL, OPENCL_C
from benchmarks.groups.cycles import Cycles
from benchmarks.groups.product import LARGE, Product
from benchmarks.measure import geometric_mean, median
from benchmarks.parallel.speed import Row
from benchmarks.report import Target

WRITTEN = ("matmul", "scan-tiles", "reduction", "transpose", "dct")
"""The kernels for which code is held to OpenCL C that is written by hand."""

MOST_OF_POCL, MOST_OF_INTEL, MOST_OF_WRITTEN = 0.8, 1.0, 1.05
MOST_CYCLES, LEAST_GAIN, LEAST_OF_PRODUCT = 20_000, 10.0, 0.6
MOST_COMPILING = {"llvm": 120.0, "vliw": 2000.0}
"""Milliseconds."""
MULTI, SINGLE = "multi16", "single"


def mean(rows: Sequence[Row], mine: str, other: str) -> tuple[float | None, int]:
    """The geometric mean of a contender's ratios to another one, and the number of kernels that
    both ran."""
    ratios = [row.ratio(mine, other) for row in rows]
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known), len(known)


def goals(
    rows: Sequence[Row],
    cycles: Sequence[Cycles],
    compilations: Sequence[Compilation],
    product: Product | None = None,
) -> list[Target]:
    """All goals. The name of a mean says over how many kernels it is."""
    found = []
    for mine, other, most in (
        (LLVM, OPENCL, MOST_OF_POCL),
        (LLVM, INTEL_OPENCL, MOST_OF_INTEL),
        (LLVM, INTEL_C, MOST_OF_INTEL),
        (LLVM, OPENCL_C, MOST_OF_POCL),
    ):
        ratio, count = mean(rows, mine, other)
        name = f"{mine} over {other}, geometric mean of {count}"
        found.append(Target(name, ratio, most, is_upper=True))
    written = [row for row in rows if row.twin.name in WRITTEN]
    ratio, count = mean(written, OPENCL, OPENCL_C)
    name = f"{OPENCL} over {OPENCL_C}, geometric mean of {count}"
    found.append(Target(name, ratio, MOST_OF_WRITTEN, is_upper=True))
    known = {each.machine: each.cycles for each in cycles if each.cycles is not None}
    on_multi, on_single = known.get(MULTI), known.get(SINGLE)
    gain = on_single / on_multi if on_single and on_multi else None
    name = f"dct in groups on {MULTI}"
    found.append(Target(name, on_multi, MOST_CYCLES, is_upper=True, unit=" cycles"))
    found.append(Target(f"dct in groups, {SINGLE} over {MULTI}", gain, LEAST_GAIN))
    if product is not None and product.n == LARGE:
        name = f"{OPENCL} as a part of {OPENCL_C}, product of {LARGE} x {LARGE} f32"
        found.append(Target(name, product.part, LEAST_OF_PRODUCT))
    for backend, most in MOST_COMPILING.items():
        times = [each.median for each in compilations if each.backend == backend]
        some = [each for each in times if each is not None]
        name = f"{backend} compiles a kernel, median of {len(some)}"
        middle = median(some) if some else None
        found.append(Target(name, middle, most, is_upper=True, unit=" ms"))
    return found
