# SPDX-License-Identifier: Apache-2.0
"""Spilling of loop invariants: load a register that a loop only reads again in each iteration.

A loop invariant occupies a register for the whole loop, and a port of its file at each read. A load
from a constant address takes neither, since its result is mostly read from the unit's output
register. Invariants for which registers or ports are too few are therefore stored in the preheader
and loaded in the loop, as far as load units have free slots. (Zalamea, Llosa, Ayguadé, Valero:
Improved Spill Code Generation for Software Pipelined Loops, PLDI 2000.)
"""

from __future__ import annotations

import dataclasses
from collections import Counter

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.modulo.dependence_graph import Invariant, Iteration
from ferryvm_backends.vliw.code.modulo.initiation_interval import Usage
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind, Machine


def choose(
    loop: Iteration, machine: Machine, interval: int, invariant_part: float
) -> list[Register]:
    """Registers to reload in each iteration, if one starts every `interval` cycles.

    `invariant_part`: the part of the registers of all files for invariants.
    """
    uses = Counter(
        s.register for node in loop.nodes for s in node.sources if isinstance(s, Invariant)
    )
    words = [r for r in uses if r.kind is FileKind.INTEGER]
    words.sort(key=lambda r: (uses[r], r.number))
    files = [file for file in machine.files if file.kind is FileKind.INTEGER]
    usage = Usage(loop, machine)
    free = usage.loads_within(tuning.BUSY_LOADS * interval)
    ports = int(tuning.INVARIANT_PORTS * interval * sum(file.read_ports for file in files))
    registers = int(invariant_part * sum(file.registers for file in files))
    found: list[Register] = []
    reads, count, loads = sum(uses[r] for r in words), len(words), 0
    for register in words:
        is_crowded = count > registers
        if not is_crowded and (reads <= ports or loads + uses[register] > free):
            break
        found.append(register)
        reads, count, loads = reads - uses[register], count - 1, loads + uses[register]
    return found


@dataclasses.dataclass
class Spills:
    """Changes that make a loop reload some registers."""

    block: MachineBlock
    before: list[MachineOperation]
    """The loop's operations as they were."""
    preheader: MachineBlock
    stores: list[MachineOperation]

    def redo(self) -> None:
        """Insert the stores in the preheader again."""
        _before_end(self.preheader, self.stores)

    def undo(self) -> None:
        """Undo all changes."""
        self.block.operations = self.before
        self.preheader.operations = [o for o in self.preheader.operations if o not in self.stores]


def preheader_of(code: MachineCode, block: MachineBlock) -> MachineBlock | None:
    """The one block that a loop is entered from, if that leads nowhere else from its end."""
    found = [
        (other, operation)
        for other in code.blocks
        for operation in other.operations
        if other is not block and block in operation.targets()
    ]
    if len(found) != 1:
        return None
    ((preheader, operation),) = found
    return preheader if operation is preheader.operations[-1] and operation.name == "jump" else None


def reload(
    code: MachineCode, block: MachineBlock, preheader: MachineBlock, registers: list[Register]
) -> Spills:
    """Reload registers wherever a loop reads them."""
    places = {}
    for register in registers:
        places[register] = MemoryOperand(Segment.SPILL, 8 * code.spills)
        code.spills += 1
    pc = preheader.operations[-1].pc
    stores = [MachineOperation("store", (), (0, r), None, p, pc=pc) for r, p in places.items()]
    found = Spills(block, block.operations, preheader, stores)
    operations: list[MachineOperation] = []
    for operation in block.operations:
        fresh: dict[object, Register] = {}
        for register in dict.fromkeys(operation.registers()):
            if register in places:
                fresh[register] = word = code.register(register.kind)
                place = places[register]
                operations.append(MachineOperation("load", (), (0,), word, place, pc=operation.pc))
        operands = tuple(fresh.get(o, o) for o in operation.operands)
        operations.append(dataclasses.replace(operation, operands=operands) if fresh else operation)
    block.operations = operations
    _before_end(preheader, stores)
    return found


def _before_end(block: MachineBlock, operations: list[MachineOperation]) -> None:
    *before, end = block.operations
    block.operations = [*before, *operations, end]
