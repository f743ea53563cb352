# SPDX-License-Identifier: Apache-2.0
"""CPython: this interpreter, with the Python twins."""

from __future__ import annotations

import platform
import sys

from benchmarks.benchmark import ROOT, Benchmark
from benchmarks.peers.peer import Peer, Task, measured, twin


class CPythonPeer(Peer):
    """CPython at full size, but once only: it would take most of the time of a session."""

    name = "cpython"
    label = "CPython"
    rounds_at_most = 1

    def version(self) -> str:
        return f"{platform.python_implementation()} {platform.python_version()}"

    def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
        driver = ROOT / "peers" / "drive.py"
        command = [sys.executable, str(driver), str(twin(benchmark, "py")), *map(str, sizes)]
        return lambda: measured(benchmark, command)
