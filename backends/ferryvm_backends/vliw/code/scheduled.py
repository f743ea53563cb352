# SPDX-License-Identifier: Apache-2.0
"""Operations and blocks in their cycles: the result of a scheduler."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools

from ferryvm_backends.vliw.code.operation import MachineBlock, MachineOperation


@dataclasses.dataclass(eq=False, slots=True)
class ScheduledOperation:
    """An operation in its cycle."""

    operation: MachineOperation
    cycle: int
    unit: int
    """Its number in the machine."""
    latency: int
    bypassed: tuple[int | None, ...]
    """For each operand the unit whose output register it is taken from, or None."""
    write_back: int = dataclasses.field(init=False)
    """The first cycle that sees the result."""

    def __post_init__(self) -> None:
        self.write_back = self.cycle + self.latency


@dataclasses.dataclass(eq=False)
class Scheduled:
    """A block in cycles."""

    block: MachineBlock
    placed: list[ScheduledOperation]
    """In the order of the block's operations."""
    length: int
    pad: int = 0
    """Empty cycles at its start, in which results of operations issued before the block are written
    back."""
    again: int | None = None
    """The cycle to which a pipelined loop branches back from its end."""
    operations: list[MachineOperation] = dataclasses.field(init=False)
    """The block's, as they were scheduled."""
    _drains: dict[int, int] = dataclasses.field(default_factory=dict)
    """Results of `drain`, by the cycle of the exit."""

    def __post_init__(self) -> None:
        self.operations = self.block.operations

    def drain(self, leaving: ScheduledOperation, delay_slots: int) -> int:
        """Cycles that results issued by the time an exit takes effect need after that to be written
        back."""
        if leaving.cycle not in self._drains:
            end = leaving.cycle + delay_slots + 1
            late = max(self._last_write_back(end) - end, 0)
            if self.again is not None and leaving.cycle >= self.again:
                late = max(late, self._late_in_kernel(self.again, end))
            self._drains[leaving.cycle] = late
        return self._drains[leaving.cycle]

    def _late_in_kernel(self, again: int, end: int) -> int:
        """The same for operations issued in the previous pass of the kernel."""
        around, late = self.length - again, 0
        for each in self.placed:
            if each.cycle >= again and each.operation.result is not None:
                passes = (end - 1 - each.cycle) // around
                late = max(late, each.write_back + passes * around - end)
        return late

    def _last_write_back(self, end: int) -> int:
        """The last cycle in which a result is written back that was issued before a cycle."""
        issues, write_backs = self._write_backs
        number = bisect.bisect_left(issues, end)
        return write_backs[number - 1] if number else 0

    @functools.cached_property
    def _write_backs(self) -> tuple[list[int], list[int]]:
        """The cycles in which operations with results are issued, in order; and for each the last
        one in which any of these results, up to its own, is written back."""
        made = sorted(
            (each.cycle, each.write_back)
            for each in self.placed
            if each.operation.result is not None
        )
        last = itertools.accumulate((write_back for _, write_back in made), max)
        return [cycle for cycle, _ in made], [*last]
