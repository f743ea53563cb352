# SPDX-License-Identifier: Apache-2.0
"""Nanoseconds of one application of each function, in interleaved rounds.

Processor time of one thread. Results in lanes are compared with those of the libraries: a
difference of many units in the last place means that another function was called.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy

from benchmarks.benchmark import BenchmarkError
from benchmarks.mathematics.library import (
    LIBRARIES,
    lanes_loop,
    scalar_function,
    sum_loop,
    vector_function,
)
from benchmarks.mathematics.operand import operands
from benchmarks.mathematics.program import launch, summation
from benchmarks.mathematics.repeated import Array
from benchmarks.measure import interleave, median
from benchmarks.parallel.contender import LLVM, launching
from benchmarks.peers.ferry import engine
from benchmarks.peers.peer import MissingError
from ferryvm.errors import FerryError
from ferryvm.isa.pure_function import PureFunction

LANES, SCALAR, GLIBC = "llvm lanes", "llvm scalar", "glibc"
THREADED, LOOP = "threaded", "threaded, loop"
"""`LOOP`: the loop in which `THREADED` applies the function, without it."""

MOST_DIFFERENT = 16
"""Units in the last place by which results of libraries may differ from ours."""

Task = Callable[[], object]


@dataclasses.dataclass
class Row:
    """One function: nanoseconds of each round by contender."""

    function: PureFunction
    nanoseconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """Contenders that took no part, with the reason."""
    faults: dict[str, str] = dataclasses.field(default_factory=dict)
    """What was wrong with contenders."""

    def median(self, name: str) -> float | None:
        """Nanoseconds; None if it took no part."""
        return median(self.nanoseconds[name]) if self.nanoseconds.get(name) else None

    @property
    def best(self) -> str | None:
        """The fastest library of vectors of those with errors of at most 1 ulp."""
        names = [one.name for one in LIBRARIES if one.is_within_one]
        known = {name: value for name in names if (value := self.median(name)) is not None}
        return min(known, key=known.__getitem__) if known else None

    def lanes_ratio(self) -> float | None:
        """The median of the ratios of lanes to the best library."""
        return (
            None if self.best is None else self._ratio(self.nanoseconds.get(LANES, []), self.best)
        )

    def scalar_ratio(self) -> float | None:
        """The same of scalar code to glibc."""
        return self._ratio(self.nanoseconds.get(SCALAR, []), GLIBC)

    def threaded_ratio(self) -> float | None:
        """The same of the interpreter to glibc, without the loop around it."""
        both = zip(self.nanoseconds.get(THREADED, []), self.nanoseconds.get(LOOP, []), strict=False)
        return self._ratio([whole - loop for whole, loop in both], GLIBC)

    def _ratio(self, mine: Sequence[float], baseline: str) -> float | None:
        pairs = zip(mine, self.nanoseconds.get(baseline, []), strict=False)
        found = [own / other for own, other in pairs if other]
        return median(found) if found else None

    def as_json(self) -> dict[str, Any]:
        """The row as JSON."""
        return {
            "nanoseconds": self.nanoseconds,
            "missing": self.missing,
            "faults": self.faults,
            "best_library": self.best,
            "lanes_over_best": self.lanes_ratio(),
            "scalar_over_glibc": self.scalar_ratio(),
            "threaded_over_glibc": self.threaded_ratio(),
        }


def measure(
    functions: Sequence[PureFunction],
    folders: Sequence[Path],
    rounds: int,
    count: int,
    progress: Callable[[str], None],
) -> list[Row]:
    """A row for each function; `folders`: where libraries are looked for; `count`: results a
    round."""
    return [_row(function, folders, rounds, count, progress) for function in functions]


def _row(
    function: PureFunction,
    folders: Sequence[Path],
    rounds: int,
    count: int,
    progress: Callable[[str], None],
) -> Row:
    row, given = Row(function), operands(function, count)
    stored: dict[str, Array] = {}
    tasks: dict[str, Task] = {}

    def add(name: str, make: Callable[[], Task]) -> None:
        try:
            tasks[name] = make()
            tasks[name]()
        except MissingError as error:
            row.missing[name] = str(error)
        except (BenchmarkError, FerryError) as error:
            row.faults[name] = str(error)

    def in_lanes() -> Task:
        stored[LANES] = given.results()
        return launch(function, launching(LLVM, threads=1), given, stored[LANES])

    add(LANES, in_lanes)
    for library in LIBRARIES:

        def of_library(library: Any = library) -> Task:
            address = vector_function(library, function, folders)
            stored[library.name] = given.results()
            return lanes_loop(address, given, stored[library.name])

        add(library.name, of_library)
    add(SCALAR, lambda: summation(function, engine(LLVM), given))
    add(GLIBC, lambda: sum_loop(scalar_function(function), given))
    add(THREADED, lambda: summation(function, engine(THREADED), given))
    add(LOOP, lambda: summation(function, engine(THREADED), given, is_applied=False))
    for name, array in stored.items():
        if name in tasks and (most := _difference(array, stored[LANES])) > MOST_DIFFERENT:
            row.faults[name] = f"its results differ by {most} units in the last place"
            del tasks[name]
    timed = {name: _timed(task, given.count) for name, task in tasks.items()}
    for name, value in interleave(timed, rounds, {}):
        row.nanoseconds.setdefault(name, []).append(value)
    shown = ", ".join(f"{name} {row.median(name):.2f}" for name in row.nanoseconds)
    progress(f"{function}: {shown}")
    return row


def _difference(a: Array, b: Array) -> int:
    """The largest difference in units in the last place; numbers of one sign are numbered."""
    kind = numpy.int64 if a.itemsize == 8 else numpy.int32
    different = numpy.abs(a.view(kind).astype(object) - b.view(kind).astype(object))[: 1 << 12]
    return int(different.max())


def _timed(task: Task, count: int) -> Callable[[], float]:
    """Nanoseconds of a result, of the second of two calls: the first one translates the addresses
    of operands that all contenders share, and of its results."""

    def run() -> float:
        task()
        began = time.process_time()
        task()
        return 1e9 * (time.process_time() - began) / count

    return run
