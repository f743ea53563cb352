# SPDX-License-Identifier: Apache-2.0
"""List scheduling of extended blocks: the cycle and the unit of each operation.

In each cycle, of the operations whose dependences are satisfied the one with the longest path to
the end of the block is issued first (Fisher: The Optimization of Horizontal Microcode, 1979; blocks
with exits as in Hwu et al.: The Superblock, J. Supercomputing 1993).
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ferryvm.backend import RefusalError
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.dependence import dependences, distance
from ferryvm_backends.vliw.code.liveness import KnownEffects, Live, live_at_entry
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    MachineBlock,
    MachineCode,
    Register,
)
from ferryvm_backends.vliw.code.placement import are_ports_left, bypasses, place
from ferryvm_backends.vliw.code.reservation import Demand, ReservationTable
from ferryvm_backends.vliw.code.scheduled import Scheduled, ScheduledOperation
from ferryvm_backends.vliw.machine.model import Machine

_PATIENCE = 4096
"""Cycles without anything to issue after which something is wrong."""


@dataclasses.dataclass
class KnownSchedules:
    """Earlier schedules of blocks. One is reused for those that have not changed:
    a block that changes gets another list of operations."""

    effects: KnownEffects = dataclasses.field(default_factory=dict)
    blocks: dict[MachineBlock, tuple[tuple[object, ...], Scheduled]] = dataclasses.field(
        default_factory=dict
    )
    """Schedules, each with the facts that it depends on besides operations."""
    placements: int = 0
    """Operations that were placed, those of earlier schedules of a block included."""

    def spend(self, count: int, machine: Machine) -> None:
        """Place so many operations more. Raises RefusalError where a region may not have them."""
        self.placements += count
        if self.placements > tuning.LIST_PLACEMENTS:
            raise RefusalError(
                f"scheduling the region for the machine {machine.name} takes more than "
                f"{tuning.LIST_PLACEMENTS:,} placements of operations outside of pipelined loops"
            )


@dataclasses.dataclass
class Schedule:
    """All blocks."""

    blocks: dict[MachineBlock, Scheduled]
    live: Live


def check_units(code: MachineCode, machine: Machine) -> None:
    """Raise RefusalError for operations that no unit of the machine supports."""
    for block in code.blocks:
        for operation in block.operations:
            if not machine.units_for(operation.work):
                raise RefusalError(
                    f"the machine {machine.name} has no unit for {operation.work.value}, which "
                    f"{operation.name} at pc {operation.pc} needs"
                )


def schedule(
    code: MachineCode,
    machine: Machine,
    pipelined: Mapping[MachineBlock, Scheduled],
    windows: Mapping[MachineBlock, int] | None = None,
    known: KnownSchedules | None = None,
) -> Schedule:
    """The schedule of all blocks. Raises RefusalError if there is none.

    `pipelined`: the schedules of pipelined loops; `windows`: for some blocks, the distance behind
    the first unscheduled operation within which others are considered: with few registers,
    operations that are not needed soon should be late; `known`: earlier schedules.
    """
    known = KnownSchedules() if known is None else known
    live = live_at_entry(code, known.effects)
    windows = windows or {}
    blocks: dict[MachineBlock, Scheduled] = {}
    for block in code.blocks:
        if block in pipelined:
            blocks[block] = pipelined[block]
            continue
        window = windows.get(block)
        effect = known.effects[block]
        needed = tuple(live[target] & effect.results for target in effect.set_before)
        before, found = known.blocks.get(block, (None, None))
        if found is None or found.operations is not block.operations or before != (window, needed):
            known.spend(len(block.operations), machine)
            found = _ListScheduler(block, machine, live, window).run()
            known.blocks[block] = (window, needed), found
        blocks[block] = found
    for each in blocks.values():
        each.pad = 0
    for each in list(blocks.values()):
        for placed in each.placed:
            operation = placed.operation
            # A back edge that does not look at the time has no target.
            if operation.name in EXITS and operation.target is not None:
                drain = each.drain(placed, machine.delay_slots)
                target = blocks[operation.target]
                target.pad = max(target.pad, drain)
    return Schedule(blocks, live)


class _ListScheduler:
    def __init__(
        self, block: MachineBlock, machine: Machine, live: Live, window: int | None
    ) -> None:
        self.block, self.machine, self.window = block, machine, window
        self.table = ReservationTable(machine)
        self.demands = [Demand.of(o, tuple(o.constants()), machine) for o in block.operations]
        latencies = [[unit.latency for unit in each.units.values()] for each in self.demands]
        self.fastest, self.slowest = [*map(min, latencies)], [*map(max, latencies)]
        numbers: dict[tuple[int, bool], int] = {}
        self.kinds = [
            numbers.setdefault((id(each.units), each.has_result), len(numbers))
            for each in self.demands
        ]
        """Operations of a kind find a unit free in the same cycles."""
        self.dependences = dependences(block, live)
        self.after: list[list[int]] = [[] for _ in self.dependences]
        """The operations that depend on each operation."""
        self.pending = [0] * len(self.dependences)
        """Number of unscheduled predecessors of each operation."""
        for number, found in enumerate(self.dependences):
            before = {dependence.first for dependence in found}
            self.pending[number] = len(before)
            for first in before:
                self.after[first].append(number)
        self.placed: list[ScheduledOperation | None] = [None] * len(self.dependences)
        self.setters = self._setters()
        self.outside = [
            [
                o
                for o, s in zip(each.operands, setters, strict=True)
                if s is None and isinstance(o, Register)
            ]
            for each, setters in zip(block.operations, self.setters, strict=True)
        ]
        """The registers of each operation that no other one of the block sets: it reads them from
        their files."""

    def _setters(self) -> list[list[int | None]]:
        """For each operand of each operation the one in the block that set it."""
        last: dict[Register, int] = {}
        found = []
        for number, operation in enumerate(self.block.operations):
            found.append(
                [last.get(o) if isinstance(o, Register) else None for o in operation.operands]
            )
            if operation.result is not None:
                last[operation.result] = number
        return found

    def run(self) -> Scheduled:
        heights = self._heights()
        order = sorted(range(len(heights)), key=lambda n: (-heights[n], n))
        rank = {number: place for place, number in enumerate(order)}
        remaining = [*range(len(order))]
        later: defaultdict[int, list[int]] = defaultdict(list)
        """Ranks of operations whose dependences are satisfied in a cycle."""
        later[0] = sorted(rank[n] for n in remaining if not self.pending[n])
        cycle = idle = 0
        while remaining:
            last = self._window(remaining)
            queue, postponed, count = later.pop(cycle, []), [], len(remaining)
            taken: set[int] = set()
            """The kinds of operations that no unit is free for in this cycle."""
            heapq.heapify(queue)
            while queue and not self.table.is_full(cycle):
                first = heapq.heappop(queue)
                number = order[first]
                if number > last or not self._try(number, cycle, taken):
                    postponed.append(first)
                    continue
                del remaining[bisect.bisect_left(remaining, number)]
                for other, earliest in self._released(number):
                    if earliest <= cycle and rank[other] > first:
                        heapq.heappush(queue, rank[other])
                    else:
                        later[max(earliest, cycle + 1)].append(rank[other])
            if remaining:
                later[cycle + 1] += queue + postponed
            idle = idle + 1 if len(remaining) == count else 0
            if idle > _PATIENCE:
                raise self._stuck(order[min(queue + postponed)])
            cycle += 1
        placed = [each for each in self.placed if each is not None]
        end = placed[-1].cycle + self.machine.delay_slots + 1
        return Scheduled(self.block, placed, end)

    def _window(self, remaining: list[int]) -> int:
        """The last of the remaining operations that is considered."""
        if self.window is None or len(remaining) <= self.window:
            return len(self.dependences)
        return remaining[self.window - 1]

    def _stuck(self, number: int) -> RefusalError:
        operation = self.block.operations[number]
        return RefusalError(
            f"the machine {self.machine.name} cannot issue {operation.name} (pc {operation.pc}): "
            "no unit for it reaches the register files that it needs, or has ports or constants enough"
        )

    def _heights(self) -> list[int]:
        """Cycles from each operation's issue to the end of the block, at least."""
        heights = [0] * len(self.dependences)
        for number in reversed(range(len(heights))):
            for dependence in self.dependences[number]:
                latencies = self.fastest[dependence.first], self.fastest[number]
                height = heights[number] + distance(dependence.reason, *latencies, self.machine)
                heights[dependence.first] = max(heights[dependence.first], height)
        return heights

    def _try(self, number: int, cycle: int, taken: set[int]) -> bool:
        if self.kinds[number] in taken:
            return False
        for register in self.outside[number]:
            if not self.table.has_port(register.file, cycle, register):
                return False
        operation, demand = self.block.operations[number], self.demands[number]
        units = [*self.table.free(demand, cycle)]
        if not units:
            taken.add(self.kinds[number])
            return False
        setters = [None if s is None else self.placed[s] for s in self.setters[number]]
        bypassed = bypasses(self.table, setters, cycle)
        if not are_ports_left(self.table, operation, cycle, bypassed):
            return False
        alike, failed = self.machine.alike, set[int]()
        for unit in units:
            if alike[unit] in failed:
                continue
            latency = demand.units[unit].latency
            if latency != self.slowest[number] and cycle < self._earliest(number, latency):
                continue
            found = place(self.table, operation, demand, cycle, unit, bypassed)
            if found is not None:
                self.placed[number] = found
                return True
            failed.add(alike[unit])
        return False

    def _released(self, number: int) -> Iterator[tuple[int, int]]:
        """Operations that become ready when an operation is scheduled, each with its earliest
        cycle."""
        for other in self.after[number]:
            self.pending[other] -= 1
            if not self.pending[other]:
                yield other, self._earliest(other, self.slowest[other])

    def _earliest(self, number: int, latency: int) -> int:
        """The first cycle that an operation's dependences allow, on a unit with a latency."""
        earliest = 0
        for dependence in self.dependences[number]:
            first = self.placed[dependence.first]
            assert first is not None
            cycle = first.cycle + distance(dependence.reason, first.latency, latency, self.machine)
            earliest = max(earliest, cycle)
        return earliest
