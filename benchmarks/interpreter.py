# SPDX-License-Identifier: Apache-2.0
"""The main run: every program on every peer, interleaved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks.benchmark import Benchmark, BenchmarkError
from benchmarks.measure import interleave
from benchmarks.peers.peer import MissingError, Peer, Task
from benchmarks.report import Cell, Report

Progress = Callable[[str], None]


def compare(
    benchmarks: Sequence[Benchmark],
    peers: Mapping[str, Peer],
    rounds: int,
    is_full: bool = True,
    progress: Progress = lambda _line: None,
    unknown: Mapping[str, str] | None = None,
) -> Report:
    """The report of running every benchmark on every peer, `rounds` times in turn.

    `unknown`: further peers that are known to be missing, with the reason.
    """
    report = Report(rounds, is_full, {name: peer.label for name, peer in peers.items()})
    present = {}
    for name, peer in peers.items():
        try:
            report.versions[name] = peer.version()
            present[name] = peer
        except MissingError as error:
            report.missing[name] = str(error)
            progress(f"{name} takes no part: {error}")
    for name, reason in (unknown or {}).items():
        report.labels[name] = name
        report.missing[name] = reason
    for benchmark in benchmarks:
        report.cells[benchmark.name] = _one(benchmark, present, rounds, is_full, progress)
    return report


def _one(
    benchmark: Benchmark,
    peers: Mapping[str, Peer],
    rounds: int,
    is_full: bool,
    progress: Progress,
) -> dict[str, Cell]:
    """The cells of one program's row."""
    sizes = benchmark.full if is_full else benchmark.quick
    cells: dict[str, Cell] = {}
    tasks: dict[str, Task] = {}
    for name, peer in peers.items():
        cells[name] = Cell()
        try:
            tasks[name] = peer.prepare(benchmark, sizes, is_full)
        except MissingError as error:
            cells[name].missing = str(error)
    limits = {
        name: peer.rounds_at_most for name, peer in peers.items() if peer.rounds_at_most is not None
    }
    for name, measurement in interleave(tasks, rounds, limits):
        cell = cells[name]
        if cell.seconds and cell.result != measurement.result:
            raise BenchmarkError(
                f"{benchmark.name}: {name} gave {cell.result!r}, then {measurement.result!r}"
            )
        cell.seconds.append(measurement.seconds)
        cell.result = measurement.result
        progress(
            f"{benchmark.name} {name}: {measurement.seconds:.4f} s"
            f" ({len(cell.seconds)} of {min(rounds, limits.get(name, rounds))})"
        )
    return cells
