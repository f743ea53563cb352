# SPDX-License-Identifier: Apache-2.0
"""Launches: data-parallel programs on all cores, against C with OpenMP."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.parallel import launching, speed, suspension
from benchmarks.parallel.contender import (
    GCC,
    LLVM,
    OPENCL,
    OPENCL_C,
    OPENCL_COPIES,
    contenders,
    versions,
)
from benchmarks.parallel.goal import goals, mean
from benchmarks.parallel.program import BY_NAME, TWINS, Twin
from benchmarks.peers.peer import MissingError
from benchmarks.report import Target

__all__ = ["BY_NAME", "SIZES", "Figures", "Settings", "contenders", "measure"]

SIZES = ("full", "small", "tiny")
"""Names of sizes; goals are held to the full ones."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured."""

    rounds: int = 5
    size: str = "full"
    twins: tuple[Twin, ...] = TWINS
    contenders: tuple[str, ...] = tuple(contenders())
    is_processor: bool = False
    """Measure processor time of all threads together, for a machine with other work; no goal is
    held to it."""


@dataclasses.dataclass
class Figures:
    """All parts of a run."""

    settings: Settings
    rows: list[speed.Row]
    launch: dict[str, Any]
    missing: dict[str, str]
    """Parts that did not take place, with the reason."""
    suspensions: suspension.Suspensions = dataclasses.field(default_factory=suspension.Suspensions)

    def targets(self) -> list[Target]:
        """The goals, none for smaller sizes."""
        is_held = self.settings.size == "full" and not self.settings.is_processor
        return goals(self.rows, self.launch) if is_held else []

    def faults(self) -> list[str]:
        """What was wrong with contenders."""
        return speed.faults(self.rows)

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "rounds": self.settings.rounds,
            "size": self.settings.size,
            "clock": "processor" if self.settings.is_processor else "wall",
            "peers": versions(),
            "programs": {
                row.twin.name: {"size": row.twin.size(self.settings.size), **row.as_json()}
                for row in self.rows
            },
            "means": {name: mean(self.rows, name) for name in self.settings.contenders},
            "opencl_over_opencl_c": {
                row.twin.name: row.ratio(OPENCL, OPENCL_C) for row in self.rows
            },
            "launch": self.launch,
            "suspensions": self.suspensions.as_json(),
            "missing": self.missing,
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print tables and goals."""
        names = self.settings.contenders
        by_hand = [OPENCL_C] if {OPENCL, OPENCL_C} <= {*names} else []
        heads = [*names, *(f"{OPENCL} over {base}" for base in by_hand)]
        table = Table("program", *heads, title="medians, milliseconds (x gcc on as many cores)")
        for row in self.rows:
            ratios = [_ratio(row.ratio(OPENCL, base)) for base in by_hand]
            table.add_row(row.twin.name, *(_cell(row, name) for name in names), *ratios)
        means = [mean(self.rows, name) for name in names]
        cells = ["-" if one is None else f"({one:.2f})" for one in means]
        cells += [_ratio(mean(self.rows, OPENCL, base)) for base in by_hand]
        table.add_row("geometric mean of the eight", *cells)
        console.print(table)
        for other in (OPENCL_C, OPENCL_COPIES):
            over = mean(self.rows, OPENCL, other)
            if over is not None:
                console.print(f"{OPENCL} over {other}, geometric mean: {over:.2f}")
        for row in self.rows:
            for name, reason in row.missing.items():
                console.print(f"{row.twin.name}: {name} is missing: {reason}")
        for fault in self.faults():
            console.print(f"FAULT {fault}", markup=False)
        if self.launch:
            shown = ", ".join(f"{key} {value:,.4g}" for key, value in self.launch.items())
            console.print(f"launch, microseconds: {shown}")
        self.suspensions.show(console)
        for part, reason in self.missing.items():
            console.print(f"{part} is missing: {reason}")
        for target in self.targets():
            console.print(str(target), highlight=False)


def measure(settings: Settings, progress: Callable[[str], None]) -> Figures:
    """The figures of all parts."""
    rounds, size = settings.rounds, settings.size
    known = {name: contenders()[name] for name in settings.contenders}
    if settings.is_processor:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when OpenMP is loaded
    clock = time.process_time if settings.is_processor else time.perf_counter
    rows = speed.measure(settings.twins, known, rounds, size, progress, clock)
    missing: dict[str, str] = {}
    launch: dict[str, Any] = {}
    try:
        launch = launching.measure(rounds)
    except MissingError as error:
        missing["launch"] = str(error)
    backends = [name for name in (LLVM, OPENCL) if name in known and size == "full"]
    suspensions = suspension.measure(backends, rounds, progress)
    return Figures(settings, rows, launch, missing, suspensions)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _cell(row: speed.Row, name: str) -> str:
    seconds, ratio = row.median(name), row.ratio(name)
    if seconds is None:
        return "-"
    over = "" if ratio is None or name.startswith(GCC) else f" ({ratio:.2f})"
    return f"{1e3 * seconds:.1f}{over}"
