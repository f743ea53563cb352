# SPDX-License-Identifier: Apache-2.0
"""Numba, in a Python of its own: it needs other versions of numpy and llvmlite than ferryvm."""

from __future__ import annotations

import subprocess

from benchmarks.benchmark import Benchmark, Scale
from benchmarks.peers.cpython import DRIVER, PROCESSOR
from benchmarks.peers.peer import MissingError, Peer, Task, measured, sizes, twin

ENVIRONMENT = "FERRY_BENCH_NUMBA"


class NumbaPeer(Peer):
    """Numba; its first call, with tiny sizes, is its compiling."""

    name = "numba"
    label = "Numba"

    def __init__(self, python: str | None, is_processor: bool = False) -> None:
        """`python`: the interpreter that has it; `is_processor`: measure the processor's time."""
        self.python = python
        self.clock = PROCESSOR if is_processor else []

    def version(self) -> str:
        python = self._python()
        shown = "import numba, llvmlite; print('Numba', numba.__version__, 'llvmlite', llvmlite.__version__)"
        try:
            done = subprocess.run(
                [python, "-c", shown], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MissingError(f"{python} cannot be run: {error}") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["it says nothing"]
            raise MissingError(f"{python} has no Numba: {said[-1]}")
        return done.stdout.strip()

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        tiny = ",".join(sizes(benchmark, Scale.TINY))
        start = [self._python(), str(DRIVER), *self.clock, "--warm", tiny]
        source = str(twin(benchmark, "numba.py"))
        command = [*start, source, *sizes(benchmark, scale)]
        return lambda: measured(benchmark, command)

    def _python(self) -> str:
        if self.python is None:
            raise MissingError(f"name a Python that has it with --numba or {ENVIRONMENT}")
        return self.python
