# SPDX-License-Identifier: Apache-2.0
"""The output of the commands of the benchmarks: results go to stdout and to files, progress to
stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import click
from rich.console import Console
from rich.table import Table

from benchmarks import record
from benchmarks.benchmark import BenchmarkError
from benchmarks.report import Report

_WIDTH = 160
"""Columns where no terminal says how many there are."""


class Shown(Protocol):
    """Results that can be shown and written."""

    def show(self, console: Console) -> None: ...

    def as_json(self) -> Mapping[str, Any]: ...


def progress(line: str) -> None:
    """Print a line about what is done."""
    click.echo(line, err=True)


def console() -> Console:
    """The console that tables are shown on."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def present(kind: str, found: Shown, json_path: str | None) -> None:
    """Show results, and write them as a report of some kind."""
    if json_path != "-":
        found.show(console())
    if json_path:
        report = {"schema": record.SCHEMA, "kind": kind, **record.circumstances()}
        record.write(json_path, report | dict(found.as_json()))


def conclude(
    found: Iterable[Report], json_path: str | None, show: Callable[[Report, Console], None]
) -> None:
    """Show reports as they come and write them; raise BenchmarkError for their faults."""
    shown = console()
    reports = []
    for report in found:
        reports.append(report)
        if json_path != "-":
            show(report, shown)
    if json_path:
        whole_json = [report.as_json() for report in reports]
        record.write(json_path, whole_json[0] if len(reports) == 1 else {"reports": whole_json})
    refuse([fault for report in reports for fault in report.faults()])


def refuse(faults: Sequence[str]) -> None:
    """Raise BenchmarkError if there are faults."""
    if faults:
        raise BenchmarkError("; ".join(faults))


def finish(kind: str, metrics: Mapping[str, Any], json_path: str | None) -> None:
    """Show figures by name, and write them as a report of some kind."""
    if json_path != "-":
        shown = Table("figure", "value")
        for name, value in metrics.items():
            shown.add_row(name, f"{value:.4f}" if isinstance(value, float) else str(value))
        Console().print(shown)
    if json_path:
        report = {"schema": record.SCHEMA, "kind": kind, **record.circumstances(), **metrics}
        record.write(json_path, report)
