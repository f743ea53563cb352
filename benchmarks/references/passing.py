# SPDX-License-Identifier: Apache-2.0
"""Calls that take an array of NumPy and return it: the time does not depend on its length, since
the program uses the elements where they lie."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import median
from benchmarks.peers.ferry import engine

BYTES = 1 << 30
"""Of the array; its pages are never touched, so it takes no memory."""

BACKENDS = ("threaded", "switch", "llvm")

TEXT = "(define (same (v (array f64))) v)"


def measure(size: int, calls: int) -> dict[str, Any]:
    """The median of the wall seconds of `calls` calls with `size` bytes on each backend; `slowest`
    of these. Raises BenchmarkError if another array comes back, MissingError without a backend."""
    array = np.zeros(size // 8)
    program = ferryvm.compile(TEXT)
    found: dict[str, Any] = {}
    for backend in BACKENDS:
        same = engine(backend).instantiate(program).exports["same"]
        seconds = []
        for _ in range(calls):
            began = time.perf_counter()
            result = same(array)
            seconds.append(time.perf_counter() - began)
            if result is not array:
                raise BenchmarkError(f"{backend} returned another array than it got")
        found[backend] = median(seconds)
    return {"bytes": size, **found, "slowest": max(found.values())}
