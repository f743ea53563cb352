# SPDX-License-Identifier: Apache-2.0
"""One attempt at a modulo schedule: one interval, one priority order (Rau 1994, section 3).

Operations are scheduled one after another. One that finds no free slot evicts others, which are
scheduled again, until all have a slot, the budget of steps is spent, or too many steps have brought
no progress. An attempt by trees places exits first, then each expression tree as a whole, then the
others.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
from collections.abc import Mapping
from typing import NamedTuple

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.dependence import DependenceKind, distance
from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration
from ferryvm_backends.vliw.code.modulo.expression_tree import ExpressionTree, expression_trees
from ferryvm_backends.vliw.code.modulo.initiation_interval import latency
from ferryvm_backends.vliw.code.modulo.partial_schedule import LoopDemand, Operand, PartialSchedule
from ferryvm_backends.vliw.machine.model import Machine


@dataclasses.dataclass
class IterationSchedule:
    """An iteration whose operations have cycles from 0 on."""

    loop: Iteration
    interval: int
    partial: PartialSchedule
    """All of it: none is left."""


class Order(NamedTuple):
    """A priority order."""

    ranks: Mapping[int, int]
    depths: Mapping[int, int]
    """The cycles before which operations are not placed."""
    is_late: bool
    """True if an operation with a waiting reader is placed as late as possible."""
    is_by_trees: bool = False
    """True if whole expression trees are placed first, or the attempt ends."""


class _Delay(NamedTuple):
    """One end of a dependence: the cycles between the two issues, at least."""

    other: int
    """The number of the operation at the other end."""
    latencies: int
    """The number of times that the latency of the first one counts: 1 or 0."""
    cycles: int
    distance: int
    """The number of iterations by which the first one is earlier."""
    is_awaited: bool
    """True if the second one reads the first one's result, of its own iteration."""


class LoopSearch:
    """State shared by all attempts at one loop."""

    def __init__(self, loop: Iteration, machine: Machine) -> None:
        self.loop, self.machine, self.demand = loop, machine, LoopDemand(loop, machine)
        self.into: list[list[_Delay]] = [[] for _ in loop.nodes]
        self.out: list[list[_Delay]] = [[] for _ in loop.nodes]
        self.fastest = [latency(node.operation, machine) for node in loop.nodes]
        for edge in loop.edges:
            # No dependence of a loop has to do with the latency of its second operation.
            cycles = distance(edge.reason, 0, 0, machine)
            latencies = distance(edge.reason, 1, 0, machine) - cycles
            is_awaited = edge.reason is DependenceKind.VALUE and not edge.distance
            more = latencies, cycles, edge.distance, is_awaited
            self.into[edge.second].append(_Delay(edge.first, *more))
            self.out[edge.first].append(_Delay(edge.second, *more))

    @functools.cached_property
    def trees(self) -> list[ExpressionTree]:
        """Its expression trees, the largest first."""
        return expression_trees(self.loop, self.demand, self.fastest)


class ScheduleAttempt:
    """With one interval."""

    def __init__(
        self,
        search: LoopSearch,
        interval: int,
        order: Order,
        unbypassed: frozenset[Operand],
    ) -> None:
        self.search, self.loop, self.interval = search, search.loop, interval
        self.order = order
        self.partial = PartialSchedule(search.loop, search.demand, interval, unbypassed)
        self.last: dict[int, int] = {}
        """The cycle in which each operation was placed last."""
        self.fewest = len(search.loop.nodes)
        """The fewest operations that have been left without a slot."""
        self.placements = 0
        self.was_late = False
        """True if any was placed as late as possible, to shorten its live range."""

    def run(self) -> IterationSchedule | None:
        """The schedule, if there is one in this order."""
        return self._by_trees() if self.order.is_by_trees else self._one_by_one()

    def _one_by_one(self) -> IterationSchedule | None:
        """Place what has no place yet."""
        ranks, count = self.order.ranks, len(self.loop.nodes)
        placed = self.partial.slots
        remaining = [(ranks[number], number) for number in range(count) if number not in placed]
        heapq.heapify(remaining)
        self.fewest, stalled = min(self.fewest, len(remaining)), 0
        for _ in range(tuning.STEPS_AN_OPERATION * count + tuning.STEPS_BESIDES):
            if not remaining:
                return self._normal()
            _, number = heapq.heappop(remaining)
            self.placements += 1
            evicted = self._place(number)
            if evicted is None:
                return None
            for each in evicted:
                heapq.heappush(remaining, (ranks[each], each))
            stalled += 1
            if len(remaining) < self.fewest:
                self.fewest, stalled = len(remaining), 0
            elif stalled > self._patience():
                return None
        return None if remaining else self._normal()

    def _patience(self) -> float:
        """Steps without progress after which there will hardly be any."""
        count = len(self.loop.nodes)
        if self.is_close:
            return max(tuning.STALLED_STEPS, tuning.STALLED_PART * count)
        return max(tuning.FAR_STALLED_STEPS, tuning.FAR_STALLED_PART * count)

    @property
    def is_close(self) -> bool:
        """True if few operations were left at some time."""
        return self.fewest <= tuning.CLOSE * len(self.loop.nodes)

    def _normal(self) -> IterationSchedule:
        """The schedule with its first operation in the first stage; cycles modulo the interval are
        preserved."""
        partial = self.partial
        first = min(slot.cycle for slot in partial.slots.values())
        shift = -(first // self.interval) * self.interval
        partial.slots = {
            number: slot._replace(cycle=slot.cycle + shift, write_back=slot.write_back + shift)
            for number, slot in partial.slots.items()
        }
        partial.loop = self.loop.with_bases(partial.bases)
        return IterationSchedule(partial.loop, self.interval, partial)

    # --- trees ------------------------------------------------------------------------------

    def _by_trees(self) -> IterationSchedule | None:
        """Place exits and trees first. Trees are as late as the rest of the schedule allows: then
        the exits are early, compared with the first operation, and a loop of few iterations soon
        ends."""
        if not (self._place_exits() and self._place_trees()):
            return None
        slots, spare = self.partial.slots, self._spare()
        cycles = [(tree, slots[tree.root].cycle) for tree in self.search.trees]
        for later in sorted({spare, spare // 2, 0}, reverse=True):
            for number in list(slots):
                self.partial.evict(number)
            self.last.clear()
            if self._place_exits() and all(
                self._is_tree_placed(tree, cycle + later) for tree, cycle in cycles
            ):
                found = self._one_by_one()
                if found is not None:
                    return found
        return None

    def _place_exits(self) -> bool:
        """Place the branch back, and the exits before it, so that trees end where their values may
        be stored. False if they do not fit together."""
        ends = (n.number for n in self.loop.nodes if n.is_exit or n.number == self.loop.repeat)
        for number in sorted(ends, reverse=True):
            self.placements += 1
            if self._place(number) != set():
                return False
        return True

    def _place_trees(self) -> bool:
        """Place all trees; False if one finds no place. Those of the same size begin together where
        they can."""
        starts: dict[int, int] = {}
        for tree in self.search.trees:
            size = len(tree.operations)
            starts[size] = max(starts.get(size, 0), self._start(tree))
        return all(
            self._place_tree(tree, starts[len(tree.operations)]) for tree in self.search.trees
        )

    def _spare(self) -> int:
        """Cycles by which all trees may be later, with their values stored in time."""
        spare = [
            latest - self.partial.slots[tree.root].write_back
            for tree in self.search.trees
            for use in self.search.demand.readers[tree.root]
            if (latest := self._latest(use.operand[0])) is not None
        ]
        return max(min(spare, default=0), 0)

    def _start(self, tree: ExpressionTree) -> int:
        """The first cycle for a tree's root: not before a reader of its value can be issued."""
        start = max(self._earliest(n) - cycle for n, cycle in tree.cycles.items())
        readers = self.search.demand.readers[tree.root]
        first = min(
            (self._earliest(use.operand[0]) + self.interval * use.distance for use in readers),
            default=0,
        )
        return max(start, first - self.search.fastest[tree.root])

    def _place_tree(self, tree: ExpressionTree, start: int) -> bool:
        """Place a tree within an interval from a cycle of its root on, where it takes the least
        that is scarce."""
        best: tuple[float, int] | None = None
        for cycle in range(start, start + self.interval):
            if not self._is_tree_placed(tree, cycle):
                continue
            cost = sum(self.partial.cost(number) for number in tree.operations)
            if not cost:
                return True
            if best is None or cost < best[0]:
                best = cost, cycle
            for number in tree.operations:
                self.partial.evict(number)
        return best is not None and self._is_tree_placed(tree, best[1])

    def _is_tree_placed(self, tree: ExpressionTree, root: int) -> bool:
        """Place a tree with its root in a cycle. False, with none of it placed, if that cannot
        be."""
        partial = self.partial
        for place, number in enumerate(tree.operations):
            cycle = root + tree.cycles[number]
            self.placements += 1
            self.last[number] = cycle
            if not self._is_possible(number, cycle) or not any(
                self._is_in_time(number, cycle, unit) and partial.place(number, cycle, unit)
                for unit in partial.units(number, cycle)
            ):
                for other in tree.operations[:place]:
                    partial.evict(other)
                return False
        return True

    def _is_possible(self, number: int, cycle: int) -> bool:
        """True if an operation depends on none that is placed too late, and none on it that is
        placed too early."""
        latest = self._latest(number)
        return self._earliest(number) <= cycle and (latest is None or cycle <= latest)

    # --- single operations ------------------------------------------------------------------

    def _place(self, number: int) -> set[int] | None:
        """Place an operation; the evicted operations. None if it is impossible."""
        slots, into, out = self.partial.slots, self.search.into, self.search.out
        earliest, latest = self._earliest(number), self._latest(number)
        is_bound = any(each.other in slots for each in into[number])
        is_awaited = self.order.is_late and any(
            each.is_awaited and each.other in slots for each in out[number]
        )
        if latest is not None and not is_bound:
            cycles = range(latest, latest - self.interval, -1)
        elif latest is not None and is_awaited:
            self.was_late = True
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
                if self._is_in_time(number, cycle, unit) and partial.place(number, cycle, unit):
                    cost = partial.cost(number)
                    if not cost:
                        self.last[number] = cycle
                        return True
                    if best is None or cost < best[0]:
                        best = cost, cycle, unit
                    is_possible = True
                    partial.evict(number)
            looked += is_possible
            if looked >= tuning.CYCLES_COMPARED:
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
        """Place an operation in a cycle, if a unit is free. Readers that its result comes too late
        for are evicted afterwards; its own later iterations cannot be."""
        partial = self.partial
        return any(
            self._is_in_time(number, cycle, unit, alone=True) and partial.place(number, cycle, unit)
            for unit in partial.units(number, cycle)
        )

    def _is_in_time(self, number: int, cycle: int, unit: int, alone: bool = False) -> bool:
        """True if no operation that depends on one is issued too early for a unit's latency: of
        those that are placed and of its own later iterations, or of the latter `alone`.

        Cycles are selected for the fastest unit, so the check concerns slower ones only.
        """
        timing = self.search.demand.issue[number].units[unit]
        if timing.latency == self.search.fastest[number]:
            return True
        slots = self.partial.slots
        for delay in self.search.out[number]:
            own = delay.other == number
            if not own and (alone or delay.other not in slots):
                continue
            issued = cycle if own else slots[delay.other].cycle
            if issued < cycle + self._cycles(delay, timing.latency):
                return False
        return True

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
        return self._cycles(delay, latency)

    def _cycles(self, delay: _Delay, latency: int) -> int:
        return delay.latencies * latency + delay.cycles - self.interval * delay.distance

    def _earliest(self, number: int) -> int:
        slots = self.partial.slots
        return max(
            (
                slots[each.other].cycle + self._far(each.other, each)
                for each in self.search.into[number]
                if each.other in slots
            ),
            default=self.order.depths[number],
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
