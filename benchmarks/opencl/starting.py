# SPDX-License-Identifier: Apache-2.0
"""From a warm cache to the first result of the loop, as whole processes of `ferry run`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

from benchmarks import startup
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from benchmarks.opencl.part import Metrics
from benchmarks.opencl.program import EXAMPLES
from benchmarks.report import Target
from ferryvm.engine.journal import Outcome

MOST_SECONDS = 0.5
PROGRAM = EXAMPLES / "looptest.skiff"
EXPECTED = "100000000"
BACKENDS = ("opencl", "llvm")


def starting(rounds: int, progress: Callable[[str], None]) -> Metrics:
    """Seconds from the start of a process to the result and to its end, by backend."""
    for backend in BACKENDS:
        first_result(backend)  # fills the cache
        explained(backend)  # with the code that is watched, where that is another one
        check_cached(backend, explained(backend))
    tasks = {backend: _task(backend) for backend in BACKENDS}
    rows: dict[str, list[float]] = {}
    for backend, (result, end) in interleave(tasks, rounds, {}):
        rows.setdefault(f"{backend}_result_s", []).append(result)
        rows.setdefault(f"{backend}_end_s", []).append(end)
        progress(f"starting, {backend}: result after {result:.3f} s, end after {end:.3f} s")
    metrics = {name: median(values) for name, values in rows.items()}
    found = metrics["opencl_result_s"]
    return Metrics(
        "starting",
        "ferry run examples/looptest.skiff in a new process, from the cache",
        metrics,
        rows,
        [Target("opencl, from the cache to the first result", found, MOST_SECONDS, True, " s")],
    )


def _task(backend: str) -> Callable[[], tuple[float, float]]:
    return lambda: first_result(backend)


def first_result(backend: str) -> tuple[float, float]:
    """Seconds from the start of the process to the line with the result, and to its end."""
    command = [*startup.ferry(), "run", "--backend", backend, str(PROGRAM)]
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        result = time.perf_counter() - began
        _, errors = process.communicate()
    end = time.perf_counter() - began
    if process.returncode != 0 or line.strip() != EXPECTED:
        raise BenchmarkError(
            f"{' '.join(command)} exited with {process.returncode} and gave {line.strip()!r}: "
            f"{errors.strip()}"
        )
    return result, end


def explained(backend: str) -> list[dict[str, Any]]:
    """What was tried to compile the program, of `ferry explain`."""
    command = [*startup.ferry(), "explain", "--json", "--backend", backend, str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return [one for region in json.loads(done.stdout)["regions"] for one in region["tried"]]


def check_cached(backend: str, tried: list[dict[str, Any]]) -> None:
    """Raise BenchmarkError unless the backend found its code in the cache, and the code was run."""
    if not any(one["backend"] == backend and one["entries"] for one in tried):
        raise BenchmarkError(f"{backend} did not run {PROGRAM.name}")
    fresh = [one["region"] for one in tried if one["outcome"] != Outcome.CACHED.value]
    if fresh:
        raise BenchmarkError(f"{backend} did not find in its cache: {', '.join(fresh)}")
