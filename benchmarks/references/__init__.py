# SPDX-License-Identifier: Apache-2.0
"""Programs with arrays and structs: their speed, their memory, and the collector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.peers.peer import MissingError
from benchmarks.references import collecting, memory, passing, speed
from benchmarks.references.contender import SKIFF, SMALL, versions
from benchmarks.references.goal import goals
from benchmarks.references.program import TWINS
from benchmarks.report import Target

__all__ = ["COLUMNS", "Figures", "Settings", "measure"]

COLUMNS = (
    "gcc", "llvm", "llvm" + SKIFF, "gcc" + SMALL, "threaded", "threaded" + SKIFF, "switch", "lua",
    "cpython",
)  # fmt: skip
"""Contenders in the order of the table."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are what the goals hold for."""

    rounds: int = 9
    seconds: float = 60.0
    """Of the loop that makes arrays."""
    is_tiny: bool = False
    """True for a test: the figures say nothing then, and no goal is held to them."""


@dataclasses.dataclass
class Figures:
    """All parts of a run."""

    settings: Settings
    rows: list[speed.Row]
    trees: dict[str, Any]
    arrays: dict[str, Any]
    collections: dict[str, Any]
    passing: dict[str, Any]
    missing: dict[str, str]
    """Parts that did not take place, with the reason."""

    def targets(self) -> list[Target]:
        """The goals, none for tiny sizes."""
        if self.settings.is_tiny:
            return []
        return goals(self.rows, self.trees, self.arrays, self.collections, self.passing)

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "settings": dataclasses.asdict(self.settings),
            "peers": versions(),
            "programs": {row.twin.name: row.as_json() for row in self.rows},
            "trees": self.trees,
            "arrays": self.arrays,
            "collections": self.collections,
            "passing": self.passing,
            "missing": self.missing,
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print tables and goals."""
        table = Table("program", *COLUMNS, title="medians, milliseconds of processor time (x gcc)")
        for row in self.rows:
            table.add_row(row.twin.name, *(_cell(row, name) for name in COLUMNS))
        console.print(table)
        for row in self.rows:
            for name, reason in row.missing.items():
                console.print(f"{row.twin.name}: {name} is missing: {reason}")
        for part, found in (("trees", self.trees), ("arrays", self.arrays),
                            ("collections", self.collections), ("passing", self.passing)):  # fmt: skip
            shown = (f"{key} {value:,.4g}" if isinstance(value, float) else f"{key} {value:,}"
                     for key, value in found.items() if not isinstance(value, list))  # fmt: skip
            if found:
                console.print(f"{part}: {', '.join(shown)}")
        for part, reason in self.missing.items():
            console.print(f"{part} is missing: {reason}")
        for target in self.targets():
            console.print(str(target), highlight=False)


def measure(settings: Settings, progress: Callable[[str], None]) -> Figures:
    """The figures of all parts. Raises BenchmarkError for results that differ."""
    depths = (4, 6) if settings.is_tiny else (16, collecting.DEPTH)
    missing: dict[str, str] = {}

    def part(name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            found = work()
        except MissingError as error:
            missing[name] = str(error)
            found = {}
        progress(f"{name}: {found or missing[name]}")
        return found

    return Figures(
        settings,
        speed.measure(TWINS, settings.rounds, settings.is_tiny, progress),
        part("trees", lambda: memory.measure("trees", depths[0])),
        part("arrays", lambda: memory.measure("arrays", settings.seconds)),
        part("collections", lambda: collecting.measure(settings.rounds, depths[1])),
        part(
            "passing",
            lambda: passing.measure(*((64, 3) if settings.is_tiny else (passing.BYTES, 20_000))),
        ),
        missing,
    )


def _cell(row: speed.Row, name: str) -> str:
    seconds, ratio = row.median(name), row.over_gcc(name)
    if seconds is None:
        return "-"
    over = "" if ratio is None or name.startswith("gcc") else f" ({ratio:.2f})"
    return f"{1e3 * seconds:.1f}{over}"
