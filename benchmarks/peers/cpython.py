# SPDX-License-Identifier: Apache-2.0
"""CPython: this interpreter, with the Python twins."""

from __future__ import annotations

import platform
import sys

from benchmarks.benchmark import ROOT, Benchmark, Scale
from benchmarks.peers.peer import Peer, Task, measured, sizes, twin

DRIVER = ROOT / "peers" / "drive.py"
PROCESSOR = ["--processor"]
"""Arguments with which a driver measures the processor's time instead of wall time."""


class CPythonPeer(Peer):
    """CPython at full size, but once only: it would take most of the time of a run."""

    name = "cpython"
    label = "CPython"
    rounds_at_most = 1

    def version(self) -> str:
        return f"{platform.python_implementation()} {platform.python_version()}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        source = str(twin(benchmark, "py"))
        command = [sys.executable, str(DRIVER), source, *sizes(benchmark, scale)]
        return lambda: measured(benchmark, command)
