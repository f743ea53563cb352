# SPDX-License-Identifier: Apache-2.0
"""Processor time of the programs with references, in interleaved rounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from benchmarks.peers.peer import MissingError
from benchmarks.references.contender import AT_MOST, COMPILED, SMALL, Outcome, tasks
from benchmarks.references.program import Twin


@dataclasses.dataclass
class Row:
    """One program: processor seconds of each round by contender."""

    twin: Twin
    seconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Contenders that took no part, with the reason."""

    def median(self, contender: str) -> float | None:
        """Seconds; None if it took no part."""
        return median(self.seconds[contender]) if contender in self.seconds else None

    def ratio(self, mine: str, baseline: str) -> float | None:
        """The median of the ratios of each round; None where one of them took no part."""
        own, others = self.seconds.get(mine, []), self.seconds.get(baseline, [])
        pairs = zip(own, others, strict=False)  # slow contenders take part in few rounds
        ratios = [a / b for a, b in pairs if b]
        return median(ratios) if ratios else None

    def over_gcc(self, contender: str) -> float | None:
        """The ratio to gcc at the same size."""
        baseline = (
            "gcc" if contender in COMPILED or "gcc" + SMALL not in self.seconds else "gcc" + SMALL
        )
        return self.ratio(contender, baseline)

    def as_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "seconds": self.seconds,
            "missing": self.missing,
            "over_gcc": {name: self.over_gcc(name) for name in self.seconds if "gcc" not in name},
        }


def measure(
    twins: Sequence[Twin], rounds: int, is_tiny: bool, progress: Callable[[str], None]
) -> list[Row]:
    """A row for each program. Raises BenchmarkError if the contenders' results differ."""
    return [_row(twin, rounds, is_tiny, progress) for twin in twins]


def _row(twin: Twin, rounds: int, is_tiny: bool, progress: Callable[[str], None]) -> Row:
    row = Row(twin)
    ready: dict[str, Callable[[], Outcome]] = {}
    sizes = twin.tiny if is_tiny else twin.sizes
    for name, make in tasks(twin, sizes).items():
        try:
            ready[name] = make()
        except MissingError as error:
            row.missing[name] = str(error)
            progress(f"{twin.name}: {name} takes no part: {error}")
    results: dict[int, int | float] = {}
    for name, (seconds, result) in interleave(ready, rounds, AT_MOST):
        row.seconds.setdefault(name, []).append(seconds)
        size = sizes.compiled if name in COMPILED else sizes.interpreted
        first = results.setdefault(size, result)
        # gcc may contract a product and a sum, and then rounds once.
        if not math.isclose(first, result, rel_tol=1e-9 if twin.is_float else 0.0):
            raise BenchmarkError(f"{twin.name}: {name} gave {result!r}, another {first!r}")
    shown = ", ".join(f"{name} {row.median(name):.4f} s" for name in row.seconds)
    progress(f"{twin.name}: {shown}")
    return row
