# SPDX-License-Identifier: Apache-2.0
"""Black and Scholes's prices of options on all cores, by real exp and log: llvm against gcc with
OpenMP and glibc.

The libraries' last bits differ, so prices are compared to some digits. (The twin of `benchmarks
parallel` has polynomials in their place.)
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any

import numpy

import ferryvm
from benchmarks.benchmark import PROGRAMS, BenchmarkError
from benchmarks.build import build
from benchmarks.measure import interleave, median
from benchmarks.parallel.contender import FLAGS, GCC, LLVM, launching
from benchmarks.parallel.program import uniform
from benchmarks.peers.peer import tool

COUNT = 1 << 20
RATE, VOLATILITY = 0.02, 0.3

_TOLERANCE = 1e-12
"""The largest difference of prices, which are about 10."""

_PAUSE = 0.01
"""Seconds in front of each run: OpenMP's threads wait actively for a while after their work."""


def measure(rounds: int, count: int = COUNT) -> dict[str, Any]:
    """Seconds of each round on all cores, wall time and processor time, and the medians of the
    ratios of llvm to gcc. Raises MissingError where one of them is missing."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when OpenMP is loaded
    price, strike = uniform(count, 10.0, 50.0, 0), uniform(count, 10.0, 50.0, 1)
    years = uniform(count, 0.25, 4.0, 2)
    results = {name: (numpy.zeros(count), numpy.zeros(count)) for name in (LLVM, GCC)}
    path = PROGRAMS / "mathematics" / "prices.skiff"
    program = ferryvm.compile(path.read_text(encoding="utf-8"), file=str(path))
    ours = launching(LLVM, threads=0).instantiate(program).exports["work"]
    command = [tool("gcc"), *FLAGS, "-DLIBRARY", "-fopenmp", "-shared", "-fPIC"]
    command += ["-Wl,--no-as-needed", "-lm"]
    source = PROGRAMS / "parallel" / "blackscholes.c"
    library = ctypes.CDLL(str(build("prices.so", command, [source])))

    def in_c() -> None:
        arrays = (price, strike, years, *results[GCC])
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        numbers = ctypes.c_int64(count), ctypes.c_double(RATE), ctypes.c_double(VOLATILITY)
        library.work(*numbers, *pointers)

    tasks: dict[str, Callable[[], object]] = {
        LLVM: lambda: ours(count, RATE, VOLATILITY, price, strike, years, *results[LLVM]),
        GCC: in_c,
    }
    for task in tasks.values():
        task()
        task()
    for mine, other in zip(results[LLVM], results[GCC], strict=True):
        if not numpy.allclose(mine, other, rtol=0.0, atol=_TOLERANCE):
            raise BenchmarkError("the prices of llvm and of gcc differ")
    timed = {name: _timed(task) for name, task in tasks.items()}
    wall: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for name, (one, other_) in interleave(timed, rounds, {}):
        wall.setdefault(name, []).append(one)
        processor.setdefault(name, []).append(other_)
    return {
        "count": count,
        "wall_seconds": wall,
        "processor_seconds": processor,
        "wall_ratio": _ratio(wall),
        "processor_ratio": _ratio(processor),
    }


def _ratio(seconds: dict[str, list[float]]) -> float:
    return median([a / b for a, b in zip(seconds[LLVM], seconds[GCC], strict=True)])


def _timed(task: Callable[[], object]) -> Callable[[], tuple[float, float]]:
    def run() -> tuple[float, float]:
        time.sleep(_PAUSE)
        began, spent = time.perf_counter(), time.process_time()
        task()
        return time.perf_counter() - began, time.process_time() - spent

    return run
