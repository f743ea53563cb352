# SPDX-License-Identifier: Apache-2.0
"""Kernels whose items cooperate in groups: `python -m benchmarks groups`.

    speed     launches by llvm and opencl, against OpenCL C by PoCL and by Intel's driver
    cycles    the cosine transform on simulated machines
    product   a product of large matrices by opencl on the device, against plain OpenCL C, in kernels alone
    compile   milliseconds of processor time in which llvm and vliw compile a kernel

Contenders run in one process, on the same arrays, in interleaved rounds; the results of all have to
have the same bits.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.groups import compiling, cycles
from benchmarks.groups import product as products
from benchmarks.groups.contender import LLVM, NAMES, POCL, Subject, contenders
from benchmarks.groups.goal import MULTI, SINGLE, goals, mean
from benchmarks.groups.sample import Sample
from benchmarks.groups.table import BY_NAME, SAMPLES
from benchmarks.parallel import speed
from benchmarks.report import Target

__all__ = ["BY_NAME", "LIMIT", "NAMES", "PARTS", "POCL", "Figures", "Settings", "measure"]

SPEED, CYCLES, PRODUCT, COMPILE = "speed", "cycles", "product", "compile"
PARTS = (SPEED, CYCLES, PRODUCT, COMPILE)

LIMIT = 60.0
"""Seconds of processor time that a run may take."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured."""

    rounds: int = 5
    samples: tuple[Sample, ...] = SAMPLES
    contenders: tuple[str, ...] = NAMES
    parts: tuple[str, ...] = PARTS
    device: str = POCL
    limit: float = LIMIT
    is_quick: bool = False
    """Measure sizes of tests; no goal is held to them."""
    is_processor: bool = False
    """Measure processor time of all threads together, for a machine with other work; no goal is
    held to it."""


@dataclasses.dataclass
class Figures:
    """All parts of a run."""

    settings: Settings
    rows: list[speed.Row] = dataclasses.field(default_factory=list)
    cycles: list[cycles.Cycles] = dataclasses.field(default_factory=list)
    compilations: list[compiling.Compilation] = dataclasses.field(default_factory=list)
    product: products.Product | None = None

    def targets(self) -> list[Target]:
        """The goals, none for small sizes."""
        is_held = not (self.settings.is_quick or self.settings.is_processor)
        if not is_held:
            return []
        return goals(self.rows, self.cycles, self.compilations, self.product)

    def faults(self) -> list[str]:
        """What was wrong with contenders."""
        return speed.faults(self.rows)

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "rounds": self.settings.rounds,
            "device": self.settings.device,
            "quick": self.settings.is_quick,
            "clock": "processor" if self.settings.is_processor else "wall",
            "kernels": {
                row.twin.name: {
                    "sizes": dict(row.twin.sizes),
                    "seconds": row.seconds,
                    "missing": row.missing,
                    "faults": row.faults,
                }
                for row in self.rows
            },
            "llvm_over": {name: mean(self.rows, LLVM, name)[0] for name in NAMES if name != LLVM},
            "product": None if self.product is None else self.product.as_json(),
            "cycles": {each.machine: each.as_json() for each in self.cycles},
            "compile": {
                backend: {
                    each.kernel: each.as_json()
                    for each in self.compilations
                    if each.backend == backend
                }
                for backend in compiling.BACKENDS
            },
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print tables and goals."""
        if self.rows:
            self._show_speed(console)
        for each in self.cycles:
            shown = (
                each.missing
                or f"{each.cycles:,} cycles (bound by the float units {cycles.BOUND:,})"
            )
            console.print(f"dct in groups of 8 x 8 on {each.machine}: {shown}", highlight=False)
        if self.product is not None:
            self.product.show(lambda line: console.print(line, highlight=False, markup=False))
        if self.compilations:
            table = Table("kernel", *compiling.BACKENDS, title="compiling, median milliseconds")
            for sample in self.settings.samples:
                mine = [each for each in self.compilations if each.kernel == sample.name]
                table.add_row(sample.name, *(_milliseconds(each.median) for each in mine))
            console.print(table)
            for row in self.compilations:
                if row.missing:
                    text = f"{row.kernel}: {row.backend} does not compile it: {row.missing}"
                    console.print(text, markup=False)
        for target in self.targets():
            console.print(str(target), highlight=False)

    def _show_speed(self, console: Console) -> None:
        names = self.settings.contenders
        table = Table("kernel", *names, title="medians, milliseconds (time of llvm over it)")
        for row in self.rows:
            table.add_row(row.twin.name, *(_cell(row, name) for name in names))
        means = {name: mean(self.rows, LLVM, name) for name in names if name != LLVM}
        shown = (_mean(*means.get(name, (None, 0))) for name in names)
        table.add_row("llvm over it, geometric mean", *shown)
        console.print(table)
        for row in self.rows:
            for name, reason in row.missing.items():
                console.print(f"{row.twin.name}: {name} is missing: {reason}", markup=False)
        for fault in self.faults():
            console.print(f"FAULT {fault}", markup=False)


def measure(settings: Settings, progress: Callable[[str], None]) -> Figures:
    """The figures of the parts."""
    found = Figures(settings)
    if SPEED in settings.parts:
        found.rows = _speed(settings, progress)
    if CYCLES in settings.parts:
        found.cycles = [cycles.measure(machine) for machine in (MULTI, SINGLE)]
    if PRODUCT in settings.parts:
        rows = 128 if settings.is_quick else 0
        found.product = products.measure(settings.device, settings.rounds, progress, rows)
    if COMPILE in settings.parts:
        found.compilations = compiling.measure(settings.samples, settings.rounds, progress)
    return found


def _speed(settings: Settings, progress: Callable[[str], None]) -> list[speed.Row]:
    every = contenders(settings.device, settings.limit)
    known = {name: every[name] for name in settings.contenders}
    subjects = [
        Subject(sample, sample.tiny if settings.is_quick else sample.full)
        for sample in settings.samples
    ]
    clock = time.process_time if settings.is_processor else time.perf_counter
    return speed.measure(subjects, known, settings.rounds, "", progress, clock)


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _mean(value: float | None, count: int) -> str:
    return "-" if value is None else f"({value:.2f}) of {count}"


def _cell(row: speed.Row, name: str) -> str:
    seconds, ratio = row.median(name), row.ratio(LLVM, name)
    if seconds is None:
        return "-"
    over = "" if ratio is None or name == LLVM else f" ({ratio:.2f})"
    return f"{1e3 * seconds:.2f}{over}"
