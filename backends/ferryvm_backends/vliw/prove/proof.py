# SPDX-License-Identifier: Apache-2.0
"""The proof that a program does what its code says, on every path that control can take.

The prover starts at the first bundle of each block, with a term for each live register, and
executes the bundles symbolically until control reaches the first bundle of a block again. The
registers and the sequence of stores have to be those of the block's operations executed in order,
under the predicates that hold on the path.

The results and branches in flight when a block begins are its *context*. Each block is followed in
each context in which some path reaches it, from the entry of the program on; so what holds at the
end of each path holds always, by induction over paths. Bundles outside of blocks, such as those of
a pipelined loop, are executed as part of a path. In such a loop control may make a few iterations
more than the passes that overlap; longer paths are not followed.

The proof takes only two things from the scheduler: where blocks begin, and which register holds
what.
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
from ferryvm_backends.vliw.prove.reference import Leaves, Reference, WayOut
from ferryvm_backends.vliw.prove.resource import check_resources
from ferryvm_backends.vliw.prove.symbolic import (
    BranchTarget,
    PendingResult,
    SymbolicExecutor,
    SymbolicState,
)
from ferryvm_backends.vliw.prove.term import POISON, Term, Terms

_ITERATIONS = 4
"""Rounds of a block that jumps to itself that are looked at, besides those under way."""
_NEVER_LOOKED = "whether the time is over is never looked at"


def prove(code: MachineCode, program: Program, claim: Claim) -> None:
    """Raise ScheduleError unless a program does what its code says, within what the machine has.

    `code` as it was scheduled: its registers have files, and those there were too few of are in
    memory.
    """
    check_resources(program)
    _Proof(code, program, claim).run()


@dataclasses.dataclass(frozen=True, slots=True)
class _Late:
    """A result that lands after a block began."""

    cycle: int
    unit: int
    written: Read | None
    register: Register | None
    """The register of the block that it is the value of, if of one."""
    bundle: int


@dataclasses.dataclass(frozen=True, slots=True)
class _Context:
    """Results and branches in flight when a block begins."""

    late: tuple[_Late, ...] = ()
    missing: frozenset[Register] = frozenset()
    """Registers whose values are yet to land."""
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
        self.left: deque[tuple[MachineBlock, _Context]] = deque()
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
            # Those that nothing leads to are followed, too, as if nothing was on its way.
            if block not in self.reached:
                self._enter(block, _Context())
            while self.left:
                self._block(*self.left.popleft())

    def _check_words(self) -> None:
        """Raise ScheduleError unless a program tells of its code what whoever enters it needs."""
        code, program = self.code, self.program
        for name, told, found in (
            ("guards", program.guards, code.guards),
            ("words of spilled registers", program.spill_words, code.spills),
            ("bytes for calls", program.call_bytes, code.call_bytes),
        ):
            if told != found:
                said = f"the program tells of {told} {name}, and the code has {found}"
                raise ScheduleError(program.name, 0, said)

    def _check_claim(self, block: MachineBlock) -> None:
        """Raise ScheduleError unless a block has an end, and what it needs places of its own."""
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
            self.left.append((block, context))

    # --- a block ----------------------------------------------------------------------------

    def _block(self, block: MachineBlock, context: _Context) -> None:
        self.follower.block = block.label
        left = [self._start(block, context)]
        while left:
            for state in self.follower.cycle(left.pop()):
                if state.left is not None:
                    self._arrive(state, block, None)
                elif state.at in self.blocks and not state.branches:
                    self._arrive(state, block, self.blocks[state.at])
                elif self._is_followed(state, block):
                    left.append(state)

    def _start(self, block: MachineBlock, context: _Context) -> SymbolicState:
        state = SymbolicState(self.claim.places[block])
        for register in self.live[block] - context.missing:
            state.registers[self.claim.numbers[register]] = self.terms.register(register)
        for each in context.late:
            value = POISON if each.register is None else self.terms.register(each.register)
            landing = PendingResult(each.unit, each.written, value, each.bundle)
            state.landing[each.cycle] = (*state.landing.get(each.cycle, ()), landing)
        state.ready = dict(context.busy)
        if block not in self.references:
            self.references[block] = Reference(block, self.claim, self.live, self.memory)
        return state

    def _is_followed(self, state: SymbolicState, block: MachineBlock) -> bool:
        """True if what a way does further on is not known from what it did before."""
        count = state.arrivals.get(state.at, 0)
        if count <= 1:
            return True
        loop = next((a for a in self.program.loops if a.begin <= state.at < a.end), None)
        if loop is None:
            said = "control goes round here, and comes to no block"
            raise self._error(state, said)
        # When all passes that were under way have ended, and once more; and what is on its way
        # comes again as it was.
        before, state.shape = state.shape, state.on_its_way()
        is_known = count > -(-loop.stages // max(loop.copies, 1)) + 2 and before == state.shape
        if is_known and not state.has_looked and self._polls(block):
            raise self._error(state, f"{_NEVER_LOOKED} in a loop")
        return not is_known

    def _polls(self, block: MachineBlock) -> bool:
        return any(operation.name == "exit_expired" for operation in block.operations)

    # --- the end of a way -------------------------------------------------------------------

    def _arrive(
        self, state: SymbolicState, block: MachineBlock, target: MachineBlock | None
    ) -> None:
        """Compare with what the block means; `target`: where control is, if at a block."""
        loops = self.program.loops
        most = _ITERATIONS + sum(
            each.iterations * (3 * each.stages + 4 * each.copies) for each in loops
        )
        wrong = elsewhere = ""
        polls = False
        for way in self.references[block].ways():
            if way.leaves is Leaves.EXIT:
                predicate = self._predicate(state, way)
                if predicate is None:
                    elsewhere = elsewhere or self._unasked(target, way)
                    break
                if not way.is_taken(predicate):
                    continue
            elif way.leaves is Leaves.POLL:
                polls = True
                if not state.is_over:
                    continue
            if not self._is_there(state, way, target):
                if way.leaves is not Leaves.POLL and way.targets != (block,):
                    elsewhere = elsewhere or self._elsewhere(target, way)
            elif said := self._difference(state, way):
                # The last look at the time is nearest to where the machine looked.
                wrong = said if way.leaves is Leaves.POLL else wrong or said
            elif way.leaves is Leaves.JUMP and polls and not state.has_looked:
                wrong = wrong or f"{_NEVER_LOOKED} on a way to block {way.targets[0].label}"
            else:
                for each in way.targets if target is None else (target,):
                    self._enter(each, self._context(state, way, each))
                return
            most -= way.leaves is Leaves.JUMP
            if way.leaves is Leaves.EXIT or most < 0:
                break
        raise self._error(state, wrong or elsewhere or self._elsewhere(target, None))

    def _predicate(self, state: SymbolicState, way: WayOut) -> bool | None:
        assert way.asked is not None
        bits = self.terms.bits(way.asked)
        return state.predicates.get(way.asked) if bits is None else bool(bits)

    def _is_there(self, state: SymbolicState, way: WayOut, target: MachineBlock | None) -> bool:
        if target is not None:
            return way.targets == (target,) and way.leaves is not Leaves.COMPUTED
        assert state.left is not None
        if state.left.target is BranchTarget.STOP:
            return way.leaves is Leaves.STOP
        return way.leaves is Leaves.COMPUTED

    def _difference(self, state: SymbolicState, way: WayOut) -> str:
        """The difference at the end of a path; empty if there is none."""
        if way.leaves is Leaves.COMPUTED:
            assert state.left is not None
            assert way.asked is not None
            if state.left.operand != way.asked:
                differ = self.explain.values(state.left.operand, way.asked)
                return f"where control goes to (pc {way.operation.pc}) {differ}"
            if state.branches:
                return "a branch is on its way when control goes to a computed place"
            for each in way.targets:
                if self.claim.places[each] not in self.program.returns:
                    return f"block {each.label} is not among what jumps to computed places reach"
        for target in way.targets:
            for register in sorted(self.live[target], key=lambda each: each.number):
                found = self._coming(state, self.claim.numbers[register])[-1]
                if found != way.values[register]:
                    place = self.follower.place(self.claim.numbers[register])
                    differ = self.explain.values(found, way.values[register])
                    return f"{register} in {place}, which block {target.label} needs, {differ}"
        if state.trace != way.trace:
            return self.explain.traces(state.trace, way.trace) + f", {_by(way)}"
        return ""

    def _coming(self, state: SymbolicState, place: Read) -> list[Term]:
        """The value of a register, now and after each pending write-back."""
        found = [state.registers.get(place, POISON)]
        for cycle in sorted(state.landing):
            for each in state.landing[cycle]:
                if each.written == place:
                    value = each.value
                    if each.guard is not None:
                        value = self.terms.choice(each.guard, value, found[-1])
                    found.append(value)
        return found

    def _context(self, state: SymbolicState, way: WayOut, target: MachineBlock) -> _Context:
        owners = {self.claim.numbers[register]: register for register in self.live[target]}
        missing = frozenset(
            register
            for place, register in owners.items()
            if state.registers.get(place, POISON) != way.values[register]
        )
        late = []
        coming = {place: iter(self._coming(state, place)[1:]) for place in owners}
        for cycle in sorted(state.landing):
            for each in state.landing[cycle]:
                register = None
                if each.written in owners and each.written is not None:
                    register = owners[each.written]
                    if next(coming[each.written]) != way.values[register]:
                        register = None
                late.append(
                    _Late(cycle - state.cycle, each.unit, each.written, register, each.bundle)
                )
        busy = sorted((u, c - state.cycle) for u, c in state.ready.items() if c > state.cycle)
        return _Context(tuple(late), missing, tuple(busy))

    # --- messages ---------------------------------------------------------------------------

    def _elsewhere(self, target: MachineBlock | None, way: WayOut | None) -> str:
        there = "leaves otherwise" if target is None else f"goes to block {target.label}"
        if way is None:
            return f"control {there}, and the code does not"
        return f"control {there}, and should leave {_by(way)}"

    def _unasked(self, target: MachineBlock | None, way: WayOut) -> str:
        assert way.asked is not None
        there = "leaves" if target is None else f"goes to block {target.label}"
        asked = self.explain.term(way.asked)
        return f"control {there} without {asked} being asked, {_by(way)}"

    def _error(self, state: SymbolicState, said: str) -> ScheduleError:
        return ScheduleError(
            self.program.name, state.last, said, block=self.follower.block, cycle=state.cycle
        )


def _by(way: WayOut) -> str:
    target = f" to {way.targets[0].label}" if len(way.targets) == 1 else ""
    return f"by the {way.operation.name} (pc {way.operation.pc}){target}"
