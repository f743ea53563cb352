# SPDX-License-Identifier: Apache-2.0
"""The fewest cycles from one round of a loop to the next that could be (Rau 1994, section 2)."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import numpy.typing as npt

from ferryvm_backends.vliw.code.dependence import distance
from ferryvm_backends.vliw.code.modulo.graph import Round
from ferryvm_backends.vliw.code.operation import MachineOperation
from ferryvm_backends.vliw.machine.model import Machine

_NEVER = -(1 << 40)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Cycles from one round to the next, at least."""

    resource: int
    resource_name: str
    """What is used most: units, or slots."""
    recurrence: int

    @property
    def least(self) -> int:
        """Both of them."""
        return max(self.resource, self.recurrence)


@dataclasses.dataclass(frozen=True)
class Edges:
    """What waits for what, as arrays of the same length."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    distance: npt.NDArray[np.int64]

    def heights(self, count: int, interval: int) -> npt.NDArray[np.int64] | None:
        """Cycles from each operation's issue to the end of its round, at least; None where an
        operation would have to wait for itself."""
        heights = np.zeros(count, np.int64)
        length = self.delay - interval * self.distance
        for _ in range(count + 1):
            before = heights.copy()
            np.maximum.at(heights, self.first, heights[self.second] + length)
            if np.array_equal(before, heights):
                return heights
        return None


def edges(loop: Round, machine: Machine) -> Edges:
    """The edges of a round, with the fastest units."""
    latencies = [latency(node.operation, machine) for node in loop.nodes]
    rows = [
        (
            wait.first,
            wait.second,
            distance(wait.reason, latencies[wait.first], latencies[wait.second], machine),
            wait.distance,
        )
        for wait in loop.waits
    ]
    table = np.array(rows, np.int64).reshape(-1, 4).T
    return Edges(*table)


def bounds(loop: Round, machine: Machine) -> Bounds:
    """The bounds of a loop. Every operation has a unit."""
    resource, name = _resource(loop, machine)
    found = edges(loop, machine)
    low, high = 1, 2
    while found.heights(len(loop.nodes), high) is None:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if found.heights(len(loop.nodes), middle) is None:
            low = middle + 1
        else:
            high = middle
    return Bounds(resource, name, low)


def latency(operation: MachineOperation, machine: Machine) -> int:
    """Of the fastest unit."""
    work = operation.work
    return min(unit.work[work].latency for unit in machine.units_for(work))


def _resource(loop: Round, machine: Machine) -> tuple[int, str]:
    """Cycles that slots, and any set of units that do the same things, are taken by a round; an
    operation is on the same unit in each round, so that has to be ready again."""
    needs: Counter[frozenset[int]] = Counter()
    longest: Counter[frozenset[int]] = Counter()
    for node in loop.nodes:
        work = node.operation.work
        able = [n for n, unit in enumerate(machine.units) if work in unit.work]
        interval = min(machine.units[n].work[work].interval for n in able)
        needs[frozenset(able)] += interval
        longest[frozenset(able)] = max(longest[frozenset(able)], interval)
    found = [(-(-len(loop.nodes) // machine.slots), "slots")]
    for units in needs:
        together = sum(cycles for others, cycles in needs.items() if others <= units)
        groups = dict.fromkeys(machine.units[n].group for n in sorted(units))
        least = max(longest[units], -(-together // len(units)))
        found.append((least, "+".join(groups)))
    return max(found, key=lambda each: each[0])
