# SPDX-License-Identifier: Apache-2.0
"""The proof that a program is equivalent to its code, on every path that control can take.

The prover starts at the first bundle of each block, with a term for each live register, and
executes the bundles symbolically until control reaches the first bundle of a block again. The
registers and the sequence of stores have to be those of the block's operations executed in order,
under the predicates that hold on the path.

The results and branches in flight when a block begins are its *context*. Each block is followed in
each context in which some path reaches it, from the entry of the program on; so what holds at the
end of each path holds always, by induction over paths. Bundles outside of blocks, such as those of
a pipelined loop, are executed as part of a path. In such a loop control may make a few iterations
more than the passes that overlap; longer paths are not followed.

The proof uses only two results of the scheduler: the starts of blocks, and the register of each
value.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from ferryvm_backends.vliw.code.liveness import live_at_entry
from ferryvm_backends.vliw.code.operation import (
    BRANCHES,
    EXITS,
    MachineBlock,
    MachineCode,
    Register,
)
from ferryvm_backends.vliw.code.program import Program, Read
from ferryvm_backends.vliw.prove.claim import Claim, ScheduleError
from ferryvm_backends.vliw.prove.explain import Explainer
from ferryvm_backends.vliw.prove.memory import MemoryAliasing
from ferryvm_backends.vliw.prove.reference import BlockExit, BlockExitKind, Reference
from ferryvm_backends.vliw.prove.resource import check_resources
from ferryvm_backends.vliw.prove.symbolic import (
    BranchTarget,
    PendingResult,
    SymbolicExecutor,
    SymbolicState,
)
from ferryvm_backends.vliw.prove.term import POISON, Term, Terms

_ITERATIONS = 4
"""Iterations of a block that jumps to itself that are compared, besides overlapped ones."""
_NEVER_LOOKED = "whether the time is over is never looked at"


def prove(code: MachineCode, program: Program, claim: Claim) -> None:
    """Raise ScheduleError unless a program is equivalent to its code, within the machine's
    resources.

    `code` as it was scheduled: its registers have files, and spilled ones are in memory.
    """
    check_resources(program)
    _Proof(code, program, claim).run()


@dataclasses.dataclass(frozen=True, slots=True)
class _Late:
    """A result that is written back after a block has started."""

    cycle: int
    unit: int
    written: Read | None
    register: Register | None
    """The register of the block that it is the value of, if of one."""
    bundle: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Context:
    """Results and branches in flight at the start of a block."""

    late: tuple[_Late, ...] = ()
    missing: frozenset[Register] = frozenset()
    """Registers whose values are yet to be written back."""
    busy: tuple[tuple[int, int], ...] = ()
    """Units that take nothing yet, with the cycles until they do."""


class _Proof:
    def __init__(self, code: MachineCode, program: Program, claim: Claim) -> None:
        self.code, self.program, self.claim = code, program, claim
        self.live = live_at_entry(code)
        self.terms = Terms()
        self.memory = MemoryAliasing(self.terms)
        self.follower = SymbolicExecutor(program, self.memory)
        self.explain = Explainer(self.terms)
        self.blocks = {place: block for block, place in claim.places.items()}
        self.references: dict[MachineBlock, Reference] = {}
        self.worklist: deque[tuple[MachineBlock, _Context]] = deque()
        self.known: set[tuple[MachineBlock, _Context]] = set()
        self.reached: set[MachineBlock] = set()

    def run(self) -> None:
        """Follow each block in each context."""
        first = self.code.blocks[0]
        if self.claim.places[first] != 0:
            raise ScheduleError(self.program.name, 0, f"the entry is not block {first.label}")
        self._check_words()
        for block in self.code.blocks:
            self._check_claim(block)
        for block in self.code.blocks:
            # Those that nothing leads to are followed, too, as if nothing was in flight.
            if block not in self.reached:
                self._enter(block, _Context())
            while self.worklist:
                self._block(*self.worklist.popleft())

    def _check_words(self) -> None:
        """Raise ScheduleError unless a program states the facts about its code that its entry
        needs."""
        code, program = self.code, self.program
        for name, claimed, found in (
            ("guards", program.guards, code.guards),
            ("words of spilled registers", program.spill_words, code.spills),
            ("bytes for calls", program.call_bytes, code.call_bytes),
        ):
            if claimed != found:
                said = f"the program tells of {claimed} {name}, and the code has {found}"
                raise ScheduleError(program.name, 0, said)

    def _check_claim(self, block: MachineBlock) -> None:
        """Raise ScheduleError unless a block has an end, and distinct places for its live
        registers."""
        place = self.claim.places[block]
        if not block.operations or block.operations[-1].name not in BRANCHES - EXITS:
            said = f"block {block.label} does not end with a jump or stop"
            raise ScheduleError(self.program.name, place, said)
        owners: dict[Read, Register] = {}
        for register in sorted(self.live[block], key=lambda each: each.number):
            found = self.claim.numbers.get(register)
            if found is None:
                said = f"{register}, which block {block.label} needs, stands nowhere"
                raise ScheduleError(self.program.name, place, said)
            if found in owners:
                said = f"{owners[found]} and {register} are both needed by block {block.label}"
                said += f" in {self.follower.place(found)}"
                raise ScheduleError(self.program.name, place, said)
            owners[found] = register

    def _enter(self, block: MachineBlock, context: _Context) -> None:
        if (block, context) not in self.known:
            self.known.add((block, context))
            self.reached.add(block)
            self.worklist.append((block, context))

    # --- a block ----------------------------------------------------------------------------

    def _block(self, block: MachineBlock, context: _Context) -> None:
        self.follower.block = block.label
        states = [self._start(block, context)]
        while states:
            for state in self.follower.cycle(states.pop()):
                if state.exited_by is not None:
                    self._arrive(state, block, None)
                elif state.at in self.blocks and not state.branches:
                    self._arrive(state, block, self.blocks[state.at])
                elif self._is_followed(state, block):
                    states.append(state)

    def _start(self, block: MachineBlock, context: _Context) -> SymbolicState:
        state = SymbolicState(self.claim.places[block])
        for register in self.live[block] - context.missing:
            state.registers[self.claim.numbers[register]] = self.terms.register(register)
        for each in context.late:
            value = POISON if each.register is None else self.terms.register(each.register)
            result = PendingResult(each.unit, each.written, value, each.bundle)
            state.pending[each.cycle] = (*state.pending.get(each.cycle, ()), result)
        state.ready = dict(context.busy)
        if block not in self.references:
            self.references[block] = Reference(block, self.claim, self.live, self.memory)
        return state

    def _most_passes(self) -> int:
        """Iterations of a block's meaning that are looked at, at most."""
        return _ITERATIONS + sum(
            each.iterations * (3 * each.stages + 4 * each.copies) for each in self.program.loops
        )

    def _is_followed(self, state: SymbolicState, block: MachineBlock) -> bool:
        """True if the further path is not known from an earlier one."""
        count = state.arrivals.get(state.at, 0)
        if count <= 1:
            return True
        loop = next((a for a in self.program.loops if a.start <= state.at < a.end), None)
        if loop is None:
            said = "control goes round here, and comes to no block"
            raise self._error(state, said)
        # When all overlapped iterations have ended, and once more; and operations in flight
        # comes again as it was.
        before, state.shape = state.shape, state.in_flight()
        is_known = count > -(-loop.stages // max(loop.copies, 1)) + 2 and before == state.shape
        if is_known and not state.has_looked and self._polls(block):
            raise self._error(state, f"{_NEVER_LOOKED} in a loop")
        return not is_known

    def _polls(self, block: MachineBlock) -> bool:
        return any(operation.name == "exit_expired" for operation in block.operations)

    # --- the end of a path ------------------------------------------------------------------

    def _arrive(
        self, state: SymbolicState, block: MachineBlock, target: MachineBlock | None
    ) -> None:
        """Compare the state with the block's meaning; `target`: the block that control has reached,
        if any."""
        most = self._most_passes()
        wrong = elsewhere = ""
        polls = False
        for block_exit in self.references[block].exits():
            if block_exit.kind is BlockExitKind.EXIT:
                predicate = self._predicate(state, block_exit)
                if predicate is None:
                    elsewhere = elsewhere or self._without_check(target, block_exit)
                    break
                if not block_exit.is_taken(predicate):
                    continue
            elif block_exit.kind is BlockExitKind.POLL:
                polls = True
                if not state.is_over:
                    continue
            if not self._is_there(state, block_exit, target):
                if block_exit.kind is not BlockExitKind.POLL and block_exit.targets != (block,):
                    elsewhere = elsewhere or self._elsewhere(target, block_exit)
            elif said := self._difference(state, block_exit):
                # The last look at the time is nearest to where the machine looked.
                wrong = said if block_exit.kind is BlockExitKind.POLL else wrong or said
            elif block_exit.kind is BlockExitKind.JUMP and polls and not state.has_looked:
                wrong = wrong or f"{_NEVER_LOOKED} on a path to block {block_exit.targets[0].label}"
            else:
                for each in block_exit.targets if target is None else (target,):
                    self._enter(each, self._context(state, block_exit, each))
                return
            most -= block_exit.kind is BlockExitKind.JUMP
            if block_exit.kind is BlockExitKind.EXIT or most < 0:
                break
        raise self._error(state, wrong or elsewhere or self._elsewhere(target, None))

    def _predicate(self, state: SymbolicState, block_exit: BlockExit) -> bool | None:
        assert block_exit.operand is not None
        bits = self.terms.bits(block_exit.operand)
        return state.predicates.get(block_exit.operand) if bits is None else bool(bits)

    def _is_there(
        self, state: SymbolicState, block_exit: BlockExit, target: MachineBlock | None
    ) -> bool:
        if target is not None:
            return block_exit.targets == (target,) and block_exit.kind is not BlockExitKind.COMPUTED
        assert state.exited_by is not None
        if state.exited_by.target is BranchTarget.STOP:
            return block_exit.kind is BlockExitKind.STOP
        return block_exit.kind is BlockExitKind.COMPUTED

    def _difference(self, state: SymbolicState, block_exit: BlockExit) -> str:
        """The difference at the end of a path; empty if there is none."""
        if block_exit.kind is BlockExitKind.COMPUTED:
            assert state.exited_by is not None
            assert block_exit.operand is not None
            if state.exited_by.operand != block_exit.operand:
                differ = self.explain.values(state.exited_by.operand, block_exit.operand)
                return f"where control goes to (pc {block_exit.operation.pc}) {differ}"
            if state.branches:
                return "a branch is in flight when control goes to a computed place"
            for each in block_exit.targets:
                if self.claim.places[each] not in self.program.returns:
                    return f"block {each.label} is not among what jumps to computed places reach"
        for target in block_exit.targets:
            for register in sorted(self.live[target], key=lambda each: each.number):
                found = self._coming(state, self.claim.numbers[register])[-1]
                if found != block_exit.values[register]:
                    place = self.follower.place(self.claim.numbers[register])
                    differ = self.explain.values(found, block_exit.values[register])
                    return f"{register} in {place}, which block {target.label} needs, {differ}"
        if state.trace != block_exit.trace:
            return self.explain.traces(state.trace, block_exit.trace) + f", {_by(block_exit)}"
        return ""

    def _coming(self, state: SymbolicState, place: Read) -> list[Term]:
        """The value of a register, now and after each pending write-back."""
        found = [state.registers.get(place, POISON)]
        for cycle in sorted(state.pending):
            for each in state.pending[cycle]:
                if each.written == place:
                    value = each.value
                    if each.guard is not None:
                        value = self.terms.choice(each.guard, value, found[-1])
                    found.append(value)
        return found

    def _context(
        self, state: SymbolicState, block_exit: BlockExit, target: MachineBlock
    ) -> _Context:
        owners = {self.claim.numbers[register]: register for register in self.live[target]}
        missing = frozenset(
            register
            for place, register in owners.items()
            if state.registers.get(place, POISON) != block_exit.values[register]
        )
        late = []
        coming = {place: iter(self._coming(state, place)[1:]) for place in owners}
        for cycle in sorted(state.pending):
            for each in state.pending[cycle]:
                register = None
                if each.written in owners and each.written is not None:
                    register = owners[each.written]
                    if next(coming[each.written]) != block_exit.values[register]:
                        register = None
                late.append(
                    _Late(cycle - state.cycle, each.unit, each.written, register, each.bundle)
                )
        busy = sorted((u, c - state.cycle) for u, c in state.ready.items() if c > state.cycle)
        return _Context(tuple(late), missing, tuple(busy))

    # --- messages ---------------------------------------------------------------------------

    def _elsewhere(self, target: MachineBlock | None, block_exit: BlockExit | None) -> str:
        there = "leaves otherwise" if target is None else f"goes to block {target.label}"
        if block_exit is None:
            return f"control {there}, and the code does not"
        return f"control {there}, and should leave {_by(block_exit)}"

    def _without_check(self, target: MachineBlock | None, block_exit: BlockExit) -> str:
        assert block_exit.operand is not None
        there = "leaves" if target is None else f"goes to block {target.label}"
        operand = self.explain.term(block_exit.operand)
        return f"control {there} without a check of {operand}, {_by(block_exit)}"

    def _error(self, state: SymbolicState, said: str) -> ScheduleError:
        return ScheduleError(
            self.program.name, state.last, said, block=self.follower.block, cycle=state.cycle
        )


def _by(block_exit: BlockExit) -> str:
    target = f" to {block_exit.targets[0].label}" if len(block_exit.targets) == 1 else ""
    return f"by the {block_exit.operation.name} (pc {block_exit.operation.pc}){target}"
