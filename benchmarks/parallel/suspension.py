# SPDX-License-Identifier: Apache-2.0
"""The cost of suspended items: a million items of which 1 % stop in the middle, over the same items
when none does.

An exit is what the items stop for: a guard that fails, an object that they make, a recursion, a
line that they print. Runs with and without are interleaved, in one process, on one instance, after
runs that compile.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
from rich.console import Console
from rich.table import Table

import ferryvm
from benchmarks.measure import median
from benchmarks.peers.ferry import engine
from benchmarks.peers.peer import MissingError
from benchmarks.report import Target
from ferryvm.engine import Engine
from ferryvm.engine.journal import Placement
from ferryvm.engine.mixed import Mixed
from ferryvm.policy.model import build_ours

ITEMS = 1_000_000
MOST = 3.0
"""The goal: a run with suspended items over one without, at most; on a GPU, too."""

EVERY = 100
"""One item of so many is suspended."""

STEPS, GUARD_STEPS = 32, 256
"""Iterations of an item's loop: where guards fail for more than a tenth of the work, the launch is
compiled again without them."""

SETTLING = 3
"""Runs of each kind before the first one that counts."""

PROGRAM = """
(define-struct pair (first i64) (second i64))

(define (power x n) (if (= n 0) 1 (* x (power x (- n 1)))))

(define (body (item i64) (every (array i64)) (to (array f64)))
  (define x (* 0.000001 (f64 item)))
  (define y x)
  (define i 0)
  (while (< i {steps})
    (set! y (+ x (* y (- 1 y))))
    (set! i (+ i 1)))
  (array-set! to item y)
  (if (= (% item (array-ref every 0)) (- (array-ref every 0) 1))
    {exit}))

(define (work (n i64) (every (array i64)) (to (array f64)))
  (for-each-item n (body every to)))
"""

_AGAIN = "(array-set! to item (+ y (f64 {value})))"

GUARD, OBJECT, RECURSION, PRINT = EXITS = ("guard", "object", "recursion", "print")
"""The exits for which items stop. A backend that can do that where the item runs suspends none."""

_TEXTS = {
    GUARD: _AGAIN.format(value="(% item 7)"),
    OBJECT: _AGAIN.format(
        value="(begin (define p (make-pair item 3)) (+ (pair-first p) (pair-second p)))"
    ),
    RECURSION: _AGAIN.format(value="(power 3 50)"),
    PRINT: "(print! item)",
}


@dataclasses.dataclass(frozen=True)
class Suspension:
    """Figures of one exit."""

    without: float
    """Seconds of a run without suspended items."""
    with_: float
    """Seconds of a run with them."""
    suspended: int
    """Items that were suspended in a run, of those that stopped for the exit."""
    stopped: int

    @property
    def ratio(self) -> float:
        """The run with suspended items over the one without."""
        return self.with_ / self.without

    @property
    def each(self) -> float:
        """Seconds that each item takes more that stops."""
        return (self.with_ - self.without) / self.stopped

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        return {**dataclasses.asdict(self), "ratio": self.ratio, "each": self.each}


@dataclasses.dataclass
class Suspensions:
    """Figures of several backends."""

    figures: dict[str, dict[str, Suspension]] = dataclasses.field(default_factory=dict)
    """By backend and exit."""
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    """The reasons that backends have none."""

    def targets(self) -> list[Target]:
        """The goals: one for each backend, held to its worst exit."""
        found = []
        for backend, figures in self.figures.items():
            worst = _worst(figures)
            ratio, shown = (None, "") if worst is None else (figures[worst].ratio, f" ({worst})")
            name = f"{backend}: 1 % of the items suspended, worst exit{shown}"
            found.append(Target(name, ratio, MOST, is_upper=True))
        return found

    def show(self, console: Console) -> None:
        """Print a table for each backend, and the goals."""
        columns = ("exit", "suspended", "without, ms", "with, ms", "ratio", "us an item")
        for backend, figures in self.figures.items():
            table = Table(*columns, title=f"{backend}: 1 % of {ITEMS:,} items suspended")
            for name, one in figures.items():
                times = (f"{1e3 * one.without:.2f}", f"{1e3 * one.with_:.2f}", f"{one.ratio:.2f}")
                table.add_row(name, f"{one.suspended:,}", *times, f"{1e6 * one.each:.2f}")
            console.print(table)
        for backend, reason in self.missing.items():
            console.print(f"suspension by {backend} is missing: {reason}")
        for target in self.targets():
            console.print(str(target), highlight=False)

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON."""
        figures = {
            backend: {name: one.as_json() for name, one in found.items()}
            for backend, found in self.figures.items()
        }
        return {"backends": figures, "targets": [target.as_json() for target in self.targets()]}


def measure(
    backends: Sequence[str],
    rounds: int,
    progress: Callable[[str], None],
    items: int = ITEMS,
    clock: Callable[[], float] = time.perf_counter,
) -> Suspensions:
    """The figures of backends: medians of the rounds."""
    found = Suspensions()
    for backend in backends:
        progress(f"suspended items: {backend}")
        try:
            engine(backend)
        except MissingError as error:
            found.missing[backend] = str(error)
            continue
        found.figures[backend] = {
            name: _measured(backend, name, rounds, items, clock) for name in EXITS
        }
    return found


def _measured(
    backend: str, name: str, rounds: int, items: int, clock: Callable[[], float]
) -> Suspension:
    printed: list[bytes] = []
    placements: list[Placement] = []
    on = _engine(backend, printed.append, is_guarded=name == GUARD)
    assert isinstance(on.backend, Mixed)
    on.backend.listeners = (lambda _event, placement, _more: placements.append(placement),)
    steps = GUARD_STEPS if name == GUARD else STEPS
    text = PROGRAM.replace("{exit}", _TEXTS[name]).replace("{steps}", str(steps))
    work = on.instantiate(ferryvm.compile(text, name)).exports["work"]
    to, chosen = numpy.zeros(items), numpy.zeros(1, "i8")

    def spent(every: int) -> float:
        printed.clear()
        chosen[0] = every
        began = clock()
        work(items, chosen, to)
        return clock() - began

    def suspended() -> int:
        launches = {id(one): one for placement in placements for one in placement.launches}
        return sum(one.suspended for one in launches.values())

    for _ in range(SETTLING):
        spent(2 * items), spent(EVERY)

    def steady(every: int) -> float:
        spent(every)  # what the other kind has changed on the host may have to be sent to a device
        return spent(every)

    pairs = [(steady(2 * items), steady(EVERY)) for _ in range(rounds)]
    before = suspended()
    spent(EVERY)
    return Suspension(
        median([first for first, _ in pairs]),
        median([second for _, second in pairs]),
        suspended() - before,
        items // EVERY,
    )


def _engine(backend: str, output: Callable[[bytes], object], is_guarded: bool) -> Engine:
    """An engine whose launches run on a backend; with `is_guarded` they leave out what their first
    items have not done."""
    choice: dict[str, Any] = {"name": backend, "threads": 0, "background": False, "required": True}
    if is_guarded:
        choice |= {"speculate": True, "observe_items": 50, "guard_share": 0.05}
    rule = {"when": {"kind": "launch"}, "backends": [choice]}
    threshold = 20 if is_guarded else 1
    policy = build_ours({"profile": {"loop_threshold": threshold}, "rule": [rule]})
    return Engine(policy=policy, output=output)


def _worst(figures: Mapping[str, Suspension]) -> str | None:
    """The exit with the largest ratio, of those for which items were suspended; lines that are
    printed do not count, since each is a call of Python. None if no item was suspended."""
    known = [name for name in figures if name != PRINT and figures[name].suspended]
    return max(known, key=lambda name: figures[name].ratio, default=None)
