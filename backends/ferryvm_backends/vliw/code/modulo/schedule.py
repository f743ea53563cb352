# SPDX-License-Identifier: Apache-2.0
"""Iterative modulo scheduling: the cycle and the unit of each operation of an iteration.

(Rau 1994, section 3.) Operations are scheduled one after another. One that finds no free slot
evicts others, which are scheduled again; when the budget of steps is spent, the interval is
increased. Three priority orders are tried:

- the longest path first, then its predecessors by increasing slack, each close to its successor
  (Llosa et al.: Swing Modulo Scheduling, PACT 1996). Values do not wait, which suits files with few
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
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ferryvm_backends.vliw.code.dependence import DependenceKind, distance
from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration
from ferryvm_backends.vliw.code.modulo.initiation_interval import DependenceEdges, edges, latency
from ferryvm_backends.vliw.code.modulo.partial_schedule import LoopDemand, Operand, PartialSchedule
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.machine.model import Machine

_STEP = 32
"""Part of the shortest interval by which the next one is longer, where that is more than a cycle;
then it is twice as much each time, and when a schedule was found shorter ones are looked for
between the two."""
_PATIENCE = 2
"""Times that an operation may be placed, on average."""
_MORE = 200
"""How often operations may be placed besides: there is time for that with few."""
_LOOKED_AT = 8
"""Cycles in which an operation could be, of which the best is taken."""
_ROOMY = 0.5
"""Part of a file's registers that a schedule may need for others, which may need fewer, not to be
looked for."""
_FULL = 0.9
"""Part of the slots that operations take where many more orders are tried."""
_ALL = 20_000
"""How often operations may be placed while it is made shorter: some seconds."""


@dataclasses.dataclass
class IterationSchedule:
    """An iteration whose operations have cycles from 0 on."""

    loop: Iteration
    interval: int
    partial: PartialSchedule
    """All of it: none is left."""


def schedule_iteration(
    loop: Iteration,
    machine: Machine,
    least: int,
    most: int,
    unbypassed: frozenset[Operand],
    failures: Counter[str],
) -> IterationSchedule | None:
    """A schedule with the shortest interval that is found from `least` to `most` cycles.

    `failures`: counts schedules that a file has too few registers for.
    """
    graph = edges(loop, machine)
    search = LoopSearch(loop, machine)
    tries = 0

    def find(
        interval: int, among: Callable[[Iteration, DependenceEdges, int], Iterator[Order]] = orders
    ) -> IterationSchedule | None:
        nonlocal tries
        best: tuple[float, IterationSchedule] | None = None
        for order, depths, is_late in among(loop, graph, interval):
            tries += _PATIENCE * len(loop.nodes) + _MORE
            found = ScheduleAttempt(search, interval, order, depths, is_late, unbypassed).run()
            if found is None:
                continue
            part, file = Lifetimes(found.loop, machine, found.partial).highest()
            if part > 1:
                failures[file] += 1
            elif best is None or part < best[0]:
                best = part, found
            if part <= _ROOMY:
                break
        return None if best is None else best[1]

    small = step = max(1, least // _STEP)
    failed, interval = least - small, least
    while (best := find(interval)) is None:
        if interval >= most:
            return None
        failed, interval, step = interval, min(interval + step, most), 2 * step
    tries = 0  # looking for the first one ends soon, since steps double
    while best.interval - failed > small and tries <= _ALL:
        middle = (failed + best.interval) // 2
        better = find(middle)
        if better is None:
            failed = middle
        else:
            best = better
    for interval in range(least, best.interval):
        is_full = len(loop.nodes) > _FULL * machine.slots * interval
        if is_full and tries <= _ALL and (better := find(interval, _spaced)) is not None:
            return better
    return best


Order = tuple[dict[int, int], dict[int, int], bool]
"""Ranks of operations, the cycles before which they are not placed, and whether one whose result is
waited for comes as late as it may."""


def orders(loop: Iteration, graph: DependenceEdges, interval: int) -> Iterator[Order]:
    """Orders to place operations in, the most promising first."""
    count = len(loop.nodes)
    heights, depths = graph.heights(count, interval), graph.depths(count, interval)
    if heights is None or depths is None:
        return
    slack = (heights + depths).max() - heights - depths
    numbers = range(count)
    swing = sorted(numbers, key=lambda n: (slack[n], -depths[n] if slack[n] else depths[n], n))
    yield _ranks(swing), dict(enumerate(depths.tolist())), True
    yield _ranks(swing), dict(enumerate(depths.tolist())), False
    yield _in_turn(depths, interval, 10)
    highest = sorted(numbers, key=lambda n: (-heights[n], n))
    yield _ranks(highest), dict.fromkeys(numbers, 0), False


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
    begins = {n: max(int(depths[n]), n * interval * tenths // (10 * count)) for n in numbers}
    return _ranks(numbers), begins, False


def _ranks(order: Sequence[int]) -> dict[int, int]:
    return {number: rank for rank, number in enumerate(order)}


class _Delay(NamedTuple):
    """One end of a dependence: the cycles between the two issues, at least."""

    other: int
    """The number of the operation at the other end."""
    latencies: int
    """How often the latency of the first one counts: once, or not at all."""
    cycles: int
    distance: int
    """How many iterations earlier the first one is."""
    is_awaited: bool
    """Whether the second one reads the first one's result, of its own iteration."""


class LoopSearch:
    """What all attempts at one loop share."""

    def __init__(self, loop: Iteration, machine: Machine) -> None:
        self.loop, self.machine, self.demand = loop, machine, LoopDemand(loop, machine)
        self.into: list[list[_Delay]] = [[] for _ in loop.nodes]
        self.out: list[list[_Delay]] = [[] for _ in loop.nodes]
        self.fastest = [latency(node.operation, machine) for node in loop.nodes]
        for wait in loop.waits:
            # No dependence of a loop has to do with the latency of its second operation.
            cycles = distance(wait.reason, 0, 0, machine)
            latencies = distance(wait.reason, 1, 0, machine) - cycles
            is_awaited = wait.reason is DependenceKind.VALUE and not wait.distance
            more = latencies, cycles, wait.distance, is_awaited
            self.into[wait.second].append(_Delay(wait.first, *more))
            self.out[wait.first].append(_Delay(wait.second, *more))


class ScheduleAttempt:
    """With one interval."""

    def __init__(
        self,
        search: LoopSearch,
        interval: int,
        order: Mapping[int, int],
        depths: Mapping[int, int],
        is_late: bool,
        unbypassed: frozenset[Operand],
    ) -> None:
        self.search, self.loop, self.interval = search, search.loop, interval
        self.order, self.depths, self.is_late = order, depths, is_late
        self.partial = PartialSchedule(search.loop, search.demand, interval, unbypassed)
        self.last: dict[int, int] = {}
        """Where each operation was placed last."""

    def run(self) -> IterationSchedule | None:
        left = [(self.order[node.number], node.number) for node in self.loop.nodes]
        heapq.heapify(left)
        for _ in range(_PATIENCE * len(left) + _MORE):
            if not left:
                return self._normal()
            _, number = heapq.heappop(left)
            evicted = self._place(number)
            if evicted is None:
                return None
            for each in evicted:
                heapq.heappush(left, (self.order[each], each))
        return None if left else self._normal()

    def _normal(self) -> IterationSchedule:
        """With the first operation in the first stage; cycles keep their place in the interval."""
        partial = self.partial
        first = min(slot.cycle for slot in partial.slots.values())
        shift = -(first // self.interval) * self.interval
        partial.slots = {
            number: slot._replace(cycle=slot.cycle + shift, landing=slot.landing + shift)
            for number, slot in partial.slots.items()
        }
        partial.loop = self.loop.with_bases(partial.bases)
        return IterationSchedule(partial.loop, self.interval, partial)

    def _place(self, number: int) -> set[int] | None:
        """Place an operation; those that have lost their places. None if it is not to be done."""
        slots, into, out = self.partial.slots, self.search.into, self.search.out
        earliest, latest = self._earliest(number), self._latest(number)
        is_bound = any(each.other in slots for each in into[number])
        is_awaited = self.is_late and any(
            each.is_awaited and each.other in slots for each in out[number]
        )
        if latest is not None and not is_bound:
            cycles = range(latest, latest - self.interval, -1)
        elif latest is not None and is_awaited:
            cycles = range(latest, max(earliest, latest - self.interval + 1) - 1, -1)
        else:
            end = earliest + self.interval - 1
            cycles = range(earliest, min(end, end if latest is None else latest) + 1)
        if self._on_cheapest(number, cycles):
            return set()
        return self._force(number, earliest)

    def _on_cheapest(self, number: int, cycles: range) -> bool:
        """Place an operation in one of some cycles: in the first one that takes nothing scarce, or
        the best of the first few that are possible at all."""
        partial, best, looked = self.partial, None, 0
        for cycle in cycles:
            if not self._fits(number, cycle):
                continue
            is_possible = False
            for unit in partial.units(number, cycle):
                if partial.place(number, cycle, unit):
                    cost = partial.cost(number)
                    if not cost:
                        self.last[number] = cycle
                        return True
                    if best is None or cost < best[0]:
                        best = cost, cycle, unit
                    is_possible = True
                    partial.evict(number)
            looked += is_possible
            if looked >= _LOOKED_AT:
                break
        if best is None:
            return False
        _, cycle, unit = best
        partial.place(number, cycle, unit)
        self.last[number] = cycle
        return True

    def _fits(self, number: int, cycle: int) -> bool:
        """True if the branch back is where an iteration ends."""
        if number != self.loop.repeat:
            return True
        return (cycle + self.search.machine.delay_slots + 1) % self.interval == 0

    def _on_some_unit(self, number: int, cycle: int) -> bool:
        partial = self.partial
        return any(partial.place(number, cycle, unit) for unit in partial.units(number, cycle))

    def _force(self, number: int, earliest: int) -> set[int] | None:
        cycle = earliest
        if number in self.last:
            cycle = max(cycle, self.last[number] + 1)
        while not self._fits(number, cycle):
            cycle += 1
        evicted: set[int] = set()
        while not self._on_some_unit(number, cycle):
            rival = self.partial.rival(number, cycle)
            if rival is None:
                return None
            self.partial.evict(rival)
            evicted.add(rival)
        self.last[number] = cycle
        for delay in self.search.out[number]:
            other = self.partial.slots.get(delay.other)
            if other is None or delay.other == number:
                continue
            if other.cycle < cycle + self._far(number, delay):
                self.partial.evict(delay.other)
                evicted.add(delay.other)
        return evicted

    def _far(self, first: int, delay: _Delay) -> int:
        """Cycles from the issue of one operation to the other's, of the same iteration's number."""
        slot = self.partial.slots.get(first)
        latency = self.search.fastest[first] if slot is None else slot.latency
        return delay.latencies * latency + delay.cycles - self.interval * delay.distance

    def _earliest(self, number: int) -> int:
        slots = self.partial.slots
        return max(
            (
                slots[each.other].cycle + self._far(each.other, each)
                for each in self.search.into[number]
                if each.other in slots
            ),
            default=self.depths[number],
        )

    def _latest(self, number: int) -> int | None:
        slots = self.partial.slots
        return min(
            (
                slots[each.other].cycle - self._far(number, each)
                for each in self.search.out[number]
                if each.other in slots
            ),
            default=None,
        )
