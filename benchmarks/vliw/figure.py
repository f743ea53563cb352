# SPDX-License-Identifier: Apache-2.0
"""What one program took on one machine."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks.measure import median
from ferryvm_backends.vliw.code.program import LoopSummary

NONE = "no loop reported"


@dataclasses.dataclass(frozen=True)
class LoopFigure:
    """A loop that is one block, of code that was run."""

    loop: LoopSummary
    function: str
    place: str
    """Where its text is."""
    cycles: int
    """Of all its bundles, in one run of the program."""

    @property
    def bound(self) -> int:
        """Cycles of a pass, at least."""
        return max(self.loop.resource_bound, self.loop.recurrence_bound)

    @property
    def ratio(self) -> float:
        """Of the initiation interval to the bound."""
        return self.loop.interval / self.bound if self.bound else float(self.loop.interval)

    def as_json(self) -> dict[str, Any]:
        """The loop as JSON."""
        return {
            **dataclasses.asdict(self.loop),
            "function": self.function,
            "place": self.place,
            "cycles": self.cycles,
            "interval": self.loop.interval,
            "bound": self.bound,
            "ratio": self.ratio,
        }


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Calls of a program's kernel, where nothing else is on the machine."""

    cycles: int
    """Of all calls."""
    calls: int

    @property
    def each(self) -> float:
        """Cycles of a call, the mean."""
        return self.cycles / self.calls


@dataclasses.dataclass(frozen=True)
class Building:
    """What compiling a whole program took."""

    bundles: int
    schedule_seconds: float
    """To bundles."""
    simulator_seconds: float
    """From bundles to what simulates them."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.schedule_seconds + self.simulator_seconds


@dataclasses.dataclass
class Figure:
    """What one program took on one machine, all of it there, and its kernel alone."""

    result: int | float
    kernel: Kernel
    building: Building
    cycles: int
    """Of a run of the whole program."""
    transfer_cycles: int
    """Of copying memory there and back, which `cycles` do not hold."""
    operations: int
    """Issued in these cycles."""
    seconds: list[float] = dataclasses.field(default_factory=list)
    """Of simulating a run, each round; copying is in them, compiling not."""
    loops: list[LoopFigure] = dataclasses.field(default_factory=list)
    """Those that were run."""

    @property
    def speed(self) -> float:
        """Simulated cycles in a second, the median of the rounds."""
        return self.cycles / median(self.seconds)

    def loops_of(self, function: str) -> list[LoopFigure]:
        """Those in a function."""
        return [loop for loop in self.loops if loop.function == function]

    def as_json(self) -> dict[str, Any]:
        """The figure as JSON."""
        return {
            "result": self.result,
            "kernel": {**dataclasses.asdict(self.kernel), "cycles_of_a_call": self.kernel.each},
            "building": {**dataclasses.asdict(self.building), "seconds": self.building.seconds},
            "cycles": self.cycles,
            "transfer_cycles": self.transfer_cycles,
            "operations": self.operations,
            "seconds": self.seconds,
            "cycles_per_second": self.speed,
            "loops": [loop.as_json() for loop in self.loops],
        }
