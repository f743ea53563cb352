# SPDX-License-Identifier: Apache-2.0
"""List scheduling of extended blocks: the cycle and the unit of each operation.

In each cycle, of the operations whose dependences are satisfied the one with the longest path to
the end of the block is issued first (Fisher: The Optimization of Horizontal Microcode, 1979; blocks
with exits as in Hwu et al.: The Superblock, J. Supercomputing 1993).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.backend import RefusalError
from ferryvm_backends.vliw.code.dependence import Dependence, dependences, distance
from ferryvm_backends.vliw.code.liveness import Live, live_at_entry
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.reservation import ReservationTable, ScheduledOperation
from ferryvm_backends.vliw.machine.model import Machine, Work

_PATIENCE = 4096
"""Cycles without anything to issue after which something is wrong."""


@dataclasses.dataclass
class Scheduled:
    """A block in cycles."""

    block: MachineBlock
    placed: list[ScheduledOperation]
    """In the order of the block's operations."""
    length: int
    pad: int = 0
    """Cycles in front in which what was issued before the block lands."""
    again: int | None = None
    """The cycle that a pipelined loop goes back to from its end."""

    def drain(self, leaving: ScheduledOperation, delay_slots: int) -> int:
        """Cycles that results issued by the time an exit takes effect need to land after that."""
        end = leaving.cycle + delay_slots + 1
        issued = (p.landing - end for p in self.placed if p.operation.result and p.cycle < end)
        late = max(issued, default=0)
        if self.again is not None and leaving.cycle >= self.again:
            around = self.length - self.again
            for each in self.placed:
                if each.operation.result and each.cycle >= self.again:
                    passes = (end - 1 - each.cycle) // around
                    late = max(late, each.landing + passes * around - end)
        return late


Known = dict[MachineBlock, tuple[tuple[object, ...], Scheduled]]
"""Schedules of blocks, each with what it depends on."""


@dataclasses.dataclass
class Schedule:
    """All blocks."""

    blocks: dict[MachineBlock, Scheduled]
    live: Live


def check_units(code: MachineCode, machine: Machine) -> None:
    """Raise RefusalError for what no unit of the machine does."""
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
    known: Known | None = None,
) -> Schedule:
    """The schedule of all blocks. Raises RefusalError where there is none.

    `pipelined`: the schedules of some; `windows`: how far behind the first operation that is left
    others are looked at in some blocks: with few registers, what is not needed soon had better
    wait; `known`: schedules from before, which are taken for blocks that have not changed.
    """
    live = live_at_entry(code)
    windows = windows or {}
    known = {} if known is None else known
    blocks: dict[MachineBlock, Scheduled] = {}
    for block in code.blocks:
        if block in pipelined:
            blocks[block] = pipelined[block]
            continue
        window = windows.get(block)
        looks = _looks(block, live, window)
        if block not in known or known[block][0] != looks:
            known[block] = looks, _Block(block, machine, live, window).run()
        blocks[block] = known[block][1]
    for each in blocks.values():
        each.pad = 0
    for each in list(blocks.values()):
        for placed in each.placed:
            if placed.operation.name in EXITS:
                assert placed.operation.target is not None
                drain = each.drain(placed, machine.delay_slots)
                target = blocks[placed.operation.target]
                target.pad = max(target.pad, drain)
    return Schedule(blocks, live)


def _looks(block: MachineBlock, live: Live, window: int | None) -> tuple[object, ...]:
    """All that the schedule of a block depends on, once registers have files."""
    operations = tuple((o.name, o.operands, o.result) for o in block.operations)
    needed = tuple(live[target] for o in block.operations for target in o.targets())
    return window, operations, needed


class _Block:
    def __init__(
        self, block: MachineBlock, machine: Machine, live: Live, window: int | None
    ) -> None:
        self.block, self.machine, self.window = block, machine, window
        self.waits = dependences(block, live)
        self.units = {
            work: [n for n, unit in enumerate(machine.units) if work in unit.work] for work in Work
        }
        self.table = ReservationTable(machine)
        self.placed: list[ScheduledOperation | None] = [None] * len(block.operations)
        self.after: list[list[int]] = [[] for _ in self.waits]
        """Who waits for each operation."""
        for number, waits in enumerate(self.waits):
            for first in {wait.first for wait in waits}:
                self.after[first].append(number)
        self.pending = [len({wait.first for wait in waits}) for waits in self.waits]
        """How many operations without a cycle each one waits for."""
        self.earliest = [0] * len(self.waits)
        """The first cycle of each, once it waits for none of these."""
        self.setters = self._setters()

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
        left = sorted(range(len(heights)), key=lambda n: (-heights[n], n))
        cycle = idle = 0
        while left:
            last = self._window(left)
            still = [
                number
                for number in left
                if number > last
                or self.pending[number]
                or self.earliest[number] > cycle
                or not self._try(number, cycle)
            ]
            idle = idle + 1 if len(still) == len(left) else 0
            if idle > _PATIENCE:
                raise self._stuck(still)
            left, cycle = still, cycle + 1
        placed = [each for each in self.placed if each is not None]
        end = placed[-1].cycle + self.machine.delay_slots + 1
        return Scheduled(self.block, placed, end)

    def _window(self, left: list[int]) -> int:
        """The last operation that is looked at, of those that are left."""
        if self.window is None or len(left) <= self.window:
            return len(self.waits)
        return sorted(left)[self.window - 1]

    def _stuck(self, left: list[int]) -> RefusalError:
        operation = self.block.operations[left[0]]
        return RefusalError(
            f"the machine {self.machine.name} cannot issue {operation.name} (pc {operation.pc}): "
            "no unit for it reaches the register files that it needs, or has ports or constants enough"
        )

    def _latency(self, operation: MachineOperation) -> int:
        units = self.units[operation.work]
        return min(self.machine.units[u].work[operation.work].latency for u in units)

    def _heights(self) -> list[int]:
        """Cycles from each operation's issue to the end of the block, at least."""
        operations = self.block.operations
        latencies = [self._latency(operation) for operation in operations]
        heights = [0] * len(operations)
        for number in reversed(range(len(operations))):
            for wait in self.waits[number]:
                far = distance(wait.reason, latencies[wait.first], latencies[number], self.machine)
                heights[wait.first] = max(heights[wait.first], heights[number] + far)
        return heights

    def _try(self, number: int, cycle: int) -> bool:
        operation = self.block.operations[number]
        setters = [None if s is None else self.placed[s] for s in self.setters[number]]
        for unit in self.units[operation.work]:
            latency = self.machine.units[unit].work[operation.work].latency
            if all(self._is_over(wait, latency, cycle) for wait in self.waits[number]):
                found = self.table.place(operation, cycle, unit, setters)
                if found is not None:
                    self.placed[number] = found
                    self._tell(number)
                    return True
        return False

    def _tell(self, number: int) -> None:
        """Have those that wait for an operation know that it has a cycle."""
        for other in self.after[number]:
            self.pending[other] -= 1
            if not self.pending[other]:
                work = self.block.operations[other].work
                slowest = max(self.machine.units[u].work[work].latency for u in self.units[work])
                self.earliest[other] = max(self._end(w, slowest) for w in self.waits[other])

    def _is_over(self, wait: Dependence, latency: int, cycle: int) -> bool:
        return cycle >= self._end(wait, latency)

    def _end(self, wait: Dependence, latency: int) -> int:
        """The first cycle in which an operation with a latency need not wait any more."""
        first = self.placed[wait.first]
        assert first is not None
        return first.cycle + distance(wait.reason, first.latency, latency, self.machine)
