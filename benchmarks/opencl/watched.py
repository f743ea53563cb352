# SPDX-License-Identifier: Apache-2.0
"""An engine whose compiler is watched: what it built, and where the seconds of its runs went.

Engine ── Observer ── attempts ── notes: seconds of the steps of building
                         └─────── activity: entries, kernel, transfers ── check: did it run at all?
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence

from benchmarks.benchmark import Benchmark, BenchmarkError
from ferryvm.backend import Activity
from ferryvm.engine import Engine, RunResult
from ferryvm.engine.journal import Attempt, Outcome
from ferryvm.engine.observer import Observer

TOTAL = "total"
"""What compilers call all steps together."""


@dataclasses.dataclass(frozen=True)
class Built:
    """What a compiler built for a program."""

    seconds: float
    """All asking of the compiler, its imports included where it is asked for the first time."""
    steps: dict[str, float]
    """Seconds by the name of the step; they are part of `seconds`."""
    regions: int
    cached: int
    """Regions of them that were found and not built."""


@dataclasses.dataclass(frozen=True)
class Spent:
    """Where the seconds of one run went."""

    whole: float
    """All of it; `build` is in it where the run waited for that."""
    build: float
    kernel: float
    """In the compiled code, what enters and leaves a device included, copies not."""
    transfer: float
    """Copying to and from a device."""
    entries: int
    to_device: int
    """Bytes."""
    to_host: int
    """Bytes."""

    @property
    def rest(self) -> float:
        """Seconds of the interpreter and the engine."""
        return max(self.whole - self.build - self.kernel - self.transfer, 0.0)


class Watched:
    """An engine whose runs are checked: its compiler has compiled and its code was entered."""

    def __init__(self, engine: Engine, compiler: str) -> None:
        self.engine, self.compiler = engine, compiler
        self._observer = Observer()
        self._observer.watch(engine)

    @property
    def attempts(self) -> list[Attempt]:
        """All tries to compile so far."""
        details = [happening.detail for happening in self._observer.happenings]
        return [detail for detail in details if isinstance(detail, Attempt)]

    def built(self) -> Built:
        """What was built so far. Raises BenchmarkError if that is nothing, or another's work."""
        attempts = self.attempts
        made = [attempt for attempt in attempts if attempt.code is not None]
        others = sorted({attempt.backend for attempt in made} - {self.compiler})
        if others:
            raise BenchmarkError(f"asked for {self.compiler}, compiled by {', '.join(others)}")
        if not made:
            reasons = [attempt.reason for attempt in attempts] or ["nothing got hot"]
            raise BenchmarkError(f"{self.compiler} compiled nothing: {'; '.join(reasons)}")
        steps: collections.Counter[str] = collections.Counter()
        for attempt in made:
            assert attempt.code is not None
            steps.update({k: v for k, v in attempt.code.notes.items() if k != TOTAL})
        return Built(
            sum(attempt.seconds for attempt in attempts),
            dict(steps),
            len(made),
            sum(attempt.outcome is Outcome.CACHED for attempt in made),
        )

    def refusals(self) -> list[str]:
        """Regions that were not compiled, with the reason."""
        return [
            f"{attempt.region} {attempt.outcome.value}: {attempt.reason}"
            for attempt in self.attempts
            if attempt.outcome in (Outcome.REFUSED, Outcome.FAILED, Outcome.LOST)
        ]

    def activity(self) -> Activity:
        """What all code has done so far."""
        return total([a.code.activity() for a in self.attempts if a.code is not None])

    def spent(self, whole: float, build: float, before: Activity) -> Spent:
        """Where the seconds of a run went that began with this activity.

        Raises BenchmarkError if the code was not entered in it.
        """
        done = self.activity()
        entries = done.entries - before.entries
        if entries < 1:
            raise BenchmarkError(f"the code of {self.compiler} was never entered")
        return Spent(
            whole,
            build,
            done.seconds - before.seconds,
            done.transfer_seconds - before.transfer_seconds,
            entries,
            done.to_device - before.to_device,
            done.to_host - before.to_host,
        )


def total(activities: Sequence[Activity]) -> Activity:
    """All of them together."""
    return Activity(
        entries=sum(one.entries for one in activities),
        seconds=sum(one.seconds for one in activities),
        to_device=sum(one.to_device for one in activities),
        to_host=sum(one.to_host for one in activities),
        transfer_seconds=sum(one.transfer_seconds for one in activities),
    )


def result_of(benchmark: Benchmark, run: RunResult) -> int | float:
    """The result of a run: its value, or the number that it printed."""
    if run.value is not None:
        return run.value
    return benchmark.read(run.output.strip())
