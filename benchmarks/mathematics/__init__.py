# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions against libraries in C: lanes, scalars, the interpreter, a device; their
sizes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.mathematics import device, pricing, size, speed
from benchmarks.mathematics.device import OWN
from benchmarks.mathematics.goal import goals, means
from benchmarks.mathematics.library import FOLDERS, LIBRARIES
from benchmarks.mathematics.speed import GLIBC, LANES, LOOP, SCALAR, THREADED
from benchmarks.peers.peer import MissingError
from benchmarks.report import Target
from ferryvm.isa.mathematics import FUNCTIONS

__all__ = ["FOLDERS", "FUNCTIONS", "PARTS", "Figures", "Settings", "measure"]

SPEED, PRICES, SIZES, DEVICE = "speed", "prices", "sizes", "device"
PARTS = (SPEED, PRICES, SIZES, DEVICE)

COUNT = 1 << 20
"""Results of a function in a measurement."""
QUICK_COUNT = 1 << 15
DEVICE_COUNT = 1 << 22
"""Work-items."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured."""

    rounds: int = 7
    functions: tuple[str, ...] = tuple(FUNCTIONS)
    parts: tuple[str, ...] = (SPEED, PRICES, SIZES)
    folders: tuple[Path, ...] = ()
    """Where libraries are looked for first."""
    device: str = ""
    """As FERRYVM_OPENCL_DEVICE takes it."""
    tables: tuple[str, ...] = (OWN,)
    """Ways in which a device looks up constants: values of FERRY_TABLES of `ferryvm.ir.c.opencl`,
    or the one that it chooses."""
    quick: bool = False
    """Small sizes; goals are not for them."""


@dataclasses.dataclass
class Figures:
    """All parts of a run."""

    settings: Settings
    rows: list[speed.Row] = dataclasses.field(default_factory=list)
    prices: dict[str, Any] = dataclasses.field(default_factory=dict)
    sizes: dict[str, size.Size] = dataclasses.field(default_factory=dict)
    compiling: dict[str, Any] = dataclasses.field(default_factory=dict)
    device_name: str = ""
    device_rows: list[device.DeviceRow] = dataclasses.field(default_factory=list)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Parts that did not take place, with the reason."""
    load_before: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])
    """Processes that wanted to run in the minute before."""

    def targets(self) -> list[Target]:
        """The goals, none for smaller sizes."""
        if self.settings.quick:
            return []
        ratios = {row.function.name: row.ratio for row in self.device_rows}
        return goals(self.rows, self.prices, self.compiling, ratios)

    def faults(self) -> list[str]:
        """What was wrong with contenders."""
        return [f"{row.function}: {n}: {f}" for row in self.rows for n, f in row.faults.items()]

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "rounds": self.settings.rounds,
            "load_before": self.load_before,
            "functions": {row.function.name: row.as_json() for row in self.rows},
            "means": means(self.rows),
            "prices": self.prices,
            "sizes": {name: one.as_json() for name, one in self.sizes.items()},
            "compiling": self.compiling,
            "device": self.device_name,
            "device_functions": {r.function.name: r.as_json() for r in self.device_rows},
            "missing": self.missing,
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print tables and goals."""
        if self.rows:
            console.print(_speeds(self.rows))
        if self.device_rows:
            columns = [f"of the driver's, {name} tables" for name in self.settings.tables]
            table = Table("function", *columns, title=f"kernel time, {self.device_name}")
            for each in self.device_rows:
                table.add_row(
                    each.function.name,
                    *(_number(each.ratios().get(name)) for name in self.settings.tables),
                )
            console.print(table)
        if self.sizes:
            console.print(_sizes(self.sizes))
        if self.compiling:
            console.print(f"a region with ten functions: {self.compiling['ms']:.1f} ms")
        if self.prices:
            shown = (
                f"{kind} {self.prices[kind]:.3f}" for kind in ("wall_ratio", "processor_ratio")
            )
            console.print(f"prices, llvm over gcc: {', '.join(shown)}")
        for fault in self.faults():
            console.print(f"FAULT {fault}", markup=False)
        for part, reason in self.missing.items():
            console.print(f"{part} is missing: {reason}")
        console.print(f"load average before: {self.load_before:.1f}")
        for target in self.targets():
            console.print(str(target), highlight=False)


def measure(settings: Settings, progress: Callable[[str], None]) -> Figures:
    """The figures of all parts."""
    figures, rounds = Figures(settings), settings.rounds
    functions = [FUNCTIONS[name] for name in settings.functions]

    def part(name: str, run: Callable[[], None]) -> None:
        if name not in settings.parts:
            return
        try:
            run()
        except MissingError as error:
            figures.missing[name] = str(error)
            progress(f"{name} is missing: {error}")

    def find_speeds() -> None:
        count = QUICK_COUNT if settings.quick else COUNT
        figures.rows = speed.measure(functions, settings.folders, rounds, count, progress)

    def find_prices() -> None:
        figures.prices = pricing.measure(rounds, QUICK_COUNT if settings.quick else pricing.COUNT)

    def find_sizes() -> None:
        figures.sizes = size.sizes(functions)
        figures.compiling = size.compile_milliseconds(rounds)

    def on_device() -> None:
        count = QUICK_COUNT if settings.quick else DEVICE_COUNT
        found = device.measure(functions, settings.device, rounds, count, settings.tables, progress)
        figures.device_name, figures.device_rows = found

    part(SPEED, find_speeds)
    part(PRICES, find_prices)
    part(SIZES, find_sizes)
    part(DEVICE, on_device)
    return figures


def _speeds(rows: Sequence[speed.Row]) -> Table:
    libraries = [(one.name, one.label) for one in LIBRARIES]
    shown = Table(
        "function", title="nanoseconds of an application; ratios to the best at 1 ulp, to glibc"
    )
    columns = (
        LANES,
        *(label for _, label in libraries),
        "ratio",
        SCALAR,
        GLIBC,
        "ratio",
        THREADED,
        "ratio",
    )
    for column in columns:
        shown.add_column(column, justify="right")
    for row in rows:
        names = [LANES, *(name for name, _ in libraries)]
        loop, whole = row.median(LOOP), row.median(THREADED)
        alone = None if loop is None or whole is None else whole - loop
        shown.add_row(
            row.function.name,
            *(_number(row.median(name)) for name in names),
            _number(row.lanes_ratio()),
            _number(row.median(SCALAR)),
            _number(row.median(GLIBC)),
            _number(row.scalar_ratio()),
            _number(alone),
            _number(row.threaded_ratio()),
        )
    return shown


def _sizes(sizes: dict[str, size.Size]) -> Table:
    shown = Table("function", title="operations of meanings, and bytes of machine code")
    for column in ("operations", "scalar", "in lanes"):
        shown.add_column(column, justify="right")
    for name, one in sizes.items():
        shown.add_row(name, f"{one.operations}", f"{one.scalar:,}", f"{one.lanes:,}")
    return shown


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
