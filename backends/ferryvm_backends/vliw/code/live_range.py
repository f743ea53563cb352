# SPDX-License-Identifier: Apache-2.0
"""Live ranges of registers after scheduling, in cycles of blocks.

A register is occupied from the cycle in which its value is written back to its last read, or to the
last cycle in which an operation issued before an exit could still write back on a path that reads
it. A result that is read only from its unit's output register occupies none.

The cycles of a block are bits of an integer, so that two live ranges overlap if their bits do.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict

from ferryvm_backends.vliw.code.liveness import Live
from ferryvm_backends.vliw.code.operation import EXITS, MachineBlock, Register
from ferryvm_backends.vliw.code.schedule import Schedule
from ferryvm_backends.vliw.code.scheduled import Scheduled, ScheduledOperation
from ferryvm_backends.vliw.machine.model import Machine

Cycles = int
"""Cycles of a block: bit n for cycle n."""


@dataclasses.dataclass
class BlockRanges:
    """Live ranges of registers in one block."""

    taken: dict[Register, Cycles] = dataclasses.field(default_factory=dict)
    weight: Counter[Register] = dataclasses.field(default_factory=Counter)
    written: set[ScheduledOperation] = dataclasses.field(default_factory=set)
    fixed: set[Register] = dataclasses.field(default_factory=set)


KnownRanges = dict[MachineBlock, tuple[tuple[object, ...], BlockRanges]]
"""Live ranges in blocks, each with the facts that they depend on."""


class LiveRanges:
    """The cycles in which registers are taken."""

    def __init__(self, found: Schedule, machine: Machine, known: KnownRanges | None = None) -> None:
        """`known`: ranges from before, which are taken for blocks that have not changed."""
        known = {} if known is None else known
        self.taken: dict[Register, dict[MachineBlock, Cycles]] = defaultdict(dict)
        self.weight: Counter[Register] = Counter()
        """Spill cost of each register."""
        self.written: set[ScheduledOperation] = set()
        """Operations whose result is written back."""
        self.fixed: set[Register] = set()
        """Registers that pipelined loops read or write, and so cannot be in memory."""
        for block, scheduled in found.blocks.items():
            needed = tuple(found.live[t] for o in block.operations for t in o.targets())
            if block not in known or known[block][0] != (scheduled, needed):
                ranges = _BlockAnalysis(scheduled, found.live, machine).run()
                known[block] = (scheduled, needed), ranges
            self._add(block, known[block][1])

    def _add(self, block: MachineBlock, ranges: BlockRanges) -> None:
        for register, cycles in ranges.taken.items():
            self.taken[register][block] = cycles
        self.weight.update(ranges.weight)
        self.written |= ranges.written
        self.fixed |= ranges.fixed


class _BlockAnalysis:
    def __init__(self, scheduled: Scheduled, live: Live, machine: Machine) -> None:
        self.scheduled, self.live, self.machine = scheduled, live, machine
        self.found = BlockRanges()

    def run(self) -> BlockRanges:
        self._weigh()
        if self.scheduled.again is None:
            self._straight_line()
        else:
            self._loop(self.scheduled.again)
        return self.found

    def _weigh(self) -> None:
        weight = 1 if self.scheduled.block.is_cold else 16
        for placed in self.scheduled.placed:
            used = [*placed.operation.registers()]
            if placed.operation.result is not None:
                used.append(placed.operation.result)
            for register in used:
                self.found.weight[register] += weight
            if self.scheduled.again is not None:
                self.found.fixed.update(used)

    def _straight_line(self) -> None:
        scheduled, delay_slots = self.scheduled, self.machine.delay_slots
        starts: dict[Register, int] = {}
        ends: dict[Register, int] = {}
        setter: dict[Register, ScheduledOperation] = {}
        from_before: set[Register] = set()

        def needed(register: Register, end: int) -> None:
            if end > ends.get(register, 0):
                ends[register] = end
            if register in setter:
                self.found.written.add(setter[register])
            else:
                starts[register] = 0
                from_before.add(register)

        for placed in scheduled.placed:
            operation = placed.operation
            for operand, source in zip(operation.operands, placed.bypassed, strict=True):
                if source is None and isinstance(operand, Register):
                    needed(operand, placed.cycle + 1)
            for target in operation.targets():
                # One more: a result that is written back as the target starts must not overlap.
                leaves = placed.cycle + delay_slots + 2
                if operation.name in EXITS:
                    leaves += scheduled.drain(placed, delay_slots)
                for register in self.live[target]:
                    needed(register, min(leaves, scheduled.length + 1))
            if operation.result is not None:
                result = operation.result
                starts[result] = min(starts.get(result, placed.write_back), placed.write_back)
                ends[result] = max(ends.get(result, 0), placed.write_back + 1)
                setter[result] = placed
        set_here = {p.operation.result for p in scheduled.placed if p in self.found.written}
        for register, start in starts.items():
            if register in from_before or register in set_here:
                self.found.taken[register] = _cycles(start, ends[register])

    # --- pipelined loops --------------------------------------------------------------------

    def _loop(self, again: int) -> None:
        """The cycles from `again` on come again and again.

        They are analysed as often as it takes for everything that was issued before them to be
        written back, and once more for all later times: an overlapped iteration that the first one
        takes a value from has the value that the preheader moved there.
        """
        scheduled = self.scheduled
        length = scheduled.length - again
        longest = max(placed.latency for placed in scheduled.placed)
        passes = 1 - (-longest // length)
        last = again + passes * length
        needed: dict[Register, Cycles] = defaultdict(int)
        needed_by: dict[MachineBlock, Cycles] = defaultdict(int)
        """The cycles in which control may get to a target."""
        writes: dict[Register, dict[int, list[ScheduledOperation]]] = defaultdict(
            lambda: defaultdict(list)
        )
        exit_delay = self.machine.delay_slots + 1
        for placed in scheduled.placed:
            operation = placed.operation
            drain = scheduled.drain(placed, self.machine.delay_slots)
            for number in range(passes + 1 if placed.cycle >= again else 1):
                cycle = placed.cycle + number * length
                for operand, source in zip(operation.operands, placed.bypassed, strict=True):
                    if source is None and isinstance(operand, Register):
                        needed[operand] |= 1 << cycle
                for target in operation.targets():
                    leaves = _cycles(cycle + exit_delay, cycle + exit_delay + drain + 1)
                    needed_by[target] |= _wrapped(leaves, last, length)
                if operation.result is not None:
                    write_back = cycle + placed.latency
                    if write_back >= last + length:
                        write_back = last + (write_back - last) % length
                    writes[operation.result][write_back].append(placed)
        for target, cycles in needed_by.items():
            for register in self.live[target]:
                needed[register] |= cycles
        for register, cycles in needed.items():
            taken = self._backward(cycles, writes[register], last, length)
            self.found.taken[register] = _wrapped(taken, again, length)

    def _backward(
        self,
        needed: Cycles,
        writes: dict[int, list[ScheduledOperation]],
        last: int,
        length: int,
    ) -> Cycles:
        """All cycles from those in which a register is needed back to the write of its value;
        records the writers."""
        stops = sum(1 << cycle for cycle in writes)
        taken = 0
        while remaining := needed & ~taken:
            cycle = remaining.bit_length() - 1
            start = (stops & ((2 << cycle) - 1)).bit_length() - 1
            if start >= 0:
                self.found.written.update(writes[start])
            if start < last <= cycle:
                needed |= 1 << last + length - 1
            taken |= _cycles(max(start, 0), cycle + 1)
        return taken


def _cycles(start: int, end: int) -> Cycles:
    """The cycles from `start` up to `end`, exclusive."""
    return ((1 << end - start) - 1) << start if end > start else 0


def _wrapped(cycles: Cycles, last: int, length: int) -> Cycles:
    """Cycles in a loop: those from `last` on are folded back by `length`."""
    found, cycles = cycles & ((1 << last) - 1), cycles >> last
    folded = 0
    while cycles:
        folded |= cycles & ((1 << length) - 1)
        cycles >>= length
    return found | folded << last
