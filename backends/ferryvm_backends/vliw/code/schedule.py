# SPDX-License-Identifier: Apache-2.0
"""Which operation is issued in which cycle, on which unit: list scheduling of extended blocks.

Cycle after cycle, of the operations that wait for nothing any more the one with the longest way to
the end of the block comes first (Fisher: The Optimization of Horizontal Microcode, 1979; blocks with
exits as in Hwu et al.: The Superblock, J. Supercomputing 1993).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.backend import RefusalError
from ferryvm_backends.vliw.code.dependence import Dependence, dependences, distance
from ferryvm_backends.vliw.code.liveness import Live, live_at_entry
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    Code,
    MachineBlock,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.table import Placed, Table
from ferryvm_backends.vliw.machine.model import Machine, Work

_PATIENCE = 4096
"""Cycles without anything to issue after which something is wrong."""


@dataclasses.dataclass
class Scheduled:
    """A block in cycles."""

    block: MachineBlock
    placed: list[Placed]
    """In the order of the block's operations."""
    length: int
    pad: int = 0
    """Cycles in front in which what was issued before the block lands."""
    again: int | None = None
    """The cycle that a pipelined loop goes back to from its end."""

    def drain(self, leaving: Placed, delay_slots: int) -> int:
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


@dataclasses.dataclass
class Schedule:
    """All blocks."""

    blocks: dict[MachineBlock, Scheduled]
    live: Live


def check_units(code: Code, machine: Machine) -> None:
    """Raise RefusalError for what no unit of the machine does."""
    for block in code.blocks:
        for operation in block.operations:
            if not machine.units_for(operation.work):
                raise RefusalError(
                    f"the machine {machine.name} has no unit for {operation.work.value}, which "
                    f"{operation.name} at pc {operation.pc} needs"
                )


def schedule(code: Code, machine: Machine, pipelined: Mapping[MachineBlock, Scheduled]) -> Schedule:
    """The schedule of all blocks; `pipelined`: of some. Raises RefusalError where there is none."""
    live = live_at_entry(code)
    blocks = {
        block: pipelined.get(block) or _Block(block, machine, live).run() for block in code.blocks
    }
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


class _Block:
    def __init__(self, block: MachineBlock, machine: Machine, live: Live) -> None:
        self.block, self.machine = block, machine
        self.waits = dependences(block, live)
        self.units = {
            work: [n for n, unit in enumerate(machine.units) if work in unit.work] for work in Work
        }
        self.table = Table(machine)
        self.placed: list[Placed | None] = [None] * len(block.operations)
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
        order = sorted(range(len(heights)), key=lambda n: (-heights[n], n))
        left, cycle, idle = order, 0, 0
        while left:
            still = [number for number in left if not self._try(number, cycle)]
            idle = idle + 1 if len(still) == len(left) else 0
            if idle > _PATIENCE:
                raise self._stuck(still)
            left, cycle = still, cycle + 1
        placed = [each for each in self.placed if each is not None]
        end = placed[-1].cycle + self.machine.delay_slots + 1
        return Scheduled(self.block, placed, end)

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
                    return True
        return False

    def _is_over(self, wait: Dependence, latency: int, cycle: int) -> bool:
        first = self.placed[wait.first]
        if first is None:
            return False
        return cycle >= first.cycle + distance(wait.reason, first.latency, latency, self.machine)
