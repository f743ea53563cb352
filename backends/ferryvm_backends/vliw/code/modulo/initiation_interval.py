# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of the initiation interval: by resources and by recurrences (Rau 1994, section
2)."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import numpy.typing as npt

from ferryvm_backends.vliw.code.dependence import distance
from ferryvm_backends.vliw.code.modulo.dependence_graph import Invariant, Iteration
from ferryvm_backends.vliw.code.operation import MachineOperation
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Work

_NEVER = -(1 << 40)


@dataclasses.dataclass(frozen=True)
class Bounds:
    """Cycles from one iteration to the next, at least."""

    resource: int
    resource_name: str
    """Name of the scarcest resource: units, or slots."""
    recurrence: int

    @property
    def least(self) -> int:
        """Both of them."""
        return max(self.resource, self.recurrence)


@dataclasses.dataclass(frozen=True)
class DependenceEdges:
    """Dependence edges, as arrays of the same length."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    delay: npt.NDArray[np.int64]
    distance: npt.NDArray[np.int64]

    def heights(self, count: int, interval: int) -> npt.NDArray[np.int64] | None:
        """Minimum of cycles from each operation's issue to the end of its iteration; None if an
        operation depends on itself within the interval."""
        return self._longest(count, interval, self.second, self.first)

    def depths(self, count: int, interval: int) -> npt.NDArray[np.int64] | None:
        """Cycles from the beginning of its iteration to each operation's issue, at least."""
        return self._longest(count, interval, self.first, self.second)

    def _longest(
        self, count: int, interval: int, known: npt.NDArray[np.int64], to: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64] | None:
        """The longest path to each operation (Bellman-Ford), or None where there is a cycle of
        positive length. Edges come in the order of the program, so that few passes are needed; a
        positive cycle is soon one of the last edges of these paths."""
        lengths = (self.delay - interval * self.distance).tolist()
        rows = sorted(zip(known.tolist(), to.tolist(), lengths, strict=True))
        if known is self.second:
            rows.reverse()
        found, last = [0] * count, [-1] * count
        while True:
            has_changed = False
            for first, second, length in rows:
                path = found[first] + length
                if path > found[second]:
                    found[second], last[second] = path, first
                    has_changed = True
            if not has_changed:
                return np.array(found, np.int64)
            if _has_cycle(last):
                return None


def _has_cycle(following: list[int]) -> bool:
    """True if one of some chains, each entry of which names the next one, comes back to itself."""
    seen = [-1] * len(following)
    for start in range(len(following)):
        at = start
        while at >= 0 and seen[at] < 0:
            seen[at] = start
            at = following[at]
        if at >= 0 and seen[at] == start:
            return True
    return False


def edges(loop: Iteration, machine: Machine) -> DependenceEdges:
    """The edges of an iteration, with the fastest units."""
    latencies = [latency(node.operation, machine) for node in loop.nodes]
    rows = [
        (
            edge.first,
            edge.second,
            distance(edge.reason, latencies[edge.first], latencies[edge.second], machine),
            edge.distance,
        )
        for edge in loop.edges
    ]
    table = np.array(rows, np.int64).reshape(-1, 4).T
    return DependenceEdges(*table)


def bounds(loop: Iteration, machine: Machine) -> Bounds:
    """The bounds of a loop. Every operation has a unit."""
    resource, name = Usage(loop, machine).least()
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


def critical_path(loop: Iteration, machine: Machine) -> int:
    """Cycles that an iteration takes, at least."""
    found = edges(loop, machine).heights(len(loop.nodes), 1 << 32)
    assert found is not None
    return int(found.max())


def latency(operation: MachineOperation, machine: Machine) -> int:
    """Of the fastest unit."""
    return min(each.latency for each in machine.timings[operation.work].values())


class Usage:
    """Slots and units that an iteration uses."""

    def __init__(self, loop: Iteration, machine: Machine) -> None:
        self.machine, self.count = machine, len(loop.nodes)
        invariants = {
            s.register for node in loop.nodes for s in node.sources if isinstance(s, Invariant)
        }
        self.invariants = Counter(register.kind for register in invariants)
        """Registers that do not change, by kind."""
        self.needs: Counter[frozenset[int]] = Counter()
        """Cycles that operations need, by the units that can do them."""
        self.alike: Counter[tuple[frozenset[int], int]] = Counter()
        """Operations by these units and the cycles that they need for one."""
        for node in loop.nodes:
            able = self._able(node.operation.work)
            interval = min(machine.units[n].work[node.operation.work].interval for n in able)
            self.needs[able] += interval
            self.alike[able, interval] += 1

    def least(self) -> tuple[int, str]:
        """Cycles that slots, ports, and any set of units that do the same things are taken."""
        found = [(-(-self.count // self.machine.slots), "slots")]
        for units in self.needs:
            found.append((-(-self._together(units) // len(units)), self._names(units)))
        for (units, interval), count in self.alike.items():
            # A unit does the same in each iteration, so it executes whole operations.
            found.append((interval * -(-count // len(units)), self._names(units)))
        for kind in FileKind:
            found.append((self._port_cycles(kind), f"ports of {kind.value} files"))
        return max(found, key=lambda each: each[0])

    def loads_within(self, cycles: float) -> int:
        """Loads of constant addresses that would fit besides, if there were so many cycles."""
        units = self._able(Work.LOAD)
        taken = sum(needs for others, needs in self.needs.items() if others & units)
        free = min(len(units) * cycles - taken, self.machine.slots * cycles - self.count)
        return max(int(free), 0)

    def _port_cycles(self, kind: FileKind) -> int:
        """Cycles for reading invariants, which are in no unit's output register. A word can be
        loaded instead, since its address is a constant."""
        ports = sum(file.read_ports for file in self.machine.files if file.kind is kind)
        cycles = 0
        while True:
            loads = self.loads_within(cycles) if kind is FileKind.INTEGER else 0
            if self.invariants[kind] <= ports * cycles + loads:
                return cycles
            cycles += 1

    def _able(self, work: Work) -> frozenset[int]:
        return frozenset(n for n, unit in enumerate(self.machine.units) if work in unit.work)

    def _together(self, units: frozenset[int]) -> int:
        return sum(cycles for others, cycles in self.needs.items() if others <= units)

    def _names(self, units: frozenset[int]) -> str:
        return "+".join(dict.fromkeys(self.machine.units[n].group for n in sorted(units)))
