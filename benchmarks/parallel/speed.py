# SPDX-License-Identifier: Apache-2.0
"""Seconds of data-parallel work, in interleaved rounds."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from benchmarks.parallel.contender import GCC, IN_ORDER
from benchmarks.parallel.program import Twin, Work
from benchmarks.parallel.task import Make, Task
from benchmarks.peers.peer import MissingError
from ferryvm.errors import FerryError

Clock = Callable[[], float]

PAUSE = 0.01
"""Seconds in front of each run: OpenMP's threads wait actively for a while after their work."""


@dataclasses.dataclass
class Row:
    """One program: seconds of each round by contender."""

    twin: Twin
    seconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Contenders that took no part, with the reason."""
    faults: dict[str, str] = dataclasses.field(default_factory=dict)
    """What was wrong with contenders."""

    def median(self, contender: str) -> float | None:
        """Seconds; None if it took no part."""
        return median(self.seconds[contender]) if contender in self.seconds else None

    def ratio(self, mine: str, baseline: str = "") -> float | None:
        """The median of the ratios of each round, to gcc on as many cores by default; None where
        one of them took no part."""
        if not baseline:
            baseline = GCC + IN_ORDER if mine.endswith(IN_ORDER) else GCC
        pairs = zip(self.seconds.get(mine, []), self.seconds.get(baseline, []), strict=False)
        ratios = [own / other for own, other in pairs if other]
        return median(ratios) if ratios else None

    def as_json(self) -> dict[str, Any]:
        """The row as JSON."""
        ratios = {name: self.ratio(name) for name in self.seconds if not name.startswith(GCC)}
        return {
            "seconds": self.seconds,
            "missing": self.missing,
            "faults": self.faults,
            "over_gcc": ratios,
        }


def faults(rows: Iterable[Row]) -> list[str]:
    """What was wrong with contenders, a line each."""
    return [
        f"{row.twin.name}: {name}: {fault}" for row in rows for name, fault in row.faults.items()
    ]


def measure(
    twins: Sequence[Twin],
    known: Mapping[str, Make],
    rounds: int,
    size: str,
    progress: Callable[[str], None],
    clock: Clock = time.perf_counter,
) -> list[Row]:
    """A row for each program; `clock`: of contenders on all cores. A contender whose results are
    not, to the last bit, those of the first one, or that fails, is a fault of the row, and is not
    timed."""
    return [_row(twin, known, rounds, size, progress, clock) for twin in twins]


def _row(
    twin: Twin,
    known: Mapping[str, Make],
    rounds: int,
    size: str,
    progress: Callable[[str], None],
    clock: Clock,
) -> Row:
    row, ready = Row(twin), dict[str, Callable[[], float]]()
    original = twin.make(twin.size(size))
    first: tuple[str, list[bytes]] | None = None
    for name, make in known.items():
        work = original.fresh()
        try:
            task = make(twin, work)
            bits = result_bits(task, work, original)
        except MissingError as error:
            row.missing[name] = str(error)
            progress(f"{twin.name}: {name} takes no part: {error}")
            continue
        except (BenchmarkError, FerryError) as error:
            row.faults[name] = str(error)
            progress(f"{twin.name}: {name} FAILED: {error}")
            continue
        first = first or (name, bits)
        if bits != first[1]:
            row.faults[name] = f"its results are not those of {first[0]}"
            continue
        own = task.processor if name.endswith(IN_ORDER) or clock is time.process_time else clock
        ready[name] = _timed(task, work, original, own)
    for name, seconds in interleave(ready, rounds, {}):
        row.seconds.setdefault(name, []).append(seconds)
    shown = ", ".join(f"{name} {row.median(name):.4f} s" for name in row.seconds)
    progress(f"{twin.name}: {shown}")
    return row


def result_bits(task: Task, work: Work, original: Work) -> list[bytes]:
    """The results of a second run, which is whole in native code. Raises BenchmarkError if those of
    the first one are others."""
    found = []
    for _ in range(2):
        work.restore(original)
        task.send()
        task.run()
        task.fetch()
        found.append(work.bits())
    if found[0] != found[1]:
        raise BenchmarkError("two runs gave different results")
    return found[1]


def _timed(task: Task, work: Work, original: Work, clock: Clock) -> Callable[[], float]:
    def run() -> float:
        work.restore(original)
        task.send()
        time.sleep(PAUSE)
        began = clock()
        task.run()
        return clock() - began

    return run
