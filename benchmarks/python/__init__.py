# SPDX-License-Identifier: Apache-2.0
"""Python functions: scalar programs, and maps, against Numba, PyPy, CPython and C."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import table
from benchmarks.benchmark import BENCHMARKS, Scale
from benchmarks.comparison import compare
from benchmarks.measure import geometric_mean
from benchmarks.parallel.contender import GCC, OPENCL_C
from benchmarks.parallel.speed import Row, faults
from benchmarks.python import calling, mapping, scalar
from benchmarks.python.item import OF
from benchmarks.python.mapping import JAX, MAP, NUMEXPR, ON_DEVICE, PRANGE
from benchmarks.report import Report, Target

PROGRAMS = {each.name: each for each in BENCHMARKS}
"""The scalar programs, by name."""

PARTS = ("scalar", "map", "calls", "device")

MOST_OF_GCC, LEAST_OF_CPYTHON, MOST_OF_PRANGE = 0.45, 200.0, 1.0
MOST_OF_KERNELS = 1.10


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured."""

    rounds: int = 5
    numba: str | None = None
    """A Python that has it."""
    parts: Sequence[str] = PARTS
    quick: bool = False
    is_processor: bool = False
    """Measure programs and maps by the processor's time, for a machine with other work."""
    programs: Sequence[str] = tuple(PROGRAMS)
    """The scalar programs."""


@dataclasses.dataclass
class Figures:
    """All parts of a run."""

    settings: Settings
    report: Report | None = None
    rows: list[Row] = dataclasses.field(default_factory=list)
    on_device: list[Row] = dataclasses.field(default_factory=list)
    cpython: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Seconds of CPython's `map` by program."""
    calls: calling.Calls | None = None
    load_before: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])

    def speedups(self) -> dict[str, float]:
        """How many times as long as a map CPython takes, by program."""
        medians = {row.twin.name: row.median(MAP) for row in self.rows}
        return {
            name: self.cpython[name] / mine
            for name, mine in medians.items()
            if mine is not None and name in self.cpython
        }

    def targets(self) -> list[Target]:
        """The goals; none for small sizes, and for a part of the scalar programs."""
        is_whole = scalar.SUITE.not_in_means.issuperset({*PROGRAMS} - {*self.settings.programs})
        found = self.report.targets() if self.report and is_whole else []
        if self.calls:
            found = [*found, *self.calls.targets()]
        if self.on_device and not self.settings.quick:
            found = [
                *found,
                Target("map on a device over kernels by hand, geometric mean",
                       _mean(self.on_device, ON_DEVICE, OPENCL_C), MOST_OF_KERNELS, True),
            ]  # fmt: skip
        if self.settings.quick or not self.rows:
            return found
        behind = [ratio for row in self.rows if (ratio := row.ratio(MAP, PRANGE)) is not None]
        return [
            *found,
            Target("map over gcc, geometric mean", _mean(self.rows, MAP), MOST_OF_GCC, True),
            Target("CPython over map, geometric mean", geometric_mean(self.speedups().values()),
                   LEAST_OF_CPYTHON),
            Target("map over Numba prange, worst", max(behind, default=None), MOST_OF_PRANGE, True),
        ]  # fmt: skip

    def faults(self) -> list[str]:
        """What was wrong."""
        found = self.report.faults() if self.report else []
        return found + faults([*self.rows, *self.on_device])

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "rounds": self.settings.rounds,
            "load_before": self.load_before,
            "clock": "processor" if self.settings.is_processor else "wall",
            "scalar": self.report.as_json() if self.report else None,
            "map": {row.twin.name: row.as_json() for row in self.rows},
            "device": {row.twin.name: row.as_json() for row in self.on_device},
            "calls": self.calls.found if self.calls else None,
            "cpython_seconds": dict(self.cpython),
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print tables and goals."""
        if self.report:
            for base in self.report.suite.baselines:
                console.print(table.ratios(self.report, base))
            console.print(table.times(self.report))
            console.print(table.means(self.report))
            for line in table.absences(self.report):
                console.print(line, markup=False)
        if self.rows:
            self._show_rows(console)
        if self.on_device:
            self._show_device(console)
        if self.calls:
            console.print(f"calls and first results: {self.calls.found}")
        for fault in self.faults():
            console.print(f"FAULT {fault}", markup=False)
        console.print(f"load before the run: {self.load_before:.1f}")
        for target in self.targets():
            console.print(str(target), highlight=False)

    def _show_rows(self, console: Console) -> None:
        names = (GCC, MAP, PRANGE, JAX, NUMEXPR)
        shown = Table(
            "program", *(f"{name}, ms" for name in names), "map over gcc", "prange over gcc",
            "map over prange", "CPython over map", title="maps on all cores",
        )  # fmt: skip
        speedups = self.speedups()
        for row in self.rows:
            medians = [row.median(name) for name in names]
            ratios = [row.ratio(MAP), row.ratio(PRANGE), row.ratio(MAP, PRANGE)]
            shown.add_row(
                row.twin.name,
                *("-" if one is None else f"{1e3 * one:.1f}" for one in medians),
                *("-" if one is None else f"{one:.2f}" for one in ratios),
                f"{speedups[row.twin.name]:.0f}" if row.twin.name in speedups else "-",
            )
        console.print(shown)
        _show_missing(console, self.rows)

    def _show_device(self, console: Console) -> None:
        names = (OPENCL_C, ON_DEVICE, MAP)
        shown = Table(
            "program", *(f"{name}, ms" for name in names), "map on opencl over OpenCL C",
            "default policy over OpenCL C", title="maps of arrays of the host on an OpenCL device",
        )  # fmt: skip
        for row in self.on_device:
            medians = [row.median(name) for name in names]
            ratios = [row.ratio(name, OPENCL_C) for name in (ON_DEVICE, MAP)]
            shown.add_row(
                row.twin.name,
                *("-" if one is None else f"{1e3 * one:.1f}" for one in medians),
                *("-" if one is None else f"{one:.2f}" for one in ratios),
            )
        console.print(shown)
        _show_missing(console, self.on_device)


def _mean(rows: Sequence[Row], contender: str, baseline: str = "") -> float | None:
    ratios = [row.ratio(contender, baseline) for row in rows]
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if len(known) == len(ratios) else None


def _show_missing(console: Console, rows: Sequence[Row]) -> None:
    for row in rows:
        for name, reason in row.missing.items():
            console.print(f"{row.twin.name}: {name} is missing: {reason}")


def measure(settings: Settings, progress: Callable[[str], None]) -> Figures:
    """The figures of some parts."""
    found = Figures(settings)
    size = "small" if settings.quick else "full"
    if "scalar" in settings.parts:
        scale = Scale.QUICK if settings.quick else None
        with tempfile.TemporaryDirectory(prefix="ferry-bench-") as cache:
            peers = scalar.peers(cache, settings.numba, settings.is_processor)
            programs = [PROGRAMS[name] for name in settings.programs]
            found.report = compare(scalar.SUITE, programs, peers, settings.rounds, scale, progress)
    if "calls" in settings.parts:
        found.calls = calling.measure(settings.rounds, settings.numba, progress)
    if "device" in settings.parts:
        found.on_device = mapping.measure_on_device([*OF], settings.rounds, size, progress)
    if "map" in settings.parts:
        peers, is_processor = settings.numba, settings.is_processor
        found.rows = mapping.measure([*OF], settings.rounds, size, peers, progress, is_processor)
        clock = time.process_time if is_processor else time.perf_counter
        found.cpython = {
            row.twin.name: mapping.cpython_seconds(row.twin.name, size, 3, clock)
            for row in found.rows
        }
    return found
