# SPDX-License-Identifier: Apache-2.0
"""Selection of the loops that are pipelined, and of their unroll factors.

Candidates are loops of one block. Iterations are unrolled before scheduling where that lowers the
bound per iteration: three operations on two units take two cycles, six take three. A loop that is
not pipelined is unrolled only, and the reason is recorded.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Mapping

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.liveness import Live, live_at_entry
from ferryvm_backends.vliw.code.modulo.attempt import IterationSchedule
from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration
from ferryvm_backends.vliw.code.modulo.expand import Pipelined, PrologueError, expand
from ferryvm_backends.vliw.code.modulo.initiation_interval import Bounds, bounds, critical_path
from ferryvm_backends.vliw.code.modulo.partial_schedule import Operand
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.code.modulo.schedule import PlacementBudget, schedule_iteration
from ferryvm_backends.vliw.code.modulo.spill import Spills, choose, preheader_of, reload
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Register,
)
from ferryvm_backends.vliw.code.program import LIMIT
from ferryvm_backends.vliw.code.register_file import FileAssignment
from ferryvm_backends.vliw.code.unroll import unroll, unroll_factor
from ferryvm_backends.vliw.machine.model import Machine

QUICK = "the code is made quickly"
"""The reason that no loop is pipelined where the level of optimisation is low."""


@dataclasses.dataclass
class LoopPlan:
    """The plan for a loop that is one block."""

    block: MachineBlock
    operations: list[MachineOperation]
    """Of one iteration of the program's."""
    iterations: int
    bounds: Bounds
    pipelined: Pipelined | None = None
    reason: str = ""
    """The reason that it is not pipelined."""
    interval: int = 0
    """Cycles from one iteration to the next, of one that is."""
    invariant_part: float = tuning.INVARIANT_PART
    reloads: Spills | None = None
    """Changes that reload registers in each iteration."""

    @property
    def rate(self) -> float:
        """Cycles for one iteration of the program's."""
        return self.interval / self.iterations

    def install(self, code: MachineCode) -> None:
        """Replace the loop by the pipelined one."""
        assert self.pipelined is not None
        if self.reloads is not None:
            self.reloads.redo()
        self.block.operations = [each.operation for each in self.pipelined.scheduled.placed]
        place = code.blocks.index(self.block) + 1
        code.blocks[place:place] = self.pipelined.stubs

    def undo(self) -> None:
        """Restore the program's operations of the block."""
        self.block.operations = self.operations
        if self.reloads is not None:
            self.reloads.undo()


@dataclasses.dataclass
class _Option:
    """So many iterations of the program's together."""

    iterations: int
    loop: Iteration
    bounds: Bounds

    @property
    def rate(self) -> float:
        """Cycles for one of them, at least."""
        return self.bounds.least / self.iterations


def _best_bound(options: list[_Option]) -> int:
    """The index of the best bound; more iterations must improve it considerably."""
    best = 0
    for number, option in enumerate(options):
        if option.rate < tuning.WORTH_UNROLLING * options[best].rate:
            best = number
    return best


def _longest_below(rate: float, option: _Option) -> int:
    """The longest interval of so many iterations that takes less than a rate."""
    return math.ceil(rate * option.iterations) - 1


class PipelinableLoops:
    """The loops of code that are one block."""

    def __init__(self, code: MachineCode, machine: Machine, is_quick: bool = False) -> None:
        """Pipelines suitable loops, and unrolls the others. `is_quick`: changes none."""
        self.code, self.machine = code, machine
        live = live_at_entry(code)
        blocks = [block for block in code.blocks if _is_loop(block)]
        FileAssignment(code, machine).run(frozenset(blocks))
        self.plans: dict[MachineBlock, LoopPlan] = {}
        self._waiting = 1
        """Loops that share the placements that are left."""
        self._given_up: Counter[MachineBlock] = Counter()
        """Number of times that each interval was raised."""
        self._bounds: dict[tuple[MachineBlock, int], Bounds] = {}
        """Of loops as the program has them, by iterations together."""
        self._placements = 0
        """Of operations, by all searches."""
        for place, block in enumerate(blocks):
            self._waiting = len(blocks) - place
            plan = self._unchanged(block, live) if is_quick else self._plan(block, live)
            self.plans[block] = plan

    @property
    def pipelined(self) -> dict[MachineBlock, Pipelined]:
        """The pipelined loops, by their blocks."""
        return {b: p.pipelined for b, p in self.plans.items() if p.pipelined is not None}

    @property
    def reloaded(self) -> int:
        """Registers that are loaded in each iteration."""
        return sum(len(p.reloads.stores) for p in self.plans.values() if p.reloads is not None)

    @property
    def registers(self) -> set[Register]:
        """Registers that the original blocks of pipelined loops read or set: an abandoned loop uses
        them again, and values for its exits are in registers."""
        operations = [o for block in self.pipelined for o in self.plans[block].operations]
        results = {o.result for o in operations if o.result is not None}
        return results.union(*(o.registers() for o in operations))

    def before(self) -> tuple[MachineCode, dict[MachineBlock, MachineBlock]]:
        """A copy of the code as if no loop were pipelined, as the reference for the prover, with
        the originals of copied blocks."""
        found = self.pipelined
        stubs = {stub for each in found.values() for stub in each.stubs}
        blocks = [block for block in self.code.blocks if block not in stubs]
        copies = {b: MachineBlock(b.label, [], b.is_cold) for b in blocks}
        for block, copy in copies.items():
            operations = self.plans[block].operations if block in found else block.operations
            copy.operations = [_copied(each, copies) for each in operations]
        return dataclasses.replace(self.code, blocks=list(copies.values())), copies

    def give_up(self, file: str, among: Collection[MachineBlock]) -> bool:
        """Reduce the registers of the pipelined loop that has the most in a file: with fewer
        iterations together, then with a longer interval or more that is loaded in each iteration,
        then not pipelined. False if there is none `among` some blocks."""
        found = {block: each for block, each in self.pipelined.items() if block in among}
        if not found:
            return False
        block = max(found, key=lambda each: _registers(found[each], file))
        plan = self.plans[block]
        stubs = set(found[block].stubs)
        self.code.blocks[:] = [each for each in self.code.blocks if each not in stubs]
        # It loads reloaded values again: they may not be in registers any more.
        block.operations = plan.operations
        reason, live = f"file {file} has too few registers", live_at_entry(self.code)
        if plan.iterations > 1:
            self.plans[block] = self._plan(block, live, plan.iterations - 1, reason)
            return True
        self._given_up[block] += 1
        times = self._given_up[block]
        if times > tuning.LONGER_TRIES:
            self.plans[block] = self._unrolled(block, live, reason)
            return True
        longer = plan.interval + max(1, times * plan.interval // tuning.LONGER_PART)
        self.plans[block] = self._plan(block, live, 1, reason, longer, plan.invariant_part * 0.8)
        return True

    def _plan(
        self,
        block: MachineBlock,
        live: Live,
        most: int = tuning.UNROLL_FACTORS[-1],
        reason: str = "no schedule was found",
        shortest: int = 1,
        invariant_part: float = tuning.INVARIANT_PART,
    ) -> LoopPlan:
        """The plan for a loop.

        `most`: the largest number of iterations together; `shortest`: the smallest interval;
        `reason`: the reason for not pipelining if there is no other; `invariant_part`: the part of
        the registers for invariants.
        """
        options = self._options(block, live, most)
        if not options:
            return self._unrolled(
                block, live, f"it has more than {tuning.LARGEST_ITERATION} operations"
            )
        first = _best_bound(options)
        while first >= 0 and not self._overlaps(options[first]):
            first -= 1
        if first < 0:
            return self._unrolled(block, live, "its iterations would hardly overlap")
        best: LoopPlan | None = None
        budget = PlacementBudget(
            (tuning.REGION_PLACEMENTS - self._placements) // min(self._waiting, 2)
        )
        worklist, goal = [first], tuning.MISSED_BOUND * options[first].rate
        while worklist and not budget.is_spent:
            number = worklist.pop()
            longest = None if best is None else _longest_below(best.rate, options[number])
            if longest is not None and longest < max(options[number].bounds.least, shortest):
                continue
            plan = self._attempt(
                block, live, options[number], shortest, invariant_part, budget, longest
            )
            reason = plan.reason or reason
            if plan.pipelined is None:
                if best is None and number:
                    worklist.append(number - 1)
            elif best is None or plan.rate < best.rate:
                best = plan
                if plan.rate > goal:
                    worklist += self._others(options, number, first, plan.rate)
        self._placements += budget.spent
        if best is None:
            return self._unrolled(block, live, LIMIT if budget.is_spent else reason)
        best.install(self.code)
        return best

    def _others(self, options: list[_Option], number: int, first: int, rate: float) -> list[int]:
        """Numbers of iterations with a better bound than the result for one of them."""
        found = []
        more = options[number + 1 : number + 2] if number >= first else []
        if more and len(more[0].loop.nodes) <= tuning.LARGEST_RETRIED:
            found.append(number + 1)
        if 0 < number <= first and options[number - 1].rate < rate:
            found.append(number - 1)
        return found

    def _overlaps(self, option: _Option) -> bool:
        path = critical_path(option.loop, self.machine)
        return (
            len(option.loop.nodes) <= tuning.SMALL_ITERATION
            or option.bounds.least <= tuning.MOST_OF_PATH * path
        )

    def _attempt(
        self,
        block: MachineBlock,
        live: Live,
        option: _Option,
        shortest: int,
        invariant_part: float,
        budget: PlacementBudget,
        longest_useful: int | None,
    ) -> LoopPlan:
        """A plan with so many iterations, not installed; with a reason if it is not pipelined.
        `longest_useful`: the longest interval that is better than that of another plan."""
        loop, least = option.loop, option.bounds.least
        start, path = max(least, shortest), critical_path(loop, self.machine)
        longest = max(tuning.LONGEST_INTERVAL * least, path)
        reloads = self._reloads(block, loop, start, invariant_part)
        if reloads is not None:
            loop = Iteration(block, live, option.iterations)
            now = bounds(loop, self.machine).least
            start, longest = max(start, now), max(longest, tuning.LONGEST_INTERVAL * now)
        if longest_useful is not None:
            longest = min(longest, longest_useful)
        original_bounds = self._bounds[block, option.iterations]
        plan = LoopPlan(
            block,
            block.operations,
            option.iterations,
            original_bounds,
            invariant_part=invariant_part,
            reloads=reloads,
        )
        unbypassed: frozenset[Operand] = frozenset()
        for _ in range(tuning.PROLOGUE_TRIES):
            failures: Counter[str] = Counter()
            found = schedule_iteration(
                loop, self.machine, start, longest, unbypassed, failures, budget
            )
            if found is None:
                if failures:
                    plan.reason = f"file {failures.most_common(1)[0][0]} has too few registers"
                break
            try:
                plan.pipelined = self._expanded(found)
                plan.interval = found.interval
                break
            except PrologueError as error:
                if not error.operands:
                    plan.reason = "the files' ports do not allow the preheader's moves"
                    break
                unbypassed |= error.operands
                start = found.interval  # with fewer bypasses shorter ones are as impossible
        if plan.pipelined is None and not plan.reason:
            plan.reason = "no schedule was found"
        plan.undo()
        return plan

    def _expanded(self, found: IterationSchedule) -> Pipelined:
        """The bundles of a loop. Raises PrologueError."""
        unfit: frozenset[Operand] = frozenset()
        while True:
            try:
                return expand(self.code, found, self.machine)
            except PrologueError as error:
                unfit |= error.operands
                if not error.operands or not found.partial.read_from_files(error.operands):
                    raise PrologueError(unfit) from None
                if Lifetimes(found.loop, self.machine, found.partial).highest()[0] > 1:
                    raise PrologueError(unfit) from None

    def _reloads(
        self, block: MachineBlock, loop: Iteration, interval: int, invariant_part: float
    ) -> Spills | None:
        """Reload some registers that a loop reads in each iteration."""
        chosen = choose(loop, self.machine, interval, invariant_part)
        preheader = preheader_of(self.code, block)
        # The stubs of an abandoned loop are removed with it.
        stubs = {stub for each in self.pipelined.values() for stub in each.stubs}
        if not chosen or preheader is None or preheader in stubs:
            return None
        return reload(self.code, block, preheader, chosen)

    def _options(self, block: MachineBlock, live: Live, most: int) -> list[_Option]:
        """Possible unroll factors."""
        found = []
        for iterations in (each for each in tuning.UNROLL_FACTORS if each <= most):
            loop = Iteration(block, live, iterations)
            if len(loop.nodes) > tuning.LARGEST_ITERATION:
                break
            least = bounds(loop, self.machine)
            self._bounds.setdefault((block, iterations), least)
            found.append(_Option(iterations, loop, least))
        return found

    def _unchanged(self, block: MachineBlock, live: Live) -> LoopPlan:
        """The plan of a loop in code that is made quickly."""
        least = bounds(Iteration(block, live), self.machine)
        return LoopPlan(block, block.operations, 1, least, reason=QUICK)

    def _unrolled(self, block: MachineBlock, live: Live, reason: str) -> LoopPlan:
        operations, iterations = block.operations, unroll_factor(block)
        least = self._bounds.get((block, iterations)) or bounds(
            Iteration(block, live, iterations), self.machine
        )
        unroll(self.code, block, live, iterations)
        return LoopPlan(block, operations, iterations, least, reason=reason)


def _is_loop(block: MachineBlock) -> bool:
    """True if a block branches to itself; a recursive function does not."""
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
    """Number of registers of a file that a loop sets."""
    results = {placed.operation.result for placed in pipelined.scheduled.placed}
    return sum(each is not None and each.file == file for each in results)
