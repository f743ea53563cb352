# SPDX-License-Identifier: Apache-2.0
"""Memory of programs with references, in processes of their own; `drive_memory` is what they
run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.benchmark import ROOT, BenchmarkError
from benchmarks.peers.peer import SECONDS_A_RUN, MissingError
from ferryvm import child

DRIVER = "benchmarks.references.drive_memory"

STATUS = Path("/proc/self/status")
"""Where Linux tells the resident memory of a process."""


def measure(part: str, *arguments: object) -> dict[str, Any]:
    """The figures of a part, measured in a new process with these arguments. Raises MissingError
    where the system has no such figures, BenchmarkError if the process fails."""
    if not STATUS.exists():
        raise MissingError("this system does not tell the resident memory of a process")
    command = [sys.executable, "-m", DRIVER, part, *map(str, arguments)]
    done = child.run(command, SECONDS_A_RUN, None, ROOT.parent)
    if done.code != 0:
        said = done.errors.strip().splitlines() or ["nothing"]
        raise BenchmarkError(f"memory of {part}: exit {done.code}: {said[-1]}")
    found: dict[str, Any] = json.loads(done.output)
    return found
