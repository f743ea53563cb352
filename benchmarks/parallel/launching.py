# SPDX-License-Identifier: Apache-2.0
"""The cost of a launch of a thousand trivial items from Python, over a call without one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy

import ferryvm
from benchmarks.measure import median
from benchmarks.parallel.contender import LLVM, launching

ITEMS = 1000
CALLS = 200
"""Calls that a measurement takes the mean of."""

PROGRAM = """
(define (item (i i64) (to (array i64))) (array-set! to i i))
(define (plain (n i64) (to (array i64))) (array-set! to 0 n))
(define (work (n i64) (to (array i64))) (for-each-item n (item to)))
"""


def measure(rounds: int) -> dict[str, Any]:
    """Microseconds of a call that launches, of one that does not, and the difference, which is the
    median of interleaved rounds. Raises MissingError where llvm cannot run."""
    instance = launching(LLVM, threads=0).instantiate(ferryvm.compile(PROGRAM))
    work, plain, to = instance.exports["work"], instance.exports["plain"], numpy.zeros(ITEMS, "i8")

    def spent(call: Callable[..., object]) -> float:
        began = time.perf_counter()
        for _ in range(CALLS):
            call(ITEMS, to)
        return 1e6 * (time.perf_counter() - began) / CALLS

    spent(work), spent(plain)
    pairs = [(spent(work), spent(plain)) for _ in range(rounds)]
    return {
        "launch": median([first for first, _ in pairs]),
        "plain": median([second for _, second in pairs]),
        "over": median([first - second for first, second in pairs]),
        "items": ITEMS,
    }
