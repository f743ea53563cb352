# SPDX-License-Identifier: Apache-2.0
"""Loop unrolling: several iterations of a loop as one block, so that independent operations
overlap.

    b0: … exit … v = move w; jump b0   ─>   b0: … exit … … exit' … v = move w'; jump b0
                                                          └─> the target's registers

Each iteration gets registers of its own, and reads the values of the iteration before without a
move. The time slice is checked once a pass. For loops of one block that are not pipelined.
(Muchnick: Advanced Compiler Design and Implementation, 1997, section 17.4.3.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.liveness import Live
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    MachineBlock,
    MachineCode,
    MachineOperation,
    Operand,
    Register,
)
from ferryvm_backends.vliw.code.parallel_copy import sequential_moves


def unroll_factor(block: MachineBlock) -> int:
    """The unroll factor of a loop."""
    return max(
        1, min(tuning.UNROLLED_ITERATIONS, tuning.UNROLLED_OPERATIONS // len(block.operations))
    )


def unroll(code: MachineCode, block: MachineBlock, live: Live, iterations: int) -> None:
    """Unroll a loop's block by a factor."""
    if iterations > 1:
        _Unrolling(code, block, live).run(iterations)


class _Unrolling:
    def __init__(self, code: MachineCode, block: MachineBlock, live: Live) -> None:
        self.code, self.block, self.live = code, block, live
        self.now: dict[Register, Operand] = {}
        """Replacements of registers."""
        self.stubs: list[MachineBlock] = []

    def run(self, iterations: int) -> None:
        """Replace the block's operations by those of so many iterations."""
        found: list[MachineOperation] = []
        for number in range(iterations):
            for operation in self.block.operations[:-1]:
                if operation.name != "exit_expired" or number == iterations - 1:
                    found += self._operation(operation, number)
        carried = sorted(self.live[self.block], key=lambda each: each.number)
        found += sequential_moves(self.code, [(r, self.now[r]) for r in carried if r in self.now])
        self.block.operations = [*found, self.block.operations[-1]]
        place = self.code.blocks.index(self.block) + 1
        self.code.blocks[place:place] = self.stubs

    def _value(self, operand: Operand) -> Operand:
        return self.now.get(operand, operand) if isinstance(operand, Register) else operand

    def _operation(self, old: MachineOperation, number: int) -> Iterator[MachineOperation]:
        operands = tuple(self._value(each) for each in old.operands)
        if old.name == "move":
            assert old.result is not None
            self.now[old.result] = operands[0]
            return
        place = old.place
        if place is not None and place.item is not None:
            place = dataclasses.replace(place, item=place.item.in_copy(number))
        new = MachineOperation(old.name, old.static, operands, None, place, old.target)
        new.others, new.pc, new.holds = old.others, old.pc, old.holds
        if old.result is not None:
            new.result = self.now[old.result] = self.code.register(old.result.kind)
        if old.name in EXITS:
            assert old.target is not None  # a `repeat` is made later
            new.target = self._stub(old.target, old.pc)
        yield new

    def _stub(self, target: MachineBlock, pc: int) -> MachineBlock:
        """A block that moves values to the registers that another one expects."""
        wanted = sorted(self.live[target], key=lambda each: each.number)
        found = list(
            sequential_moves(
                self.code, [(r, self.now[r]) for r in wanted if self.now.get(r, r) is not r]
            )
        )
        if not found:
            return target
        stub = MachineBlock(f"{target.label}.{self.code.registers}", found, target.is_cold)
        stub.operations.append(MachineOperation("jump", target=target, pc=pc))
        self.stubs.append(stub)
        return stub
