# SPDX-License-Identifier: Apache-2.0
"""Whole runs of ferryvm, from the engine's start to the result: the default policy against native
code alone and an interpreter alone, at several sizes.

Each run is a process of its own with a cache that has the backends' own parts and, unless it is
asked to keep what runs compile, nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.benchmark import Benchmark, Scale
from benchmarks.build import written
from benchmarks.comparison import compare
from benchmarks.peers.ferry import CACHE, MIXED, FerryPeer, drive
from benchmarks.peers.peer import Measurement, Peer, Task, measured
from benchmarks.report import Report, Suite, Target

MOST_OVER_NATIVE = 1.15
MOST_OVER_INTERPRETER = 1.05

CONTENDERS = {
    Scale.BRIEF: (MIXED, "threaded"),
    Scale.SHORT: (MIXED, "threaded"),
    Scale.SCALAR: (MIXED, "llvm", "threaded"),
    Scale.LONG: (MIXED, "llvm"),
}
"""Who takes part at which sizes; an interpreter would take minutes at the longest."""


class WholePeer(FerryPeer):
    """Whole runs of one backend, or of the default policy."""

    def __init__(self, name: str, folder: Path, keeps: bool) -> None:
        """`folder`: where caches may be made; `keeps`: what a run compiled is there for the next
        one."""
        super().__init__(name)
        self.folder = folder
        self.keeps = keeps

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        self.version()  # raises MissingError
        text = benchmark.skiff(benchmark.at(scale))
        path = written(f"{benchmark.name}-{scale.value}.skiff", text.encode())
        start = drive(self.name, str(path), is_whole=True)
        primed = self._primed()
        kept = Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copytree(primed, kept, dirs_exist_ok=True)

        def run() -> Measurement:
            if self.keeps:
                return measured(benchmark, start, {CACHE: str(kept)})
            with tempfile.TemporaryDirectory(dir=self.folder) as fresh:
                shutil.copytree(primed, fresh, dirs_exist_ok=True)
                return measured(benchmark, start, {CACHE: fresh})

        if self.keeps:
            run()  # so that there is something to keep
        return run

    def _primed(self) -> Path:
        """A cache with what the backend needs for any program."""
        primed = self.folder / f"primed-{self.name}"
        if not primed.exists():
            path = written("trivial-value.skiff", b"(* 6 7)\n")
            trivial = Benchmark("trivial", "", ())
            measured(trivial, drive(self.name, str(path)), {CACHE: str(primed)})
        return primed


def compare_whole(
    scales: Sequence[Scale],
    benchmarks: Sequence[Benchmark],
    rounds: int,
    keeps: bool,
    progress: Callable[[str], None],
) -> Iterator[Report]:
    """A report for each scale, as it is done."""
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as name:
        for scale in scales:
            peers: dict[str, Peer] = {
                contender: WholePeer(contender, Path(name), keeps)
                for contender in CONTENDERS[scale]
            }
            progress(f"--- {scale.value}")
            yield compare(suite(scale), benchmarks, peers, rounds, progress=progress)


def suite(scale: Scale) -> Suite:
    """The suite of whole runs at a scale."""
    bases = tuple(name for name in CONTENDERS[scale] if name != MIXED)
    return Suite("mixed", scale, bases, goals)


def goals(report: Report) -> list[Target]:
    """What the default policy is held to at the sizes of a report."""
    if report.scale is Scale.LONG:
        return [_worst(report, "llvm", MOST_OVER_NATIVE, "programs over 1 s", 1.0, None)]
    if report.scale in (Scale.BRIEF, Scale.SHORT):
        bound, which = MOST_OVER_INTERPRETER, "programs under 50 ms"
        return [_worst(report, "threaded", bound, which, None, 0.05)]
    return []


def _worst(
    report: Report,
    base: str,
    bound: float,
    which: str,
    longer: float | None,
    shorter: float | None,
) -> Target:
    """The largest ratio over `base` on programs on which it takes longer, or shorter, than that."""
    found = []
    for program in report.cells:
        seconds, ratio = report.seconds(program, base), report.ratio(program, MIXED, base)
        if seconds is None or ratio is None:
            continue
        if (longer is None or seconds > longer) and (shorter is None or seconds < shorter):
            found.append(ratio)
    name = f"default policy over {base}, worst of {len(found)} {which} ({report.scale.value})"
    return Target(name, max(found, default=None), bound, True)
