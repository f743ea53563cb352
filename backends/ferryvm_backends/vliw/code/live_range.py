# SPDX-License-Identifier: Apache-2.0
"""Live ranges of registers after scheduling, in cycles of blocks.

A register is occupied from the cycle in which its value is written back to its last read, or to the
last cycle in which an operation issued before an exit could still write back on a path that reads
it. A result that is read only from its unit's output register occupies none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from ferryvm_backends.vliw.code.operation import EXITS, MachineBlock, Register
from ferryvm_backends.vliw.code.reservation import ScheduledOperation
from ferryvm_backends.vliw.code.schedule import Schedule, Scheduled
from ferryvm_backends.vliw.machine.model import Machine

Span = tuple[int, int]
"""Cycles of a block, from the first one up to another."""


class LiveRanges:
    """When registers are taken."""

    def __init__(self, found: Schedule, machine: Machine) -> None:
        self.live, self.machine = found.live, machine
        self.taken: dict[Register, dict[MachineBlock, list[Span]]] = defaultdict(dict)
        self.weight: Counter[Register] = Counter()
        """How much reading and writing each would cost in memory."""
        self.written: set[ScheduledOperation] = set()
        """Operations whose result goes to its register."""
        self.fixed: set[Register] = set()
        """Registers that pipelined loops read or write, and so cannot be in memory."""
        for scheduled in found.blocks.values():
            self._weigh(scheduled)
            if scheduled.again is None:
                self._block(scheduled)
            else:
                self._loop(scheduled, scheduled.again)

    def _weigh(self, scheduled: Scheduled) -> None:
        for placed in scheduled.placed:
            touched = [*placed.operation.registers()]
            if placed.operation.result is not None:
                touched.append(placed.operation.result)
            for register in touched:
                self.weight[register] += 1 if scheduled.block.is_cold else 16
            if scheduled.again is not None:
                self.fixed.update(touched)

    def _block(self, scheduled: Scheduled) -> None:
        block, live = scheduled.block, self.live
        begins: dict[Register, int] = {}
        ends: dict[Register, int] = {}
        setter: dict[Register, ScheduledOperation] = {}
        from_before: set[Register] = set()

        def needed(register: Register, end: int) -> None:
            ends[register] = max(ends.get(register, 0), end)
            if register in setter:
                self.written.add(setter[register])
            else:
                begins[register] = 0
                from_before.add(register)

        for placed in scheduled.placed:
            operation = placed.operation
            for operand, source in zip(operation.operands, placed.bypassed, strict=True):
                if isinstance(operand, Register) and source is None:
                    needed(operand, placed.cycle + 1)
            for target in operation.targets():
                # One more: what lands as the target begins must not land there.
                leaves = placed.cycle + self.machine.delay_slots + 2
                if operation.name in EXITS:
                    leaves += max(scheduled.drain(placed, self.machine.delay_slots), 0)
                for register in live[target]:
                    needed(register, min(leaves, scheduled.length + 1))
            if operation.result is not None:
                result = operation.result
                begins[result] = min(begins.get(result, placed.landing), placed.landing)
                ends[result] = max(ends.get(result, 0), placed.landing + 1)
                setter[result] = placed
        set_here = {p.operation.result for p in scheduled.placed if p in self.written}
        for register, begin in begins.items():
            if register in from_before or register in set_here:
                self.taken[register][block] = [(begin, ends[register])]

    # --- pipelined loops --------------------------------------------------------------------

    def _loop(self, scheduled: Scheduled, again: int) -> None:
        """The cycles from `again` on come again and again.

        They are looked at as often as it takes for everything that was issued in front of them to
        have landed, and once more for all later times: what an iteration brings that is under way
        when the first one is asked for its value is what was moved there in front.
        """
        length = scheduled.length - again
        longest = max(placed.latency for placed in scheduled.placed)
        passes = 1 - (-longest // length)
        last = again + passes * length

        def at(cycle: int) -> int:
            return cycle if cycle < last + length else last + (cycle - last) % length

        needed: dict[Register, set[int]] = defaultdict(set)
        landing: dict[Register, dict[int, list[ScheduledOperation]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for placed in scheduled.placed:
            operation = placed.operation
            left = self.machine.delay_slots + 1
            drain = max(scheduled.drain(placed, self.machine.delay_slots), 0)
            for number in range(passes + 1 if placed.cycle >= again else 1):
                cycle = placed.cycle + number * length
                for operand, source in zip(operation.operands, placed.bypassed, strict=True):
                    if isinstance(operand, Register) and source is None:
                        needed[operand].add(cycle)
                for target in operation.targets():
                    cycles = {at(cycle + each) for each in range(left, left + drain + 1)}
                    for register in self.live[target]:
                        needed[register] |= cycles
                if operation.result is not None:
                    landing[operation.result][at(cycle + placed.latency)].append(placed)

        def before(cycle: int) -> Iterator[int]:
            if cycle > 0:
                yield cycle - 1
            if cycle == last:
                yield last + length - 1

        for register, cycles in needed.items():
            taken = set(cycles)
            open_ = list(cycles)
            while open_:
                cycle = open_.pop()
                if setters := landing[register].get(cycle):
                    self.written.update(setters)
                    continue
                new = {each for each in before(cycle) if each not in taken}
                taken |= new
                open_ += new
            there = {each if each < again else again + (each - again) % length for each in taken}
            self.taken[register][scheduled.block] = _spans(sorted(there))


def _spans(cycles: list[int]) -> list[Span]:
    """Cycles in order, as few spans."""
    found: list[Span] = []
    for cycle in cycles:
        if found and found[-1][1] == cycle:
            found[-1] = found[-1][0], cycle + 1
        else:
            found.append((cycle, cycle + 1))
    return found
