# SPDX-License-Identifier: Apache-2.0
"""The placement that the default policy chooses for launches, against each placement by itself;
launches of programs in Skiff, or of maps of Python functions.

A placement is a policy that runs all items of launches in one place. All are warm: their code is
compiled, and the default policy has had some runs to find its place. The least time of the rounds
counts, since other work of the machine only adds to one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import interleave, median
from benchmarks.parallel.calibration import calibrated_devices
from benchmarks.parallel.contender import LLVM, OPENCL, PLACED, launch_task, launching_policy
from benchmarks.parallel.goal import EIGHT, MOST_PLACED
from benchmarks.parallel.program import BY_NAME, Twin, Work
from benchmarks.parallel.speed import result_bits
from benchmarks.parallel.task import Task
from benchmarks.peers.ferry import MIXED, engine
from benchmarks.peers.peer import MissingError
from benchmarks.python.mapping import map_task
from benchmarks.report import Target
from ferryvm.backend import BackendError, Compiler
from ferryvm.engine import Engine
from ferryvm.engine.journal import Placement
from ferryvm.engine.launch_place import calibration
from ferryvm.engine.launch_place.place import PlaceState
from ferryvm.engine.mixed import Mixed
from ferryvm.engine.transition import SiteState
from ferryvm.errors import FerryError
from ferryvm.item_range import PlaceActivity
from ferryvm.policy import Policy
from ferryvm.python.call.default_policy import function_engine
from ferryvm.registry import Registry

IN_ORDER = "in order"
SIZES = ("full", "small", "tiny")

SETTLING = 2.0
"""Seconds of runs under the default policy before the first one that counts, at least."""
SETTLING_RUNS = 10
"""Runs, likewise; more while code for a place is compiled."""
MOST_SETTLING = 30.0
"""Seconds of such runs at most."""
_COMPILING = {SiteState.QUEUED, SiteState.DECIDING, SiteState.OBSERVING, SiteState.COMPILING}
_LEAST_SECONDS = 5e-3
"""Least time of a measurement; a shorter work is done several times, of which the median counts."""


@dataclasses.dataclass
class PlacementRow:
    """One program at one size."""

    twin: Twin
    size: str
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """The least of each placement, and of the default policy."""
    chosen: str = ""
    """The place of most items under the default policy."""
    faults: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def fastest(self) -> str | None:
        """The fastest placement."""
        alone = {name: one for name, one in self.seconds.items() if name != PLACED}
        return min(alone, key=alone.__getitem__) if alone else None

    @property
    def ratio(self) -> float | None:
        """The default policy's time over that of the fastest placement."""
        fastest = self.fastest
        if fastest is None or PLACED not in self.seconds:
            return None
        return self.seconds[PLACED] / self.seconds[fastest]

    def as_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "program": self.twin.name,
            "size": self.size,
            "items": self.twin.size(self.size),
            "seconds": self.seconds,
            "chosen": self.chosen,
            "fastest": self.fastest,
            "ratio": self.ratio,
            "faults": self.faults,
        }


@dataclasses.dataclass
class PlacementTable:
    """All rows."""

    rows: list[PlacementRow]
    calibrated: dict[str, str]
    """Devices, each with `calibrated` or the reason why not."""

    def target(self) -> Target:
        """The goal for the worst row."""
        ratios = {f"{row.twin.name}, {row.size}": row.ratio for row in self.rows}
        known = {name: ratio for name, ratio in ratios.items() if ratio is not None}
        worst = max(known, key=lambda name: known[name]) if known else None
        shown = "" if worst is None else f" ({worst})"
        most = None if worst is None else known[worst]
        name = f"default policy over the fastest placement, worst of {len(known)}{shown}"
        return Target(name, most, MOST_PLACED, is_upper=True)

    def faults(self) -> list[str]:
        """Wrong results and failures."""
        return [
            f"{row.twin.name}, {row.size}: {name}: {fault}"
            for row in self.rows
            for name, fault in row.faults.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """The table as JSON."""
        return {
            "calibrated": self.calibrated,
            "rows": [row.as_json() for row in self.rows],
            "targets": [self.target().as_json()],
        }

    def show(self, console: Console) -> None:
        """Print the table and the goal."""
        table = Table(
            "program", "size", "chosen place", "its time, ms", "fastest placement", "its time, ms",
            "ratio", title="placement by the default policy; the least times",
        )  # fmt: skip
        for row in self.rows:
            fastest, ratio = row.fastest, row.ratio
            if fastest is None or ratio is None:
                continue
            mine, best = row.seconds[PLACED], row.seconds[fastest]
            cells = (row.chosen, f"{mine * 1e3:.4g}", fastest, f"{best * 1e3:.4g}", f"{ratio:.2f}")
            table.add_row(row.twin.name, row.size, *cells)
        console.print(table)
        for device, state in self.calibrated.items():
            console.print(f"{device}: {state}", highlight=False)
        for fault in self.faults():
            console.print(f"FAULT {fault}", markup=False)
        console.print(str(self.target()), highlight=False)


class _Watched:
    """The default policy on one work, and the places of its launches."""

    def __init__(self, on: Engine, start: Callable[[], Task]) -> None:
        """`on`: the engine with that policy; `start`: has it run the work."""
        assert isinstance(on.backend, Mixed)
        self._found: list[Placement] = []
        on.backend.listeners = (*on.backend.listeners, self._note)
        self.task = start()
        began, runs = time.perf_counter(), 0
        while True:
            self.task.run()
            runs, taken = runs + 1, time.perf_counter() - began
            is_settled = taken > SETTLING and runs >= SETTLING_RUNS and not self._is_compiling()
            if is_settled or taken > MOST_SETTLING:
                break
            time.sleep(0.02)  # code is compiled in the background meanwhile
        self._before = self._items()

    def _is_compiling(self) -> bool:
        """True if code of a launch, or of a place, is being compiled."""
        activities = [launch for one in self._found for launch in one.launches]
        states = {place.state for one in activities for place in one.places}
        return PlaceState.COMPILING.value in states or any(
            one.state in _COMPILING for one in self._found
        )

    def _note(self, _event: object, placement: Placement, _detail: object) -> None:
        if placement not in self._found:
            self._found.append(placement)

    def _items(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for launch in [launch for one in self._found for launch in one.launches]:
            places = launch.places or (PlaceActivity(launch.where, items=launch.items),)
            for place in places:
                found[place.name] = found.get(place.name, 0) + place.items
        return found

    def chosen(self) -> str:
        """The place of most items since it was ready; code around a launch runs items in order."""
        gained = {name: n - self._before.get(name, 0) for name, n in self._items().items()}
        best = max(gained, key=gained.__getitem__, default=IN_ORDER)
        return best if gained.get(best) else IN_ORDER


def measure(
    programs: Sequence[str],
    sizes: Sequence[str],
    rounds: int,
    progress: Callable[[str], None],
    maps: bool = False,
) -> PlacementTable:
    """The table. Devices that are not calibrated are calibrated first. `maps`: of maps of Python
    functions."""
    calibrated = dict(calibrated_devices(progress))
    twins = [BY_NAME[name] for name in programs or EIGHT]
    rows = [_row(twin, size, rounds, progress, maps) for twin in twins for size in sizes]
    return PlacementTable(rows, calibrated)


def _placements() -> Mapping[str, Policy]:
    """Policies that run all items of launches in one place."""
    found = {
        IN_ORDER: launching_policy(LLVM, 1, lanes=1),
        f"{LLVM}, all cores": launching_policy(LLVM, 0),
    }
    try:
        compiler = Registry().get(OPENCL)
        assert isinstance(compiler, Compiler)
        for device in compiler.device_names():
            title = calibration.title(OPENCL, device)
            found[title] = launching_policy(OPENCL, 1, device=device)
    except BackendError:
        pass
    return found


def _task(twin: Twin, work: Work, policy: Policy, maps: bool) -> Task:
    """The work under a policy."""
    if maps:
        return map_task(twin, work, ferryvm.function(policy=policy))
    return launch_task(twin, work, Engine(policy=policy))


def _watched(twin: Twin, work: Work, maps: bool) -> _Watched:
    if maps:
        return _Watched(function_engine(None, None), lambda: map_task(twin, work))
    on = engine(MIXED)
    return _Watched(on, lambda: launch_task(twin, work, on))


def _row(
    twin: Twin, size: str, rounds: int, progress: Callable[[str], None], maps: bool
) -> PlacementRow:
    row, ready = PlacementRow(twin, size), dict[str, Callable[[], float]]()
    original = twin.make(twin.size(size))
    expected: list[bytes] | None = None
    watched: _Watched | None = None
    for name, policy in {**_placements(), PLACED: None}.items():
        work = original.fresh()
        try:
            if policy is None:
                watched = _watched(twin, work, maps)
                task = watched.task
            else:
                task = _task(twin, work, policy, maps)
            bits = result_bits(task, work, original)
        except (BenchmarkError, FerryError, MissingError) as error:
            row.faults[name] = str(error)
            continue
        expected = expected or bits
        if bits != expected:
            row.faults[name] = "its results are not those of the first one"
            continue
        ready[name] = _timed(task, work, original)
    for name, seconds in interleave(ready, rounds, {}):
        row.seconds[name] = min(seconds, row.seconds.get(name, seconds))
    row.chosen = "" if watched is None else watched.chosen()
    ratio = "no ratio" if row.ratio is None else f"{row.ratio:.2f}"
    shown = ", ".join(f"{name} {1e3 * one:.4g} ms" for name, one in row.seconds.items())
    progress(f"{twin.name}, {size}: {row.chosen}: {ratio}; {shown}")
    return row


def _timed(task: Task, work: Work, original: Work) -> Callable[[], float]:
    times = max(int(_LEAST_SECONDS / _seconds(task.run)), 1)

    def run() -> float:
        work.restore(original)
        task.send()
        return median([_seconds(task.run) for _ in range(times)])

    return run


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
