# SPDX-License-Identifier: Apache-2.0
"""What `ferry run` of a trivial program costs, as whole processes with a warm cache."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.build import written
from benchmarks.measure import interleave, median

TARGET_RATIO = 0.8
PROGRAM = "(print! (* 6 7))\n"
RUN = "from ferryvm.cli import main; main()"
IMPORTS = "import numpy, llvmlite.binding"


def ferry() -> list[str]:
    """The command of this very Python, not another installation's that happens to be on the
    path."""
    command = Path(sys.executable).with_name("ferry")
    return [str(command)] if command.exists() else [sys.executable, "-c", RUN]


def commands() -> dict[str, list[str]]:
    """The two processes: ferry on a trivial program, and the imports that making native code
    takes."""
    program = written("trivial.skiff", PROGRAM.encode())
    return {
        "ferry": [*ferry(), "run", str(program)],
        "imports": [sys.executable, "-c", IMPORTS],
    }


def measure(rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Medians of both processes in milliseconds, and of their ratio in each round."""
    tasks = commands()
    for command in tasks.values():  # fills ferry's cache, and the file system's
        _process(command)
    times: dict[str, list[float]] = {name: [] for name in tasks}
    timed = {name: _timer(command) for name, command in tasks.items()}
    for name, milliseconds in interleave(timed, rounds, {}):
        times[name].append(milliseconds)
        progress(f"{name}: {milliseconds:.1f} ms")
    pairs = zip(times["ferry"], times["imports"], strict=True)
    ratio = median([ferry / imports for ferry, imports in pairs])
    return {
        "command": " ".join(tasks["ferry"]),
        "rounds": rounds,
        "ferry_ms": median(times["ferry"]),
        "imports_ms": median(times["imports"]),
        "ratio": ratio,
        "target_ratio": TARGET_RATIO,
        "is_met": ratio <= TARGET_RATIO,
    }


def _timer(command: Sequence[str]) -> Callable[[], float]:
    return lambda: _process(command)


def _process(command: Sequence[str]) -> float:
    """Milliseconds that a process takes from start to end."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    milliseconds = (time.perf_counter() - start) * 1e3
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return milliseconds
