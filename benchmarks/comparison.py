# SPDX-License-Identifier: Apache-2.0
"""The main run of a suite: every program on every peer, interleaved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.measure import interleave
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task
from benchmarks.report import Cell, Report, Suite, identity

Progress = Callable[[str], None]


def compare(
    suite: Suite,
    benchmarks: Sequence[Benchmark],
    peers: Mapping[str, Peer],
    rounds: int,
    scale: Scale | None = None,
    progress: Progress = lambda _line: None,
) -> Report:
    """The report of running every benchmark on every peer, `rounds` times in turn.

    `scale`: other sizes than the suite's. A peer that fails on a program is a fault of the report;
    the others go on.
    """
    scale = scale or suite.scale
    report = Report(suite, rounds, scale, {name: peer.label for name, peer in peers.items()})
    present = {}
    for name, peer in peers.items():
        try:
            report.versions[name] = peer.version()
            present[name] = peer
        except MissingError as error:
            report.missing[name] = str(error)
            progress(f"{name} takes no part: {error}")
    for benchmark in benchmarks:
        report.cells[benchmark.name] = _row(benchmark, present, rounds, scale, progress)
    return report


def _row(
    benchmark: Benchmark,
    peers: Mapping[str, Peer],
    rounds: int,
    scale: Scale,
    progress: Progress,
) -> dict[str, Cell]:
    """The cells of one program."""
    cells = {name: Cell() for name in peers}
    tasks: dict[str, Callable[[], Measurement | None]] = {}
    for name, peer in peers.items():
        try:
            tasks[name] = _guarded(cells[name], peer.prepare(benchmark, scale))
        except MissingError as error:
            cells[name].missing = str(error)
        except BenchmarkError as error:
            cells[name].failure = str(error)
    limits = {
        name: peer.rounds_at_most for name, peer in peers.items() if peer.rounds_at_most is not None
    }
    for name, measurement in interleave(tasks, rounds, limits):
        cell = cells[name]
        if measurement is None:
            progress(f"{benchmark.name} {name}: failed: {cell.failure}")
            continue
        progress(
            f"{benchmark.name} {name}: {measurement.seconds:.4f} s"
            f" ({len(cell.seconds)} of {min(rounds, limits.get(name, rounds))})"
        )
    return cells


def _guarded(cell: Cell, task: Task) -> Callable[[], Measurement | None]:
    """The task, noting its measurement or its failure in the cell; None after a failure."""

    def run() -> Measurement | None:
        if cell.failure is not None:
            return None
        try:
            measurement = task()
        except BenchmarkError as error:
            cell.failure = str(error)
            return None
        if cell.seconds and identity(cell.result) != identity(measurement.result):
            cell.failure = f"it gave {cell.result!r}, then {measurement.result!r}"
            return None
        cell.seconds.append(measurement.seconds)
        if measurement.compile_seconds is not None:
            cell.compile_seconds.append(measurement.compile_seconds)
        if measurement.peak is not None:
            cell.peaks.append(measurement.peak)
        cell.result = measurement.result
        return measurement

    return run
