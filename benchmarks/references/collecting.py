# SPDX-License-Identifier: Apache-2.0
"""Collections of a tree that stays: bytes a second, and the pause.

All live bytes are of small structs of two references. The native collector copies them; a
collection visits each object once, so the bytes that it copies are the bytes that it marks.
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import median
from benchmarks.peers.ferry import engine
from benchmarks.references.program import assembled
from ferryvm.isa.object import FIRST_OFFSET

NODE_BYTES = 24
"""A header and two references."""

DEPTH = 21
"""Of the tree: 100.7 MB of nodes."""


def measure(rounds: int, depth: int) -> dict[str, Any]:
    """`pauses`: processor seconds of each of `rounds` collections; medians of these and of the
    bytes a second; the live bytes.

    Raises BenchmarkError if the collector is not native, and MissingError without `llvm`."""
    instance = engine("llvm").instantiate(assembled("keep"))
    instance.exports["work"](depth)
    objects = instance.idle_execution().machine.objects
    live = NODE_BYTES * ((2 << depth) - 1)
    pauses, rates = [], []
    for _ in range(1 + rounds):
        began = time.process_time()
        objects.collect()
        pauses.append(time.process_time() - began)
        metrics = objects.space.metrics
        rates.append((metrics.live - FIRST_OFFSET) / pauses[-1])
    if not objects.is_native:
        raise BenchmarkError(f"collections ran in Python: {objects.reason}")
    if metrics.live - FIRST_OFFSET != live:
        raise BenchmarkError(f"{live} bytes should be alive, {metrics.live - FIRST_OFFSET} are")
    del pauses[0], rates[0]  # the first one meets pages that were never touched
    return {
        "live_bytes": live,
        "pauses": pauses,
        "pause": median(pauses),
        "bytes_per_second": median(rates),
    }
