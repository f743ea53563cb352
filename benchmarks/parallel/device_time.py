# SPDX-License-Identifier: Apache-2.0
"""Kernels alone, by the device's clock: those of the backend opencl over those written by hand.

Also the bytes that a run copies to the device when the one before it has left all arrays there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks.groups.table as grouped
from benchmarks.groups.contender import Subject, written
from benchmarks.measure import geometric_mean
from benchmarks.opencl.watched import Watched
from benchmarks.parallel import contender, program, speed
from benchmarks.parallel.contender import OPENCL, OPENCL_C
from benchmarks.parallel.device_clock import DeviceClock, profiled
from benchmarks.parallel.goal import EIGHT
from benchmarks.parallel.kernel import hand_written
from benchmarks.parallel.task import Make, Task
from benchmarks.report import Target
from ferryvm.backend import BackendError

GROUPED = ("matmul", "scan-tiles", "reduction", "transpose", "dct")
"""Kernels with groups that are written by hand, too."""

BY_NAME = {name: twin for name, twin in program.BY_NAME.items() if twin.path("cl").exists()}
KNOWN = (*BY_NAME, *GROUPED)
PROGRAMS = (*(name for name in BY_NAME if name in EIGHT), *GROUPED)
"""Those that are measured by default."""

MOST_KERNELS = 1.05
"""The goal of either mean on a GPU; of kernels with groups on a processor, too."""


@dataclasses.dataclass
class DeviceTimes:
    """What was found; goals are held to full sizes."""

    rows: list[speed.Row]
    copied: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    """Bytes of arrays that the first runs of a program copied to the device, and a later one."""
    is_full: bool = True

    def _mean(self, names: Sequence[str]) -> float | None:
        ratios = [row.ratio(OPENCL, OPENCL_C) for row in self.rows if row.twin.name in names]
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if known else None

    def targets(self) -> list[Target]:
        """The goals, none for small sizes."""
        if not self.is_full:
            return []
        return [
            Target("kernels of launches over those by hand, geometric mean of the eight",
                   self._mean(EIGHT), MOST_KERNELS, is_upper=True),
            Target("kernels with groups over those by hand, geometric mean",
                   self._mean(GROUPED), MOST_KERNELS, is_upper=True),
            Target("bytes of arrays that a second run copies to the device, most",
                   max((later for _, later in self.copied.values()), default=None), 0, is_upper=True, unit=" bytes"),
        ]  # fmt: skip

    def faults(self) -> list[str]:
        """What was wrong with contenders."""
        return speed.faults(self.rows)

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {
            "programs": {row.twin.name: row.as_json() for row in self.rows},
            "ratios": {row.twin.name: row.ratio(OPENCL, OPENCL_C) for row in self.rows},
            "bytes_to_device": self.copied,
            "targets": [target.as_json() for target in self.targets()],
        }

    def show(self, console: Console) -> None:
        """Print the table and goals."""
        columns = (
            "program",
            "opencl, ms",
            "OpenCL C, ms",
            "ratio",
            "bytes to it, first and second run",
        )
        table = Table(*columns, title="kernels alone, by the device's clock")
        for row in self.rows:
            times = [_milliseconds(row.median(name)) for name in (OPENCL, OPENCL_C)]
            ratio = row.ratio(OPENCL, OPENCL_C)
            shown = ", ".join(f"{each:,}" for each in self.copied.get(row.twin.name, ()))
            table.add_row(row.twin.name, *times, "-" if ratio is None else f"{ratio:.2f}", shown)
        console.print(table)
        for row in self.rows:
            for name, reason in row.missing.items():
                console.print(f"{row.twin.name}: {name} is missing: {reason}", markup=False)
        for target in self.targets():
            console.print(str(target), highlight=False)


def measure(
    names: Sequence[str], size: str, rounds: int, progress: Callable[[str], None]
) -> DeviceTimes:
    """The figures of programs on the default device. Raises MissingError without one."""
    with profiled() as clock:
        found = DeviceTimes([], is_full=size == "full")
        for name in names:
            known = _contenders(name, clock, found.copied)
            twin: Any = _grouped(name, size) if name in GROUPED else BY_NAME[name]
            found.rows += speed.measure([twin], known, rounds, size, progress, clock.seconds)
        return found


def _grouped(name: str, size: str) -> Subject:
    sample = grouped.BY_NAME[name]
    return Subject(sample, sample.full if size == "full" else sample.tiny)


def _contenders(
    name: str, clock: DeviceClock, copied: dict[str, tuple[int, int]]
) -> Mapping[str, Make]:
    def ours(twin: Any, work: Any) -> Task:
        watched = Watched(contender.launching(OPENCL, threads=1), OPENCL)
        if name in GROUPED:
            instance = watched.engine.instantiate(twin.sample.program(twin.sizes))
            task = Task(lambda: instance.exports["work"](*work.arguments))
        else:
            task = contender.launch_task(twin, work, watched.engine, contender.device_suffix(twin))
        task.run(), task.run()  # compiled, and whole on the device
        before = _arrays(watched)
        task.run()
        copied[name] = before, _arrays(watched) - before
        return task

    def by_hand(twin: Any, work: Any) -> Task:
        if name in GROUPED:
            return written(twin, work, "", clock.note)
        return hand_written(twin, work, note=clock.note)

    return {OPENCL_C: by_hand, OPENCL: ours}


def _arrays(watched: Watched) -> int:
    """Bytes of arrays that have gone to the device. Raises BackendError if code is lost."""
    codes = [attempt.code for attempt in watched.attempts if attempt.code is not None]
    reasons = [code.lost for code in codes if code.lost] + watched.refusals()
    if reasons or not codes:
        raise BackendError("; ".join(reasons) or "nothing was compiled")
    return sum(one.to_device for code in codes for one in code.activity().arrays)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.3f}"
