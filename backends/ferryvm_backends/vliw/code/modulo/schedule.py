# SPDX-License-Identifier: Apache-2.0
"""The cycle and the unit of each operation of a pipelined loop's round.

Iterative modulo scheduling (Rau 1994, section 3): operations are placed one after another; one that
finds no place takes it from others, which have to look for another one, until there is peace or
patience ends, and the interval is made longer. Two orders are tried:

- the longest path first, then what it waits for, right in front of it, by how much time that has (as
  Llosa et al.: Swing Modulo Scheduling, PACT 1996). So values wait for nobody, which files with few
  ports want.
- whatever has the longest way to the end of the round, as early as can be (Rau's).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ferryvm_backends.vliw.code.dependence import Reason, distance
from ferryvm_backends.vliw.code.modulo.bound import Edges, edges, latency
from ferryvm_backends.vliw.code.modulo.graph import Node, Round, Wait
from ferryvm_backends.vliw.code.modulo.table import ModuloTable, Operand
from ferryvm_backends.vliw.machine.model import Machine

_STEP = 32
"""Part of an interval by which it is made longer, where that is more than a cycle."""
_PATIENCE = 4
"""Times that an operation may be placed, on average."""
_MORE = 400
"""How often operations may be placed besides: there is time for that with few."""
_ALL = 20_000
"""How often operations may be placed with all intervals together: some seconds."""


@dataclasses.dataclass
class RoundSchedule:
    """A round whose operations have cycles from 0 on."""

    loop: Round
    interval: int
    table: ModuloTable


def schedule_round(
    loop: Round, machine: Machine, least: int, most: int, unbypassed: frozenset[Operand]
) -> RoundSchedule | None:
    """A schedule with the shortest interval that is found from `least` to `most` cycles."""
    graph = edges(loop, machine)
    interval, tries = least - 1, 0
    while (interval := interval + max(1, interval // _STEP)) <= most:
        for order, depths, is_late in _orders(graph, len(loop.nodes), interval):
            found = _Attempt(loop, machine, interval, order, depths, is_late, unbypassed).run()
            tries += _PATIENCE * len(loop.nodes) + _MORE
            if found is not None or tries > _ALL:
                return found
    return None


def _orders(
    graph: Edges, count: int, interval: int
) -> Iterator[tuple[dict[int, int], dict[int, int], bool]]:
    """Ranks of operations, the cycles before which they are not placed, and whether one whose result
    is waited for comes as late as it may."""
    heights, depths = graph.heights(count, interval), graph.depths(count, interval)
    if heights is None or depths is None:
        return
    slack = (heights + depths).max() - heights - depths
    numbers = range(count)
    swing = sorted(numbers, key=lambda n: (slack[n], -depths[n] if slack[n] else depths[n], n))
    yield _ranks(swing), dict(enumerate(depths.tolist())), True
    yield _ranks(swing), dict(enumerate(depths.tolist())), False
    highest = sorted(numbers, key=lambda n: (-heights[n], n))
    yield _ranks(highest), dict.fromkeys(numbers, 0), False


def _ranks(order: Sequence[int]) -> dict[int, int]:
    return {number: rank for rank, number in enumerate(order)}


class _Attempt:
    """With one interval."""

    def __init__(
        self,
        loop: Round,
        machine: Machine,
        interval: int,
        order: Mapping[int, int],
        depths: Mapping[int, int],
        is_late: bool,
        unbypassed: frozenset[Operand],
    ) -> None:
        self.is_late = is_late
        self.loop, self.machine, self.interval = loop, machine, interval
        self.order, self.depths = order, depths
        self.table = ModuloTable(loop, machine, interval, unbypassed)
        self.into: list[list[Wait]] = [[] for _ in loop.nodes]
        self.out: list[list[Wait]] = [[] for _ in loop.nodes]
        for wait in loop.waits:
            self.into[wait.second].append(wait)
            self.out[wait.first].append(wait)
        self.fastest = [latency(node.operation, machine) for node in loop.nodes]
        self.last: dict[int, int] = {}
        """Where each operation was placed last."""

    def run(self) -> RoundSchedule | None:
        left = {node.number for node in self.loop.nodes}
        for _ in range(_PATIENCE * len(left) + _MORE):
            if not left:
                return self._normal()
            number = min(left, key=self.order.__getitem__)
            left.discard(number)
            evicted = self._place(self.loop.nodes[number])
            if evicted is None:
                return None
            left |= evicted
        return None if left else self._normal()

    def _normal(self) -> RoundSchedule:
        """With the first operation in the first stage; cycles keep their place in the interval."""
        table = self.table
        first = min(spot.cycle for spot in table.spots.values())
        shift = -(first // self.interval) * self.interval
        table.spots = {
            number: dataclasses.replace(spot, cycle=spot.cycle + shift)
            for number, spot in table.spots.items()
        }
        return RoundSchedule(self.loop, self.interval, table)

    def _place(self, node: Node) -> set[int] | None:
        """Place an operation; those that have lost their places. None if it is not to be done."""
        earliest, latest = self._earliest(node), self._latest(node)
        is_bound = any(w.first in self.table.spots for w in self.into[node.number])
        is_awaited = self.is_late and any(
            w.second in self.table.spots and w.reason is Reason.VALUE and not w.distance
            for w in self.out[node.number]
        )
        if latest is not None and not is_bound:
            cycles = range(latest, latest - self.interval, -1)
        elif latest is not None and is_awaited:
            cycles = range(latest, max(earliest, latest - self.interval + 1) - 1, -1)
        else:
            end = earliest + self.interval - 1
            cycles = range(earliest, min(end, end if latest is None else latest) + 1)
        for cycle in cycles:
            if self._fits(node, cycle) and self._on_some_unit(node, cycle):
                self.last[node.number] = cycle
                return set()
        return self._force(node, earliest)

    def _fits(self, node: Node, cycle: int) -> bool:
        """Whether the branch back is where a round ends."""
        if node.number != self.loop.repeat:
            return True
        return (cycle + self.machine.delay_slots + 1) % self.interval == 0

    def _on_some_unit(self, node: Node, cycle: int) -> bool:
        table = self.table
        return any(table.place(node, cycle, unit) for unit in table.free(node, cycle))

    def _force(self, node: Node, earliest: int) -> set[int] | None:
        cycle = earliest
        if node.number in self.last:
            cycle = max(cycle, self.last[node.number] + 1)
        while not self._fits(node, cycle):
            cycle += 1
        evicted: set[int] = set()
        while not self._on_some_unit(node, cycle):
            rivals = self.table.rivals(node, cycle)
            if not rivals:
                return None
            self.table.evict(rivals[0])
            evicted.add(rivals[0])
        self.last[node.number] = cycle
        for wait in self.out[node.number]:
            other = self.table.spots.get(wait.second)
            if other is None or wait.second == node.number:
                continue
            if other.cycle < cycle + self._far(wait):
                self.table.evict(wait.second)
                evicted.add(wait.second)
        return evicted

    def _far(self, wait: Wait) -> int:
        """Cycles from the issue of one operation to the other's, of the same round's number."""
        spots = self.table.spots
        first, second = (
            spots[n].latency if n in spots else self.fastest[n] for n in (wait.first, wait.second)
        )
        return distance(wait.reason, first, second, self.machine) - self.interval * wait.distance

    def _earliest(self, node: Node) -> int:
        spots = self.table.spots
        return max(
            (
                spots[w.first].cycle + self._far(w)
                for w in self.into[node.number]
                if w.first in spots
            ),
            default=self.depths[node.number],
        )

    def _latest(self, node: Node) -> int | None:
        spots = self.table.spots
        return min(
            (
                spots[w.second].cycle - self._far(w)
                for w in self.out[node.number]
                if w.second in spots
            ),
            default=None,
        )
