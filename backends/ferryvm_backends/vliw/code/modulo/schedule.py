# SPDX-License-Identifier: Apache-2.0
"""Iterative modulo scheduling: the cycle and the unit of each operation of an iteration.

(Rau 1994, section 3.) Operations are scheduled one after another. One that finds no free slot
evicts others, which are scheduled again; when the budget of steps is spent, the interval is
increased. These priority orders are tried:

- in large iterations whole expression trees first (`expression_tree`), which is quick where it
  succeeds, and the only order that finds cycles for long sums where all are taken.
- the longest path first, then its predecessors by increasing slack, each close to its successor
  (Llosa et al.: Swing Modulo Scheduling, PACT 1996). Live ranges are short, which suits files with few
  ports.
- program order, each operation as late after the start as its position says. Few values are live at
  a time, which suits single files with few registers.
- the longest path to the end of the iteration first, as early as possible (Rau's height).

Where nearly all slots are taken, the second order is tried with many distances between operations.
A schedule whose register pressure exceeds a file is rejected; of several, the one with the lowest
pressure is selected.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.modulo.attempt import (
    IterationSchedule,
    LoopSearch,
    Order,
    ScheduleAttempt,
)
from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration
from ferryvm_backends.vliw.code.modulo.initiation_interval import DependenceEdges, edges
from ferryvm_backends.vliw.code.modulo.partial_schedule import Operand
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.machine.model import Machine


def schedule_iteration(
    loop: Iteration,
    machine: Machine,
    least: int,
    most: int,
    unbypassed: frozenset[Operand],
    failures: Counter[str],
    budget: PlacementBudget | None = None,
) -> IterationSchedule | None:
    """A schedule with the shortest interval that is found from `least` to `most` cycles.

    `failures`: counts schedules that a file has too few registers for; `budget`: limits the search;
    if omitted, nothing does.
    """
    budget = PlacementBudget(sys.maxsize) if budget is None else budget
    return _IntervalSearch(loop, machine, unbypassed, failures, budget).run(least, most)


@dataclasses.dataclass
class PlacementBudget:
    """The placements of operations that searches may make, and have made. A search that finds
    none left ends with the best schedule that it has."""

    most: int
    spent: int = 0

    @property
    def is_spent(self) -> bool:
        """True if no more are to be made."""
        return self.spent >= self.most


Orders = Callable[[Iteration, DependenceEdges, int], Iterator[Order]]


class _IntervalSearch:
    """The search for the shortest interval that there is a schedule of.

    Intervals grow by steps that double, until there is a schedule; shorter ones are looked for by
    bisection then.
    """

    def __init__(
        self,
        loop: Iteration,
        machine: Machine,
        unbypassed: frozenset[Operand],
        failures: Counter[str],
        budget: PlacementBudget,
    ) -> None:
        self.loop, self.machine = loop, machine
        self.unbypassed, self.failures, self.budget = unbypassed, failures, budget
        self.graph, self.search = edges(loop, machine), LoopSearch(loop, machine)
        self.steps = 0
        """The number of times that operations may have been placed."""
        self.hopeless: set[int] = set()
        """Intervals of which no attempt came close to a schedule."""
        self.resumed: dict[tuple[Orders, int], int] = {}
        """By number the orders that were far from a schedule, with the interval from which on they
        are tried again."""

    def run(self, least: int, most: int) -> IterationSchedule | None:
        small = step = max(1, least // tuning.INTERVAL_STEP)
        failed, interval = least - small, least
        while (best := self._find(interval, orders)) is None:
            if interval >= most or self.budget.is_spent:
                return None
            failed, interval, step = interval, min(interval + step, most), 2 * step
        self.steps = 0  # the first one is found soon, since steps double
        while best.interval - failed > small and not self._is_long():
            middle = (failed + best.interval) // 2
            better = self._find(middle, orders)
            if better is None:
                failed = middle
            else:
                best = better
        for interval in range(least, best.interval):
            is_full = len(self.loop.nodes) > tuning.FULL_SLOTS * self.machine.slots * interval
            if not is_full or interval in self.hopeless or self._is_long():
                continue
            better = self._find(interval, _spaced)
            if better is not None:
                return better
        return best

    def _is_long(self) -> bool:
        """True if no shorter schedules are to be looked for."""
        return self.steps > tuning.MOST_STEPS or self.budget.is_spent

    def _find(self, interval: int, among: Orders) -> IterationSchedule | None:
        """Of the schedules of an interval that some orders give, the one that needs the smallest
        part of a file's registers."""
        best: tuple[float, IterationSchedule] | None = None
        count, is_close = len(self.loop.nodes), False
        attempt: ScheduleAttempt | None = None
        for number, order in enumerate(among(self.loop, self.graph, interval)):
            if self.budget.is_spent:
                break
            if interval < self.resumed.get((among, number), 0):
                continue  # it was far from a schedule of nearly as long an interval
            self.steps += tuning.STEPS_AN_OPERATION * count + tuning.STEPS_BESIDES
            if attempt is not None and not attempt.was_late and attempt.order.ranks is order.ranks:
                continue  # the result would be the same
            attempt = ScheduleAttempt(self.search, interval, order, self.unbypassed)
            found = attempt.run()
            self.budget.spent += attempt.placements
            is_close |= attempt.is_close
            if found is None:
                if attempt.fewest > tuning.FAR * count:
                    self.resumed[among, number] = int(tuning.FAR_LONGER * interval)
                continue
            part, file = Lifetimes(found.loop, self.machine, found.partial).highest()
            if part > 1:
                self.failures[file] += 1
            elif best is None or part < best[0]:
                best = part, found
            if part <= tuning.ROOMY:
                break
        if not is_close:
            self.hopeless.add(interval)
        return None if best is None else best[1]


def orders(loop: Iteration, graph: DependenceEdges, interval: int) -> Iterator[Order]:
    """Orders to place operations in, the most promising first."""
    count = len(loop.nodes)
    heights, depths = graph.heights(count, interval), graph.depths(count, interval)
    if heights is None or depths is None:
        return
    slack = (heights + depths).max() - heights - depths
    numbers = range(count)
    swing = sorted(numbers, key=lambda n: (slack[n], -depths[n] if slack[n] else depths[n], n))
    ranks, earliest = _ranks(swing), dict(enumerate(depths.tolist()))
    if count >= tuning.TREES:
        yield Order(_ranks(swing), earliest, is_late=True, is_by_trees=True)
    yield Order(ranks, earliest, is_late=True)
    yield Order(ranks, earliest, is_late=False)
    yield _in_turn(depths, interval, 10)
    highest = sorted(numbers, key=lambda n: (-heights[n], n))
    yield Order(_ranks(highest), dict.fromkeys(numbers, 0), is_late=False)


def _spaced(loop: Iteration, graph: DependenceEdges, interval: int) -> Iterator[Order]:
    """The program's order with many distances between operations. Where nearly all slots are taken
    it is a matter of luck whether there is one free for each in time."""
    depths = graph.depths(len(loop.nodes), interval)
    if depths is not None:
        for tenths in range(6, 26):
            yield _in_turn(depths, interval, tenths)


def _in_turn(depths: npt.NDArray[np.int64], interval: int, tenths: int) -> Order:
    """The program's order, from the beginning of an iteration over so many tenths of an
    interval."""
    count = len(depths)
    numbers = range(count)
    earliest = {n: max(int(depths[n]), n * interval * tenths // (10 * count)) for n in numbers}
    return Order(_ranks(numbers), earliest, is_late=False)


def _ranks(order: Sequence[int]) -> dict[int, int]:
    return {number: rank for rank, number in enumerate(order)}
