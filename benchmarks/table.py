# SPDX-License-Identifier: Apache-2.0
"""Reports as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.report import Cell, Report

BUSY = 0.5
"""Load of the minute before a run from which on a table says that its times are blurred."""


def show(report: Report, console: Console) -> None:
    """Print medians, means, targets, and who is missing and why."""
    console.print(times(report))
    console.print(means(report))
    for target in report.targets():
        console.print(str(target), markup=False)
    if report.load_before > BUSY:
        console.print(
            f"note: the machine was busy before this run (load {report.load_before:.1f}):"
            " times are blurred"
        )
    for line in absences(report):
        console.print(line, markup=False)
    for fault in report.faults():
        console.print(f"FAULT {fault}", markup=False)


def show_compilers(report: Report, console: Console) -> None:
    """Print what `show` does, with ratios by program, compile times and memory before it."""
    for base in report.suite.baselines:
        console.print(ratios(report, base))
    console.print(compiling(report))
    console.print(memory(report))
    show(report, console)


def show_whole(report: Report, console: Console) -> None:
    """Print what `show` does for whole runs, with their ratios by program before it."""
    console.rule(f"whole runs at the sizes {report.scale.value!r}")
    for base in report.suite.baselines:
        console.print(ratios(report, base))
    show(report, console)


def times(report: Report) -> Table:
    """Median seconds, a row a program and a column a peer."""
    title = f"seconds, median of {report.rounds} interleaved rounds"
    return _by_program(report, title, lambda cell: _number(cell.median, 4))


def ratios(report: Report, baseline: str) -> Table:
    """How many times as long as the baseline, a row a program and a column a peer."""
    label = report.labels.get(baseline, baseline)
    table, names = _started(report, f"times as long as {label}")
    for program in report.cells:
        found = [report.ratio(program, name, baseline) for name in names]
        table.add_row(program, *(_number(ratio, 2) for ratio in found))
    return table


def compiling(report: Report) -> Table:
    """Milliseconds of compiling, where a peer can tell them apart."""

    def shown(cell: Cell) -> str:
        first, later = cell.first_compile, cell.later_compile
        if first is None:
            return "-"
        return f"{1e3 * first:.1f}" if later is None else f"{1e3 * first:.1f} / {1e3 * later:.1f}"

    return _by_program(report, "ms of compiling, first round / later rounds", shown)


def memory(report: Report) -> Table:
    """Peak memory of the peers' processes."""

    def shown(cell: Cell) -> str:
        return "-" if cell.peak is None else f"{cell.peak / (1 << 20):.1f}"

    return _by_program(report, "peak memory, MiB", shown)


def means(report: Report) -> Table:
    """Geometric means of the ratios, a row a peer; above 1 is slower than the baseline."""
    left_out = sorted(report.suite.not_in_means & set(report.cells))
    without = f", without {', '.join(left_out)}" if left_out else ""
    table = Table(title=f"times as long, geometric mean (programs{without})")
    table.add_column("peer")
    for base in report.suite.baselines:
        table.add_column(f"over {report.labels.get(base, base)}", justify="right")
    for name, label in report.labels.items():
        if name in report.missing:
            continue
        found = [report.mean(name, base) for base in report.suite.baselines]
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


def _started(report: Report, title: str) -> tuple[Table, list[str]]:
    """A table with a column for each peer that took part, and their names."""
    names = [name for name in report.labels if name not in report.missing]
    table = Table(title=title)
    table.add_column("program")
    for name in names:
        table.add_column(report.labels[name], justify="right")
    return table, names


def _by_program(report: Report, title: str, shown: Callable[[Cell], str]) -> Table:
    table, names = _started(report, title)
    for program, cells in report.cells.items():
        table.add_row(program, *(shown(cells[name]) for name in names))
    return table


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
