# SPDX-License-Identifier: Apache-2.0
"""Two ways to compute the same, in turn: outcomes are compared, CPU time counts, and the least of
the rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.benchmark import BenchmarkError

TARGET = 1.02
"""The geometric mean that exports should have."""


class Ratios:
    """Seconds of exported functions and of the same ones in ferryvm."""

    def __init__(self, rounds: int, progress: Callable[[str], None]) -> None:
        self._rounds, self._progress = rounds, progress
        self._found: dict[str, float] = {}
        self._ratios: list[float] = []

    def add(
        self,
        name: str,
        outside: Callable[[], object],
        inside: Callable[[], object],
        arguments: Sequence[object],
    ) -> None:
        """Measure one function. Raises BenchmarkError if both do not compute the same."""
        _check(name, outside, inside, arguments)
        times = _least({"exported": outside, "ferryvm": inside}, self._rounds)
        ratio = times["exported"] / times["ferryvm"]
        self._ratios.append(ratio)
        self._progress(f"{name}: {ratio:.2f}")
        self._found[f"{name}: exported"], self._found[f"{name}: ferryvm"] = times.values()
        self._found[f"{name}: ratio"] = ratio

    def result(self, command: str) -> dict[str, Any]:
        """All of it, and whether the goal is met."""
        mean = math.exp(sum(map(math.log, self._ratios)) / len(self._ratios))
        goal = {"mean": mean, "target": TARGET, "is_met": mean <= TARGET}
        return {"command": command, **self._found, **goal}


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


def _least(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of CPU time of each task, in turn."""
    found = dict.fromkeys(tasks, math.inf)
    repeats = 1
    while _seconds(tasks["ferryvm"], repeats) < 0.01:
        repeats *= 2
    for _ in range(rounds):
        for title, task in tasks.items():
            found[title] = min(found[title], _seconds(task, repeats) / repeats)
    return found


def _seconds(task: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        task()
    return time.process_time() - start
