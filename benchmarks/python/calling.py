# SPDX-License-Identifier: Apache-2.0
"""Calls and maps that take no time themselves, and the first result of a process.

Each contender runs in processes of its own, in turns; the least time of many calls counts, since
whatever disturbs a call makes it longer.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.benchmark import ROOT, BenchmarkError
from benchmarks.measure import median
from benchmarks.peers.ferry import CACHE
from benchmarks.peers.peer import MissingError
from benchmarks.report import Target

FERRY, NUMBA = "ferryvm", "numba"
SECONDS = 600.0

MOST_CALL, MOST_CALL_RATIO, MOST_MAP = 1.0, 1.5, 15.0
"""Microseconds, and over Numba."""
MOST_COLD_RATIO, MOST_WARM = 0.8, 0.35
"""Over Numba, and seconds over `import numpy`."""


@dataclasses.dataclass
class Calls:
    """Medians over the rounds, by contender, then by what was measured."""

    found: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)

    def _ratio(self, name: str) -> float | None:
        mine, other = (self.found.get(each, {}).get(name) for each in (FERRY, NUMBA))
        return mine / other if mine is not None and other else None

    def targets(self) -> list[Target]:
        """The goals."""
        mine = self.found.get(FERRY, {})
        name = "call of two floats"
        return [
            Target(name, mine.get("call_us"), MOST_CALL, True, " us"),
            Target(f"{name} over Numba's", self._ratio("call_us"), MOST_CALL_RATIO, True),
            Target("map over 1,000 floats", mine.get("map_us"), MOST_MAP, True, " us"),
            Target("map over 1,000 floats into an array", mine.get("map_into_us"), MOST_MAP, True,
                   " us"),
            Target("first daxpy, empty caches, over Numba", self._ratio("cold_s"),
                   MOST_COLD_RATIO, True),
            Target("first daxpy, warm caches, over import numpy", mine.get("warm_s"), MOST_WARM,
                   True, " s"),
        ]  # fmt: skip


def measure(rounds: int, numba: str | None, progress: Callable[[str], None]) -> Calls:
    """Medians of rounds in turns. `numba`: a Python that has it."""
    pythons = {FERRY: sys.executable} | ({NUMBA: numba} if numba else {})
    times: dict[str, dict[str, list[float]]] = {name: {} for name in pythons}
    for _ in range(rounds):
        for name, python in pythons.items():
            with tempfile.TemporaryDirectory(prefix="ferry-bench-") as folder:
                environment = {CACHE: folder, "NUMBA_CACHE_DIR": folder}
                parts = [("cold_s", "first"), ("warm_s", "first"), ("", "calls")]
                for key, part in parts:
                    for shown, value in _run(python, name, part, environment).items():
                        times[name].setdefault(key or shown, []).append(value)
        progress(f"calls: {times}")
    return Calls({n: {key: median(all_) for key, all_ in of.items()} for n, of in times.items()})


def _run(python: str, name: str, part: str, environment: dict[str, str]) -> dict[str, float]:
    command = [python, str(Path(__file__).with_name("drive_calls.py")), name, part]
    paths = os.pathsep.join(
        [str(ROOT.parent), *([os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [])]
    )
    everything = {**os.environ, **environment}
    if name == FERRY:
        everything["PYTHONPATH"] = paths
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env=everything
        )
    except OSError as error:
        raise MissingError(f"{python} cannot be run: {error}") from None
    if done.returncode:
        raise BenchmarkError(f"{name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    words = [line.split() for line in done.stdout.splitlines()]
    return {key: float(value) for key, value in words}
