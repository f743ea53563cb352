# SPDX-License-Identifier: Apache-2.0
"""The goals for mathematical functions, held to what a run found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.mathematics.speed import Row
from benchmarks.measure import geometric_mean
from benchmarks.report import Target
from ferryvm.isa.type import F32, F64, Type

MOST_LANES: dict[Type, float] = {F64: 1.5, F32: 2.0}
MOST_SCALAR, MOST_THREADED, MOST_DEVICE = 1.5, 3.0, 1.5
MOST_PRICES = 0.45
MOST_COMPILE_MILLISECONDS = 60.0

_KINDS: dict[str, Callable[[Row], float | None]] = {
    "lanes over the best library": Row.lanes_ratio,
    "scalar over glibc": Row.scalar_ratio,
    "threaded over glibc": Row.threaded_ratio,
}
LANES, SCALAR, THREADED = _KINDS


def mean(rows: Sequence[Row], kind: str, t: Type | None = None) -> float | None:
    """The geometric mean of a kind of ratio over the functions, of those of one type if it is
    given."""
    chosen = (row for row in rows if t is None or row.function.result is t)
    ratios = (_KINDS[kind](row) for row in chosen)
    return geometric_mean(ratio for ratio in ratios if ratio is not None and ratio > 0.0)


def means(rows: Sequence[Row]) -> dict[str, float | None]:
    """Geometric means of all kinds of ratios for each type."""
    return {f"{t} {kind}": mean(rows, kind, t) for kind in _KINDS for t in (F64, F32)}


def goals(
    rows: Sequence[Row],
    prices: Mapping[str, Any],
    compiling: Mapping[str, Any],
    device: Mapping[str, float],
) -> list[Target]:
    """The goals of the parts that took place; `device`: ratios by function."""
    found = []
    if rows:
        for t, most in MOST_LANES.items():
            name = f"{t} {LANES}, geometric mean"
            found.append(Target(name, mean(rows, LANES, t), most, is_upper=True))
        for kind, most in ((SCALAR, MOST_SCALAR), (THREADED, MOST_THREADED)):
            name = f"{kind}, geometric mean"
            found.append(Target(name, mean(rows, kind), most, is_upper=True))
    if prices:
        ratio = prices["wall_ratio"]
        found.append(Target("prices, llvm over gcc", ratio, MOST_PRICES, is_upper=True))
    if compiling:
        name, most = "a region with ten functions", MOST_COMPILE_MILLISECONDS
        found.append(Target(name, compiling["ms"], most, is_upper=True, unit=" ms"))
    if device:
        of_f64 = (ratio for name, ratio in device.items() if name.startswith("f64"))
        name = "f64 on the device over the driver's, geometric mean"
        found.append(Target(name, geometric_mean(of_f64), MOST_DEVICE, is_upper=True))
    return found
