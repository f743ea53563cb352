# SPDX-License-Identifier: Apache-2.0
"""Two ways to compute the same, in turn: outcomes are compared, and the least of the rounds counts.

The time of a call with next to nothing to do is taken from both: what remains is the code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.benchmark import BenchmarkError

TARGET = 1.02
"""The geometric mean that exports should have."""

_LEAST = 0.01
"""Seconds of calls between two looks at the clock, at least."""


@dataclass(frozen=True)
class Calls:
    """A function with its arguments, and with arrays of an element or a group."""

    work: Callable[[], object]
    alone: Callable[[], object]


class Ratios:
    """Times of exported functions, and of the same ones in ferryvm."""

    def __init__(
        self,
        rounds: int,
        progress: Callable[[str], None],
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._rounds, self._progress, self._clock = rounds, progress, clock
        self._found: dict[str, float] = {}
        self._ratios: list[float] = []

    def add(self, name: str, outside: Calls, inside: Calls, arguments: Sequence[object]) -> None:
        """Measure one function. Raises BenchmarkError if both do not compute the same."""
        _check(name, outside.work, inside.work, arguments)
        tasks = {
            "exported": outside.work,
            "exported, the call": outside.alone,
            "ferryvm": inside.work,
            "ferryvm, the call": inside.alone,
        }
        times = self._least(tasks)
        exported = times["exported"] - times["exported, the call"]
        ours = times["ferryvm"] - times["ferryvm, the call"]
        if min(exported, ours) <= 0:
            raise BenchmarkError(f"{name}: the work takes no longer than the call")
        self._ratios.append(exported / ours)
        self._progress(f"{name}: {exported / ours:.2f}")
        self._found |= {f"{name}: {title}, us": seconds * 1e6 for title, seconds in times.items()}
        self._found[f"{name}: ratio"] = exported / ours

    def result(self, command: str) -> dict[str, Any]:
        """All of it, and whether the goal is met."""
        mean = math.exp(sum(map(math.log, self._ratios)) / len(self._ratios))
        goal = {"mean": mean, "target": TARGET, "is_met": mean <= TARGET}
        return {"command": command, **self._found, **goal}

    def _least(self, tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
        """The least seconds of each task, in turn."""
        repeats = {title: self._repeats(task) for title, task in tasks.items()}
        found = dict.fromkeys(tasks, math.inf)
        for _ in range(self._rounds):
            for title, task in tasks.items():
                seconds = self._seconds(task, repeats[title]) / repeats[title]
                found[title] = min(found[title], seconds)
        return found

    def _repeats(self, task: Callable[[], object]) -> int:
        """Calls that take long enough to be timed."""
        repeats = 1
        while self._seconds(task, repeats) < _LEAST:
            repeats *= 2
        return repeats

    def _seconds(self, task: Callable[[], object], repeats: int) -> float:
        start = self._clock()
        for _ in range(repeats):
            task()
        return self._clock() - start


def _check(
    name: str,
    outside: Callable[[], object],
    inside: Callable[[], object],
    arguments: Sequence[object],
) -> None:
    """Raise BenchmarkError if both do not compute the same."""
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    before = [each.copy() for each in arrays]
    outcomes = []
    for call in (outside, inside):
        for array, content in zip(arrays, before, strict=True):
            array[:] = content
        outcomes.append((call(), [each.tobytes() for each in arrays]))
    if outcomes[0] != outcomes[1]:
        raise BenchmarkError(f"{name}: the exported function computes something else")
