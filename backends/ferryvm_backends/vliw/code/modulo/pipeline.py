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
from ferryvm_backends.vliw.code.modulo.bound import Bounds, bounds, critical_path
from ferryvm_backends.vliw.code.modulo.expand import Pipelined, UnfitError, expand
from ferryvm_backends.vliw.code.modulo.graph import Round
from ferryvm_backends.vliw.code.modulo.schedule import schedule_round
from ferryvm_backends.vliw.code.modulo.table import Operand
from ferryvm_backends.vliw.code.operation import (
    Code,
    MachineBlock,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.unroll import rounds_of, unroll
from ferryvm_backends.vliw.machine.model import Machine

_ROUNDS = (1, 2, 3, 4, 6, 8)
"""Of the program's loop that are tried together."""
_LARGEST = 160
"""Operations of a round."""
_WORTH = 0.9
"""More rounds have to bring the bound down to less than this part of it."""
_SLOWEST = 2
"""How many times the bound an interval may be, if what one round takes is not more."""
_LONGER = 5
"""Quarters of an interval that the next one is that is tried where registers are too few."""
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
    interval: int = 0
    """Cycles from one round to the next, of one that is."""


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

    @property
    def registers(self) -> set[Register]:
        """Those that pipelined loops read or set as they were: if one is given up it does so again,
        and what its exits need is in registers."""
        operations = [o for block in self.pipelined for o in self.plans[block].operations]
        results = {o.result for o in operations if o.result is not None}
        return results.union(*(o.registers() for o in operations))

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

    def give_up(self, file: str) -> bool:
        """Have the pipelined loop with the most registers in a file take fewer: with fewer rounds
        together, then with a longer interval, then not pipelined. False if there is none."""
        found = self.pipelined
        if not found:
            return False
        block = max(found, key=lambda each: _registers(found[each], file))
        plan = self.plans[block]
        ways = set(found[block].ways)
        self.code.blocks[:] = [each for each in self.code.blocks if each not in ways]
        block.operations = plan.operations
        reason, live = f"file {file} has too few registers", live_at_entry(self.code)
        if plan.rounds > 1:
            self.plans[block] = self._plan(block, live, plan.rounds - 1, reason)
        else:
            longer = -(-_LONGER * plan.interval // 4)
            self.plans[block] = self._plan(block, live, 1, reason, longer)
        return True

    def _plan(
        self,
        block: MachineBlock,
        live: Live,
        most: int = _ROUNDS[-1],
        reason: str = "no schedule was found",
        shortest: int = 1,
    ) -> LoopPlan:
        """What becomes of a loop.

        `most`: rounds together; `shortest`: interval; `reason`: of what becomes of it where nothing
        else keeps it from being pipelined.
        """
        best = self._rounds(block, live, most)
        if best is None:
            return self._unrolled(block, live, f"it has more than {_LARGEST} operations")
        rounds, loop, least = best
        begin = max(least.least, shortest)
        longest = max(_SLOWEST * least.least, critical_path(loop, self.machine))
        operations = block.operations
        unbypassed: frozenset[Operand] = frozenset()
        for _ in range(_TRIES):
            found = schedule_round(loop, self.machine, begin, longest, unbypassed)
            if found is None:
                if rounds > 1:
                    return self._plan(block, live, rounds - 1, reason)
                break
            if found.interval > begin and self._is_as_good(block, live, rounds, found.interval):
                return self._plan(block, live, rounds - 1, reason, shortest)
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
            return LoopPlan(block, operations, rounds, least, pipelined, "", found.interval)
        return self._unrolled(block, live, reason)

    def _is_as_good(self, block: MachineBlock, live: Live, rounds: int, interval: int) -> bool:
        """Whether fewer rounds together could do as well as so many in an interval."""
        fewer = self._rounds(block, live, rounds - 1)
        return fewer is not None and fewer[2].least * rounds <= interval * fewer[0]

    def _rounds(
        self, block: MachineBlock, live: Live, most: int
    ) -> tuple[int, Round, Bounds] | None:
        """How many rounds are taken together, with their graph and its bounds."""
        best, rate = None, 0.0
        for rounds in (each for each in _ROUNDS if each <= most):
            loop = Round(block, live, rounds)
            if len(loop.nodes) > _LARGEST:
                break
            least = bounds(loop, self.machine)
            if best is None or least.least / rounds < _WORTH * rate:
                best, rate = (rounds, loop, least), least.least / rounds
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


def _registers(pipelined: Pipelined, file: str) -> int:
    """How many registers of a file a loop sets."""
    results = {placed.operation.result for placed in pipelined.scheduled.placed}
    return sum(each is not None and each.file == file for each in results)
