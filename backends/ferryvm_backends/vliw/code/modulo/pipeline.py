# SPDX-License-Identifier: Apache-2.0
"""Which loops of code are pipelined, and with how many rounds of the program's in one of theirs.

Candidates are loops that are one block. Several rounds are taken together where that brings the
bound down: three operations on two units take two cycles, six take three. A loop that is not
pipelined is unrolled, and there is a reason for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm_backends.vliw.code.bank import assign_files
from ferryvm_backends.vliw.code.liveness import Live, live_at_entry
from ferryvm_backends.vliw.code.modulo.bound import Bounds, bounds
from ferryvm_backends.vliw.code.modulo.expand import Pipelined, UnfitError, expand
from ferryvm_backends.vliw.code.modulo.graph import Round
from ferryvm_backends.vliw.code.modulo.schedule import schedule_round
from ferryvm_backends.vliw.code.modulo.table import Operand
from ferryvm_backends.vliw.code.operation import Code, MachineBlock, MachineOperation
from ferryvm_backends.vliw.code.unroll import rounds_of, unroll
from ferryvm_backends.vliw.machine.model import Machine

_ROUNDS = (1, 2, 3, 4, 6, 8)
"""Of the program's loop that are tried together."""
_LARGEST = 160
"""Operations of a round."""
_WORTH = 0.9
"""More rounds have to bring the bound down to less than this part of it."""
_SLOWEST = 2
"""How many times the bound an interval may be."""
_TRIES = 8


@dataclasses.dataclass
class LoopPlan:
    """What becomes of a loop that is one block."""

    block: MachineBlock
    operations: list[MachineOperation]
    """Of one round of the program's."""
    rounds: int
    bounds: Bounds
    pipelined: Pipelined | None
    reason: str = ""
    """Why it is not pipelined."""


class Loops:
    """The loops of code that are one block."""

    def __init__(self, code: Code, machine: Machine) -> None:
        """Pipelines what can be, and unrolls the others."""
        self.code, self.machine = code, machine
        live = live_at_entry(code)
        blocks = [block for block in code.blocks if _is_loop(block)]
        assign_files(code, machine, frozenset(blocks))
        self.plans = {block: self._plan(block, live) for block in blocks}

    @property
    def pipelined(self) -> dict[MachineBlock, Pipelined]:
        """Those that are."""
        return {b: p.pipelined for b, p in self.plans.items() if p.pipelined is not None}

    def before(self) -> tuple[Code, dict[MachineBlock, MachineBlock]]:
        """A copy of the code as if no loop were pipelined: what it means. And what is whose copy."""
        found = self.pipelined
        ways = {way for each in found.values() for way in each.ways}
        blocks = [block for block in self.code.blocks if block not in ways]
        copies = {b: MachineBlock(b.label, [], b.is_cold) for b in blocks}
        for block, copy in copies.items():
            operations = self.plans[block].operations if block in found else block.operations
            copy.operations = [_copied(each, copies) for each in operations]
        return dataclasses.replace(self.code, blocks=list(copies.values())), copies

    def give_up(self, reason: str) -> bool:
        """Have the largest pipelined loop take fewer rounds together, or not be pipelined; False if
        there is none."""
        found = self.pipelined
        if not found:
            return False
        block = max(found, key=lambda each: found[each].scheduled.length)
        plan = self.plans[block]
        ways = set(found[block].ways)
        self.code.blocks[:] = [each for each in self.code.blocks if each not in ways]
        block.operations = plan.operations
        self.plans[block] = self._plan(block, live_at_entry(self.code), plan.rounds - 1, reason)
        return True

    def _plan(
        self,
        block: MachineBlock,
        live: Live,
        most: int = _ROUNDS[-1],
        reason: str = "no schedule was found",
    ) -> LoopPlan:
        """What becomes of a loop with so many rounds together at most, or for which reason not."""
        rounds = self._rounds(block, live, most)
        if rounds is None:
            too_large = f"it has more than {_LARGEST} operations"
            return self._unrolled(block, live, reason if not most else too_large)
        loop = Round(block, live, rounds)
        least = bounds(loop, self.machine)
        operations = block.operations
        unbypassed: frozenset[Operand] = frozenset()
        for _ in range(_TRIES):
            slowest = _SLOWEST * least.least + self.machine.delay_slots
            found = schedule_round(loop, self.machine, least.least, slowest, unbypassed)
            if found is None:
                break
            try:
                pipelined = expand(self.code, found, self.machine)
            except UnfitError as error:
                if error.operand is None:
                    reason = "the files' ports do not allow the moves in front"
                    break
                unbypassed |= {error.operand}
                continue
            place = self.code.blocks.index(block) + 1
            self.code.blocks[place:place] = pipelined.ways
            return LoopPlan(block, operations, rounds, least, pipelined)
        return self._unrolled(block, live, reason)

    def _rounds(self, block: MachineBlock, live: Live, most: int) -> int | None:
        """How many rounds are taken together."""
        best, least = None, 0.0
        for rounds in (each for each in _ROUNDS if each <= most):
            loop = Round(block, live, rounds)
            if len(loop.nodes) > _LARGEST:
                break
            each = bounds(loop, self.machine).least / rounds
            if best is None or each < _WORTH * least:
                best, least = rounds, each
        return best

    def _unrolled(self, block: MachineBlock, live: Live, reason: str) -> LoopPlan:
        operations, rounds = block.operations, rounds_of(block)
        least = bounds(Round(block, live, rounds), self.machine)
        unroll(self.code, block, live, rounds)
        return LoopPlan(block, operations, rounds, least, None, reason)


def _is_loop(block: MachineBlock) -> bool:
    """Whether a block goes round; a function that calls itself does not."""
    calls = any(isinstance(o, MachineBlock) for each in block.operations for o in each.operands)
    return block.operations[-1].target is block and not block.is_cold and not calls


def _copied(
    operation: MachineOperation, copies: Mapping[MachineBlock, MachineBlock]
) -> MachineOperation:
    return dataclasses.replace(
        operation,
        operands=tuple(copies[o] if isinstance(o, MachineBlock) else o for o in operation.operands),
        target=None if operation.target is None else copies[operation.target],
        others=tuple(copies[each] for each in operation.others),
    )
