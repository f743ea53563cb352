# SPDX-License-Identifier: Apache-2.0
"""Which number each register has in its file.

A register is *taken*, block by block, from the cycle in which its first value lands to the last that
reads it, or in which something that was issued before an exit could still land on the way that reads
it. A result that is only taken from its unit's output register takes none. Registers that are taken
at the same time anywhere get different numbers (Chaitin: Register Allocation and Spilling via Graph
Coloring, 1982; greedily here). Where a file has too few, some registers become words of memory.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict

from ferryvm.backend import RefusalError
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code.bank import assign_files
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    Code,
    MachineBlock,
    MachineOperation,
    Place,
    Register,
    Segment,
)
from ferryvm_backends.vliw.code.schedule import Schedule, Scheduled, schedule
from ferryvm_backends.vliw.code.table import Placed
from ferryvm_backends.vliw.machine.model import FileKind, Machine

_ROUNDS = 64


@dataclasses.dataclass
class Allocation:
    """A schedule with registers."""

    schedule: Schedule
    numbers: dict[Register, int]
    written: set[Placed]
    """Those whose result goes to its register; the others' stays in the output register."""
    spilled: int
    """Registers that are in memory."""


def allocate(code: Code, machine: Machine) -> Allocation:
    """Schedule code and give its registers numbers, spilling where needed. Raises RefusalError."""
    spilled = 0
    for _ in range(_ROUNDS):
        assign_files(code, machine)
        found = schedule(code, machine)
        ranges = _Ranges(found, machine)
        numbers, failed = _colour(ranges, machine)
        if not failed:
            return Allocation(found, numbers, ranges.written, spilled)
        spilled += len(failed)
        for register in failed:
            _spill(code, register)
    raise RefusalError(f"the machine {machine.name} has too few registers for the region")


class _Ranges:
    """When registers are taken."""

    def __init__(self, found: Schedule, machine: Machine) -> None:
        self.live, self.machine = found.live, machine
        self.taken: dict[Register, dict[MachineBlock, tuple[int, int]]] = defaultdict(dict)
        self.weight: Counter[Register] = Counter()
        self.written: set[Placed] = set()
        for scheduled in found.blocks.values():
            self._block(scheduled)

    def _block(self, scheduled: Scheduled) -> None:
        block, live = scheduled.block, self.live
        begins: dict[Register, int] = {}
        ends: dict[Register, int] = {}
        setter: dict[Register, Placed] = {}
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
                if isinstance(operand, Register):
                    self.weight[operand] += 1 if block.is_cold else 16
                    if source is None:
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
                self.weight[result] += 1 if block.is_cold else 16
                begins[result] = min(begins.get(result, placed.landing), placed.landing)
                ends[result] = max(ends.get(result, 0), placed.landing + 1)
                setter[result] = placed
        set_here = {p.operation.result for p in self.written if p.operation.result is not None}
        for register, begin in begins.items():
            if register in from_before or register in set_here:
                self.taken[register][block] = begin, ends[register]


def _colour(ranges: _Ranges, machine: Machine) -> tuple[dict[Register, int], list[Register]]:
    """Numbers of registers, and the registers that are to be spilled."""
    numbers: dict[Register, int] = {}
    used: dict[tuple[str, int], dict[MachineBlock, list[tuple[int, int]]]] = {}
    failed: list[Register] = []

    def cost(register: Register) -> float:
        length = sum(end - begin for begin, end in ranges.taken[register].values())
        return ranges.weight[register] / max(length, 1)

    # Those that are worst to spill come first.
    order = sorted(ranges.taken, key=lambda r: (not r.is_spill, -cost(r), r.number))
    for register in order:
        for number in range(machine.file(register.file).registers):
            there = used.setdefault((register.file, number), {})
            if not _meets(ranges.taken[register], there):
                numbers[register] = number
                for block, span in ranges.taken[register].items():
                    there.setdefault(block, []).append(span)
                break
        else:
            if register.is_spill:
                raise RefusalError(
                    f"the machine {machine.name} has too few registers in file {register.file}"
                )
            failed.append(register)
    return numbers, failed


def _meets(
    taken: dict[MachineBlock, tuple[int, int]],
    there: dict[MachineBlock, list[tuple[int, int]]],
) -> bool:
    return any(
        begin < other_end and other < end
        for block, (begin, end) in taken.items()
        for other, other_end in there.get(block, ())
    )


def _spill(code: Code, register: Register) -> None:
    """Have a register in memory: stored where it is set, loaded where it is read."""
    place = Place(Segment.SPILL, 8 * code.spills)
    code.spills += 1
    is_truth = register.kind is FileKind.BOOLEAN
    for block in code.blocks:
        operations: list[MachineOperation] = []
        for operation in block.operations:
            if register in operation.operands:
                word = code.register(FileKind.INTEGER, is_spill=True)
                load = MachineOperation("load", (), (0,), word, place, pc=operation.pc)
                operations.append(load)
                fresh = word
                if is_truth:
                    fresh = code.register(FileKind.BOOLEAN, is_spill=True)
                    operations.append(_is_set(word, fresh, operation.pc))
                operation.operands = tuple(
                    fresh if o is register else o for o in operation.operands
                )
            operations.append(operation)
            if operation.result is register:
                fresh = code.register(register.kind, is_spill=True)
                operation.result = value = fresh
                if is_truth:
                    value = code.register(FileKind.INTEGER, is_spill=True)
                    operations.append(
                        MachineOperation("select", (), (fresh, 1, 0), value, pc=operation.pc)
                    )
                operations.append(
                    MachineOperation("store", (), (0, value), None, place, pc=operation.pc)
                )
        block.operations = operations


def _is_set(word: Register, truth: Register, pc: int) -> MachineOperation:
    return MachineOperation("compare", (I64, Condition.NE), (word, 0), truth, pc=pc)
