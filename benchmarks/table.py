# SPDX-License-Identifier: Apache-2.0
"""Reports as tables for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.report import BASELINES, Report

BUSY = 0.5
"""Load of the minute before a run from which on a table says that its times are blurred."""


def show(report: Report, console: Console) -> None:
    """Print medians, means, targets, and who is missing and why."""
    console.print(times(report))
    console.print(means(report))
    for target in report.targets():
        verdict = {True: "met", False: "NOT met", None: "not known"}[target.is_met]
        found = "-" if target.found is None else f"{target.found:.2f}x"
        console.print(
            f"target: {target.name}: at least {target.at_least}x, found {found}: {verdict}"
        )
    if report.load_before > BUSY:
        console.print(
            f"note: the machine was busy before this run (load {report.load_before:.1f}):"
            " times are blurred"
        )
    for line in absences(report):
        console.print(line, markup=False)
    for fault in report.faults():
        console.print(f"FAULT {fault}", markup=False)


def times(report: Report) -> Table:
    """Median seconds, a row a program and a column a peer."""
    table = Table(title=f"seconds, median of {report.rounds} interleaved rounds")
    table.add_column("program")
    names = [name for name in report.labels if name not in report.missing]
    for name in names:
        table.add_column(report.labels[name], justify="right")
    for program in report.cells:
        seconds = [report.seconds(program, name) for name in names]
        table.add_row(program, *("-" if s is None else f"{s:.4f}" for s in seconds))
    return table


def means(report: Report) -> Table:
    """Geometric means of the ratios, a row a peer; above 1 is slower than the baseline."""
    table = Table(title="times as long, geometric mean (programs)")
    table.add_column("peer")
    for base in BASELINES:
        table.add_column(f"over {report.labels.get(base, base)}", justify="right")
    for name, label in report.labels.items():
        if name in report.missing:
            continue
        found = [report.mean(name, base) for base in BASELINES]
        row = ["-" if mean is None else f"{mean:.2f} ({count})" for mean, count in found]
        table.add_row(label, *row)
    return table


def absences(report: Report) -> list[str]:
    """Who takes no part and why, a line each; programs with the same reason share one."""
    lines = [
        f"missing: {report.labels.get(name, name)}: {reason}"
        for name, reason in report.missing.items()
    ]
    skipped: dict[tuple[str, str], list[str]] = {}
    for program, cells in report.cells.items():
        for name, cell in cells.items():
            if cell.missing is not None:
                skipped.setdefault((name, cell.missing), []).append(program)
    for (name, reason), programs in skipped.items():
        lines.append(f"missing: {report.labels[name]} on {', '.join(programs)}: {reason}")
    return lines
