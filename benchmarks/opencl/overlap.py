# SPDX-License-Identifier: Apache-2.0
"""Two launches that do not depend on each other, with copies beside kernels and without.

    first     computes long; one array in, one out
    second    hardly computes; another array in, another one out

Python changes both inputs before each call, so both are sent, and both results come back. Calls
that copy beside kernels alternate with calls that do not. On a processor that shares the host's
memory, where nothing is copied, the backend is told to copy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest import mock

import numpy as np

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import median
from benchmarks.opencl.part import Metrics
from benchmarks.opencl.peer import fatal
from benchmarks.opencl.short import copying_engine
from benchmarks.report import Target
from ferryvm_backends.opencl import object_copy

STEPS, QUICK_STEPS = 10_000, 10
"""Iterations of an item of the first launch."""

_NEVER = 1 << 60
_TEXT = """
(define (long item (from (array f64)) (to (array f64)) steps)
  (define x (array-ref from item))
  (define y x)
  (define i 0)
  (while (< i steps)
    (set! y (+ x (* y (- 1 y))))
    (set! i (+ i 1)))
  (array-set! to item y))
(define (short item (from (array f64)) (to (array f64)))
  (array-set! to item (+ 1 (array-ref from item))))
(define (both (n i64) (steps i64) (a (array f64)) (b (array f64)) (c (array f64)) (d (array f64)))
  (for-each-item n (long a b steps))
  (for-each-item n (short c d)))
"""


def overlap(bytes_: int, steps: int, rounds: int, progress: Callable[[str], None]) -> Metrics:
    """Milliseconds of a call with copies beside kernels, and without; `bytes_`: of each array."""
    both = copying_engine().instantiate(ferryvm.compile(_TEXT)).exports["both"]
    count = bytes_ // 8
    arrays = [np.zeros(count) for _ in range(4)]
    number = 0

    def spent(least: int) -> float:
        nonlocal number
        number += 1
        arrays[0][:] = arrays[2][:] = number / 1000
        with mock.patch.object(object_copy, "_LEAST_BESIDE", least), fatal():
            began = time.perf_counter()
            both(count, steps, *arrays)
            found = time.perf_counter() - began
        if not (arrays[3] == number / 1000 + 1).all() or (arrays[1] != arrays[1][0]).any():
            raise BenchmarkError("the results of a call are not those of its arguments")
        return found

    for _ in range(3):
        spent(1), spent(_NEVER)
    pairs = [(spent(1), spent(_NEVER)) for _ in range(rounds)]
    beside, apart = [1e3 * one for one, _ in pairs], [1e3 * two for _, two in pairs]
    progress(f"overlap: {median(beside):.2f} ms, {median(apart):.2f} ms one after another")
    ratio = median([one / two for one, two in zip(beside, apart, strict=True)])
    metrics = {"array_bytes": bytes_, "beside_ms": median(beside), "in_sequence_ms": median(apart)}
    goal = Target("two launches, copies beside kernels over copies between", ratio, 1.0, True)
    return Metrics(
        "overlap",
        "two launches that do not depend on each other",
        metrics | {"ratio": ratio},
        {"beside_ms": beside, "in_sequence_ms": apart},
        [goal],
    )
