# SPDX-License-Identifier: Apache-2.0
"""The nine programs in Python: `ferryvm.function` against Numba and PyPy."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import ferryvm
from benchmarks.benchmark import Benchmark, Scale
from benchmarks.peers.cpython import PROCESSOR
from benchmarks.peers.ferry import CACHE
from benchmarks.peers.njit import NumbaPeer
from benchmarks.peers.peer import Peer, Task, measured, sizes, twin
from benchmarks.peers.tracing import PyPyPeer
from benchmarks.report import Report, Suite, Target
from benchmarks.scalar import FOLDED

FUNCTION, NUMBA, PYPY = "function", "numba", "pypy"


class FunctionPeer(Peer):
    """`ferryvm.function`, in a process of its own for each run; later runs find what was
    compiled."""

    name = FUNCTION
    label = "ferryvm.function"

    def __init__(self, cache: str, is_processor: bool = False) -> None:
        self._environment = {CACHE: cache}
        self.clock = PROCESSOR if is_processor else []

    def version(self) -> str:
        return f"ferryvm {ferryvm.__version__}, default policy"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        start = [sys.executable, "-m", "benchmarks.python.drive_function", *self.clock]
        # Integers of NumPy wrap, and its arrays have bytes; text for CPython has neither.
        source = str(twin(benchmark, "numpy.py", "py"))
        command = [*start, source, *sizes(benchmark, scale)]
        return lambda: measured(benchmark, command, self._environment)


def peers(cache: str, numba: str | None, is_processor: bool = False) -> Mapping[str, Peer]:
    """All peers by name. `cache`: a folder for what ferryvm compiles; `numba`: a Python that has
    it; `is_processor`: measure the processor's time."""
    found = (
        FunctionPeer(cache, is_processor),
        NumbaPeer(numba, is_processor),
        PyPyPeer(is_processor),
    )
    return {peer.name: peer for peer in found}


def goals(report: Report) -> list[Target]:
    """What functions are held to."""
    return [
        Target(
            f"function over {label}, geometric mean", report.whole_mean(FUNCTION, name), most, True
        )
        for name, label, most in ((NUMBA, "Numba", 0.9), (PYPY, "PyPy", 0.15))
    ]


SUITE = Suite("python", Scale.SCALAR, (NUMBA, PYPY), goals, frozenset({FOLDED}))
