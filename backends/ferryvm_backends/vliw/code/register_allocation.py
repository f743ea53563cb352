# SPDX-License-Identifier: Apache-2.0
"""Register allocation: numbers in the register files.

Registers whose live ranges (`live_range`) overlap get different numbers (Chaitin: Register
Allocation and Spilling via Graph Coloring, 1982; greedily here). Where a file has too few
registers, some are spilled to memory. Registers of pipelined loops cannot be spilled: such a loop
is not pipelined then. Nor can the registers that spilled words are loaded into: where even these
are too many, the block is scheduled closer to program order, so that live ranges get shorter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from ferryvm.backend import RefusalError
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.live_range import Cycles, KnownRanges, LiveRanges
from ferryvm_backends.vliw.code.modulo.pipeline import PipelinableLoops
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.code.register_file import FileAssignment
from ferryvm_backends.vliw.code.schedule import KnownSchedules, Schedule, schedule
from ferryvm_backends.vliw.code.scheduled import ScheduledOperation
from ferryvm_backends.vliw.machine.model import FileKind, Machine


@dataclasses.dataclass
class Allocation:
    """A schedule with registers."""

    schedule: Schedule
    numbers: dict[Register, int]
    written: set[ScheduledOperation]
    """Operations whose result is written back; others are read from the output register."""
    spilled: int
    """The number of spilled registers."""


def allocate(code: MachineCode, loops: PipelinableLoops, machine: Machine) -> Allocation:
    """Schedule code and give its registers numbers, spilling where needed. Raises RefusalError."""
    spilled = 0
    windows: dict[MachineBlock, int] = {}
    known = KnownSchedules()
    known_ranges: KnownRanges = {}
    files = FileAssignment(code, machine)
    for _ in range(tuning.ALLOCATION_TRIES):
        pipelined = {block: each.scheduled for block, each in loops.pipelined.items()}
        files.run(pipelined)
        found = schedule(code, machine, pipelined, windows, known)
        ranges = LiveRanges(found, machine, known_ranges)
        ranges.fixed |= loops.registers
        try:
            numbers, failed = _colour(ranges, machine)
        except _CrowdedError as error:
            in_loops = {b for blocks in error.blocks for b in blocks} & pipelined.keys()
            is_changed = loops.give_up(error.file, in_loops)
            for blocks in error.blocks:
                if blocks.isdisjoint(pipelined):
                    is_changed |= _narrow(windows, blocks)
            if not is_changed and not loops.give_up(error.file, pipelined.keys()):
                raise RefusalError(
                    f"the machine {machine.name} has too few registers in file {error.file}"
                ) from None
            continue
        if not failed:
            return Allocation(found, numbers, ranges.written, spilled)
        spilled += len(failed)
        uses = _uses(code, {*failed})
        for register in failed:
            _spill(code, register, uses[register])
    raise RefusalError(f"the machine {machine.name} has too few registers for the region")


def _narrow(windows: dict[MachineBlock, int], blocks: Iterable[MachineBlock]) -> bool:
    """Schedule blocks closer to their own order. False if they are already."""
    found = [block for block in blocks if windows.get(block, tuning.CROWDED_WINDOW) > 1]
    for block in found:
        windows[block] = windows.get(block, tuning.CROWDED_WINDOW) // 2
    return bool(found)


class _CrowdedError(Exception):
    """Registers that cannot be in memory find no place."""

    def __init__(self, file: str, blocks: list[set[MachineBlock]]) -> None:
        """`blocks`: where each of them is needed."""
        super().__init__(file)
        self.file, self.blocks = file, blocks


def _colour(ranges: LiveRanges, machine: Machine) -> tuple[dict[Register, int], list[Register]]:
    """Numbers of registers, and the registers that are to be spilled. Raises _CrowdedError."""
    length = {
        register: sum(cycles.bit_count() for cycles in there.values())
        for register, there in ranges.taken.items()
    }
    start = {
        register: min((cycles & -cycles).bit_length() for cycles in there.values())
        for register, there in ranges.taken.items()
    }

    def cost(register: Register) -> float:
        return ranges.weight[register] / max(length[register], 1)

    staying = [r for r in ranges.taken if r.is_spill or r in ranges.fixed]
    others = ranges.taken.keys() - {*staying}
    # None of the orders is best for all: short ones first, as they are needed, long ones first.
    for rank in (lambda r: -cost(r), start.__getitem__, lambda r: -length[r]):
        numbering = _Numbering(ranges, machine)
        crowded = numbering.add(sorted(staying, key=lambda r: (rank(r), r.number)))
        if not crowded:
            break
    else:
        file = crowded[0].file
        raise _CrowdedError(file, [{*ranges.taken[r]} for r in crowded if r.file == file])
    # Those that are worst to spill come first.
    failed = numbering.add(sorted(others, key=lambda r: (-cost(r), r.number)))
    return numbering.numbers, failed


class _Numbering:
    """Registers with the numbers that they got one after another."""

    def __init__(self, ranges: LiveRanges, machine: Machine) -> None:
        self.ranges, self.machine = ranges, machine
        self.numbers: dict[Register, int] = {}
        self._used: dict[str, list[dict[MachineBlock, Cycles]]] = {
            file.name: [{} for _ in range(file.registers)] for file in machine.files
        }
        """For each number of each file the cycles in which it is taken."""

    def add(self, registers: Iterable[Register]) -> list[Register]:
        """Give registers the first numbers that are free; those for which there is none."""
        return [register for register in registers if not self._add(register)]

    def _add(self, register: Register) -> bool:
        taken = self.ranges.taken[register]
        for number, there in enumerate(self._used[register.file]):
            for block, cycles in taken.items():
                if block in there and cycles & there[block]:
                    break
            else:
                self.numbers[register] = number
                for block, cycles in taken.items():
                    there[block] = there.get(block, 0) | cycles
                return True
        return False


def _uses(
    code: MachineCode, registers: Collection[Register]
) -> dict[Register, dict[MachineBlock, None]]:
    """The blocks that use each of some registers."""
    found: dict[Register, dict[MachineBlock, None]] = {register: {} for register in registers}
    for block in code.blocks:
        for operation in block.operations:
            for each in (*operation.operands, operation.result):
                if isinstance(each, Register) and each in found:
                    found[each][block] = None
    return found


def _spill(code: MachineCode, register: Register, blocks: Iterable[MachineBlock]) -> None:
    """Spill a register: store it where it is set, load it where it is read; `blocks`: the blocks
    that use it."""
    place = MemoryOperand(Segment.SPILL, 8 * code.spills)
    code.spills += 1
    is_predicate = register.kind is FileKind.BOOLEAN
    for block in blocks:
        operations: list[MachineOperation] = []
        for operation in block.operations:
            if register in operation.operands:
                word = code.register(FileKind.INTEGER, is_spill=True)
                load = MachineOperation("load", (), (0,), word, place, pc=operation.pc)
                operations.append(load)
                fresh = word
                if is_predicate:
                    fresh = code.register(FileKind.BOOLEAN, is_spill=True)
                    operations.append(_is_set(word, fresh, operation.pc))
                operation.operands = tuple(
                    fresh if o is register else o for o in operation.operands
                )
            operations.append(operation)
            if operation.result is register:
                fresh = code.register(register.kind, is_spill=True)
                operation.result = value = fresh
                if is_predicate:
                    value = code.register(FileKind.INTEGER, is_spill=True)
                    operations.append(
                        MachineOperation("select", (), (fresh, 1, 0), value, pc=operation.pc)
                    )
                operations.append(
                    MachineOperation("store", (), (0, value), None, place, pc=operation.pc)
                )
        block.operations = operations


def _is_set(word: Register, predicate: Register, pc: int) -> MachineOperation:
    return MachineOperation("compare", (I64, Condition.NE), (word, 0), predicate, pc=pc)
