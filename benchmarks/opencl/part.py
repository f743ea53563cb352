# SPDX-License-Identifier: Apache-2.0
"""What one part of the benchmark found, to be shown and to be written."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import table
from benchmarks.measure import median
from benchmarks.opencl.watched import Built, Spent
from benchmarks.report import Report, Target


class Part(abc.ABC):
    """A part with its goals."""

    name: str
    """As given to --parts."""

    @abc.abstractmethod
    def show(self, console: Console) -> None:
        """Print all of it."""

    @abc.abstractmethod
    def as_json(self) -> dict[str, Any]:
        """All of it, each round."""

    @abc.abstractmethod
    def faults(self) -> list[str]:
        """What went wrong, a line each."""


@dataclasses.dataclass
class Details:
    """What one peer of a comparison spent its time on, by program."""

    label: str
    built: dict[str, Built] = dataclasses.field(default_factory=dict)
    """What was built before the first measured run ended."""
    spent: dict[str, list[Spent]] = dataclasses.field(default_factory=dict)
    """Each round."""
    refusals: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """Regions that were left to the interpreter, with the reason."""

    def as_json(self) -> dict[str, Any]:
        """The details as JSON."""
        return {
            "built": {name: dataclasses.asdict(one) for name, one in self.built.items()},
            "spent": {
                name: [dataclasses.asdict(one) for one in rounds]
                for name, rounds in self.spent.items()
            },
            "refusals": self.refusals,
        }

    def refused(self) -> list[str]:
        """What was left to the interpreter, a line each."""
        return [
            f"note: {program}: {self.label}: {line}"
            for program, lines in self.refusals.items()
            for line in dict.fromkeys(lines)
        ]


class Compared(Part):
    """A comparison of peers on programs."""

    def __init__(self, name: str, title: str, report: Report, details: Sequence[Details]) -> None:
        self.name, self.title, self.report, self.details = name, title, report, details

    def show(self, console: Console) -> None:
        console.rule(self.title)
        for details in self.details:
            console.print(apart(details))
        cells = [cell for row in self.report.cells.values() for cell in row.values()]
        if any(cell.compile_seconds for cell in cells):
            console.print(table.compiling(self.report))
        for base in self.report.suite.baselines:
            console.print(table.ratios(self.report, base))
        table.show(self.report, console)
        for details in self.details:
            for line in details.refused():
                console.print(line, markup=False)

    def as_json(self) -> dict[str, Any]:
        return self.report.as_json() | {"details": {d.label: d.as_json() for d in self.details}}

    def faults(self) -> list[str]:
        return [f"{self.name}: {fault}" for fault in self.report.faults()]


class Metrics(Part):
    """Metrics by name."""

    def __init__(
        self,
        name: str,
        title: str,
        metrics: Mapping[str, float | int | str],
        rounds: Mapping[str, Sequence[float]],
        targets: Sequence[Target],
    ) -> None:
        """`rounds`: what the metrics are the medians of."""
        self.name, self.title, self.metrics, self.rounds = name, title, metrics, rounds
        self.targets = targets

    def show(self, console: Console) -> None:
        console.rule(self.title)
        shown = Table("figure", "value")
        for name, value in self.metrics.items():
            shown.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value))
        console.print(shown)
        for target in self.targets:
            console.print(str(target), markup=False)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.metrics,
            "rounds": {name: list(values) for name, values in self.rounds.items()},
            "targets": [target.as_json() for target in self.targets],
        }

    def faults(self) -> list[str]:
        return []


class Failed(Part):
    """A part that could not be measured."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    def show(self, console: Console) -> None:
        console.rule(self.name)
        console.print(f"FAULT {self.reason}", markup=False)

    def as_json(self) -> dict[str, Any]:
        return {"failure": self.reason}

    def faults(self) -> list[str]:
        return [f"{self.name}: {self.reason}"]


def apart(details: Details) -> Table:
    """Where the time of a peer went, a row a program: building once, then medians of the runs."""
    steps = list(dict.fromkeys(step for built in details.built.values() for step in built.steps))
    shown = Table(title=f"{details.label}: building, and medians of the runs, in milliseconds")
    shown.add_column("program")
    runs = ("kernel", "transfers", "the rest", "entries", "KiB to device", "KiB to host")
    for column in ("regions", "building", *(f"of that {step}" for step in steps), *runs):
        shown.add_column(column, justify="right")
    for program, built in details.built.items():
        regions = f"{built.regions} ({built.cached} cached)" if built.cached else str(built.regions)
        once = [_ms(built.seconds), *(_ms(built.steps.get(step, 0.0)) for step in steps)]
        shown.add_row(program, regions, *once, *_medians(details.spent.get(program, [])))
    return shown


def _medians(rounds: Sequence[Spent]) -> list[str]:
    if not rounds:
        return ["-"] * 6
    return [
        _ms(median([one.kernel for one in rounds])),
        _ms(median([one.transfer for one in rounds])),
        _ms(median([one.rest for one in rounds])),
        f"{median([one.entries for one in rounds]):g}",
        f"{median([one.to_device for one in rounds]) / 1024:.0f}",
        f"{median([one.to_host for one in rounds]) / 1024:.0f}",
    ]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"
