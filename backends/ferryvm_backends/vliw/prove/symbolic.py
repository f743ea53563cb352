# SPDX-License-Identifier: Apache-2.0
"""Symbolic execution of bundles: the timing rules of the machine, on terms.

    write-back ─> operands ─> issue ─> stores ─> branches ─> the next bundle

This is `machine/model.py` once more, for all inputs at once: a branch on an unknown predicate
splits the state into one in which it holds and one in which it does not. (King: Symbolic Execution
and Program Testing, CACM 1976.)

Several unconditional branches can be in flight together; each takes effect in its own turn, and so
does an exit behind them, when control is at their targets. While an exit is in flight, later
branches do nothing.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from ferryvm_backends.vliw.code.operation import BRANCHES, MemoryOperand, work_of
from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot, Source
from ferryvm_backends.vliw.prove.claim import ScheduleError
from ferryvm_backends.vliw.prove.memory import MemoryAliasing
from ferryvm_backends.vliw.prove.resource import predicate_of
from ferryvm_backends.vliw.prove.term import POISON, AccessNumber, Guard, Term, Trace


@dataclasses.dataclass(frozen=True, slots=True)
class PendingResult:
    """A result in flight."""

    unit: int
    written: Read | None
    """The register to which it is written back, if any."""
    value: Term
    bundle: int
    """The bundle that it was issued in."""
    guard: Guard | None = None


class BranchTarget(enum.Enum):
    """The target of a branch to a bundle that the program does not name."""

    STOP = "stop"
    COMPUTED = "computed"


@dataclasses.dataclass(frozen=True, slots=True)
class PendingBranch:
    """A branch in flight."""

    cycle: int
    """In which control is at its target."""
    target: int | BranchTarget
    bundle: int
    """The bundle that it was issued in."""
    operand: Term = POISON
    """The target of a computed jump."""
    is_exit: bool = False
    """True if later branches have no effect."""


@dataclasses.dataclass(slots=True)
class SymbolicState:
    """The machine between two cycles. Tuples in it are never changed, so copies are cheap."""

    at: int
    """The bundle that is next."""
    cycle: int = 0
    registers: dict[Read, Term] = dataclasses.field(default_factory=dict)
    """Registers that are missing were never set; likewise in the other fields."""
    outputs: dict[int, Term] = dataclasses.field(default_factory=dict)
    pending: dict[int, tuple[PendingResult, ...]] = dataclasses.field(default_factory=dict)
    """By the first cycle that sees the results."""
    ready: dict[int, int] = dataclasses.field(default_factory=dict)
    """The first cycle in which a unit takes its next operation."""
    branches: tuple[PendingBranch, ...] = ()
    """The branches in flight, the next one first."""
    exited_by: PendingBranch | None = None
    """The branch by which control has left the bundles of the program."""
    last: int = -1
    """The bundle of the last taken branch."""
    trace: Trace = ()
    predicates: dict[Term, bool] = dataclasses.field(default_factory=dict)
    """Values of predicates that are known on the path."""
    is_over: bool = False
    """True if the time slice was found to be over."""
    has_looked: bool = False
    """True if the time slice was checked."""
    arrivals: dict[int, int] = dataclasses.field(default_factory=dict)
    """Number of arrivals at each bundle by a branch."""
    passes: dict[MemoryOperand, int] = dataclasses.field(default_factory=dict)
    """Number of executions of each access by an item, one in each pass of a loop."""
    shape: object = None
    """State in flight at the last arrival at a loop's head."""

    def in_flight(self) -> object:
        """Results in flight and units that are at work, whatever the values."""
        pending = [
            (cycle - self.cycle, each.unit, each.written)
            for cycle in sorted(self.pending)
            for each in self.pending[cycle]
        ]
        ready = sorted((u, c - self.cycle) for u, c in self.ready.items() if c > self.cycle)
        return pending, ready

    def copy(self) -> SymbolicState:
        """A state that can be changed by itself."""
        return dataclasses.replace(
            self,
            registers=self.registers.copy(),
            outputs=self.outputs.copy(),
            pending=self.pending.copy(),
            ready=self.ready.copy(),
            predicates=self.predicates.copy(),
            arrivals=self.arrivals.copy(),
            passes=self.passes.copy(),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """A slot, with its invariant properties."""

    slot: Slot
    name: int
    """The number of its operation."""
    latency: int
    interval: int
    place: MemoryOperand | None
    constants: tuple[Term | None, ...]
    """For each source its term if it is a constant."""


class SymbolicExecutor:
    """Follows the bundles of a program, whose resources were checked."""

    def __init__(self, program: Program, memory: MemoryAliasing) -> None:
        self.program, self.memory, self.terms = program, memory, memory.terms
        self.machine = program.machine
        self._steps: dict[int, tuple[_Step, ...]] = {}
        self.block = ""
        """The block that following began in, for messages."""

    def cycle(self, state: SymbolicState) -> list[SymbolicState]:
        """The states after the next bundle; the state that is given is one of them, and changed."""
        if not 0 <= state.at < len(self.program.bundles):
            raise ScheduleError(
                self.program.name,
                state.last,
                f"control comes to bundle {state.at} after it, which is not there",
                block=self.block,
                cycle=state.cycle,
            )
        self._write_back(state)
        steps = self._bundle(state.at)
        given = [self._operands(state, step) for step in steps]
        guards = [self._guard(state, step) for step in steps]
        trace = state.trace  # loads see memory as it is before the stores of the cycle
        stores: list[int] = []
        for step, operands, guard in zip(steps, given, guards, strict=True):
            if step.slot.has_result:
                self._issue(state, step, self._result(state, step, operands, guard, trace), guard)
            else:
                self._take(state, step)
            if step.slot.name == "store":
                assert step.place is not None
                access = self._access(state, step.place, operands[0], guard)
                for other in stores:
                    if not self.memory.are_apart(access, other):
                        raise self._error(state, "two stores that may overlap in one cycle")
                stores.append(access)
                store = self.terms.store(access, operands[1], guard)
                state.trace = self.memory.after(state.trace, store)
        found = [state]
        for step, operands in zip(steps, given, strict=True):
            if step.slot.name in BRANCHES:
                found += self._branch(state, step.slot, operands)
        for each in found:
            self._advance(each)
        return found

    # --- time -------------------------------------------------------------------------------

    def _write_back(self, state: SymbolicState) -> None:
        for each in state.pending.pop(state.cycle, ()):
            value = each.value
            if each.written is not None:
                if each.guard is not None:
                    old = state.registers.get(each.written, POISON)
                    value = self.terms.choice(each.guard, each.value, old)
                state.registers[each.written] = value
            if each.guard is not None:
                old = state.outputs.get(each.unit, POISON)
                value = self.terms.choice(each.guard, each.value, old)
            state.outputs[each.unit] = value

    def _take(self, state: SymbolicState, step: _Step) -> None:
        """Reserve a unit."""
        unit = step.slot.unit
        ready = state.ready.get(unit, 0)
        if ready > state.cycle:
            raise self._error(
                state,
                f"unit {self.machine.units[unit].name} is not ready for {step.slot.name} "
                f"(pc {step.slot.pc}) until {ready - state.cycle} cycles later",
            )
        if step.interval > 1:
            state.ready[unit] = state.cycle + step.interval

    def _issue(self, state: SymbolicState, step: _Step, value: Term, guard: Guard | None) -> None:
        self._take(state, step)
        slot, cycle = step.slot, state.cycle + step.latency
        beside = state.pending.get(cycle, ())
        unit, written = self.machine.units[slot.unit], slot.written
        same = 1
        for other in beside:
            if other.unit == slot.unit:
                raise self._error(
                    state,
                    f"the result of {slot.name} (pc {slot.pc}) on unit {unit.name} is written back "
                    f"together with the unit's one that was issued in bundle {other.bundle}",
                )
            if written is not None and other.written is not None:
                same += other.written.file == written.file
                if other.written == written:
                    raise self._error(
                        state,
                        f"the result of {slot.name} (pc {slot.pc}) is written to {self.place(written)} "
                        f"together with one that was issued in bundle {other.bundle}",
                    )
        if written is not None and same > self.machine.files[written.file].write_ports:
            file = self.machine.files[written.file]
            raise self._error(
                state,
                f"{same} results are written to file {file.name} together, {step.latency} cycles later, "
                f"which has {file.write_ports} ports to write",
            )
        result = PendingResult(slot.unit, written, value, state.at, guard)
        state.pending[cycle] = (*beside, result)

    def _branch(
        self, state: SymbolicState, slot: Slot, operands: Sequence[Term]
    ) -> list[SymbolicState]:
        """Put a branch in flight; returns the state in which an exit was taken."""
        if state.branches and state.branches[-1].is_exit:
            return []
        cycle = state.cycle + self.machine.delay_slots + 1
        target: int | BranchTarget = BranchTarget.STOP if slot.target is None else slot.target
        leaving = PendingBranch(cycle, target, state.at, is_exit=True)
        match slot.name:
            case "exit" | "exit_unless":
                return self._exit(state, leaving, slot, operands[0])
            case "exit_expired":
                return self._look(state, leaving, None)
            case "repeat":
                assert slot.again is not None
                again = PendingBranch(cycle, slot.again, state.at)
                if slot.target is not None:
                    return self._look(state, leaving, again)
                state.branches += (again,)
            case "jump_to":
                state.branches += (
                    PendingBranch(cycle, BranchTarget.COMPUTED, state.at, operands[0]),
                )
            case _:
                state.branches += (PendingBranch(cycle, target, state.at),)
        return []

    def _look(
        self, state: SymbolicState, leaving: PendingBranch, again: PendingBranch | None
    ) -> list[SymbolicState]:
        """Check the time limit; once it is exceeded, it remains so."""
        state.has_looked = True
        over = state if state.is_over else state.copy()
        over.branches += (leaving,)
        over.is_over = True
        if over is state:
            return []
        state.branches += () if again is None else (again,)
        return [over]

    def _exit(
        self, state: SymbolicState, branch: PendingBranch, slot: Slot, operand: Term
    ) -> list[SymbolicState]:
        if operand == POISON:
            raise self._error(state, f"{slot.name} (pc {slot.pc}) depends on what was never set")
        kind = slot.name == "exit"
        bits = self.terms.bits(operand)
        predicate = state.predicates.get(operand) if bits is None else bool(bits)
        if predicate is not None:
            state.branches += (branch,) if predicate == kind else ()
            return []
        taken = state.copy()
        taken.branches += (branch,)
        taken.predicates[operand], state.predicates[operand] = kind, not kind
        return [taken]

    def _advance(self, state: SymbolicState) -> None:
        state.cycle += 1
        state.at += 1
        if state.branches and state.branches[0].cycle == state.cycle:
            branch, *rest = state.branches
            state.branches = tuple(rest)
            self._arrive(state, branch)

    def _arrive(self, state: SymbolicState, branch: PendingBranch) -> None:
        state.last = branch.bundle
        if isinstance(branch.target, int):
            state.at = branch.target
            state.arrivals[state.at] = state.arrivals.get(state.at, 0) + 1
        else:
            state.exited_by = branch

    # --- values -----------------------------------------------------------------------------

    def _bundle(self, number: int) -> tuple[_Step, ...]:
        found = self._steps.get(number)
        if found is None:
            found = tuple(map(self._step, self.program.bundles[number]))
            self._steps[number] = found
        return found

    def _step(self, slot: Slot) -> _Step:
        timing = self.machine.units[slot.unit].work[work_of(slot.name, slot.static)]
        constants = tuple(
            self.terms.constant(source.bits) if isinstance(source, Immediate) else None
            for source in slot.sources
        )
        name = self.terms.name(slot.name, slot.static)
        return _Step(slot, name, timing.latency, timing.interval, slot.place, constants)

    def _read(self, state: SymbolicState, source: Source) -> Term:
        match source:
            case Read():
                return state.registers.get(source, POISON)
            case Bypass(unit):
                return state.outputs.get(unit, POISON)
            case Immediate(bits):
                return self.terms.constant(bits)

    def _operands(self, state: SymbolicState, step: _Step) -> list[Term]:
        return [
            self._read(state, source) if constant is None else constant
            for source, constant in zip(step.slot.sources, step.constants, strict=True)
        ]

    def _guard(self, state: SymbolicState, step: _Step) -> Guard | None:
        predicate = predicate_of(step.slot)
        if predicate is None:
            return None
        return Guard(self._read(state, predicate.source), predicate.holds)

    def _access(
        self, state: SymbolicState, place: MemoryOperand, address: Term, guard: Guard | None
    ) -> AccessNumber:
        """The bytes that an operation accesses. All bundles with an operation of a pipelined loop
        share its place. A wrong number of a pass can prove nothing: the block's meaning has no such
        access."""
        number = state.passes.get(place, 0)
        if place.item is not None:
            state.passes[place] = number + 1
        return self.terms.access(place, address, guard, number)

    def _result(
        self,
        state: SymbolicState,
        step: _Step,
        operands: list[Term],
        guard: Guard | None,
        trace: Trace,
    ) -> Term:
        terms = self.terms
        if step.place is not None:
            access = self._access(state, step.place, operands[0], guard)
            return terms.load(access, self.memory.seen(trace, access))
        if step.slot.name == "move":
            return operands[0]
        if guard is not None:
            operands = [terms.under(guard, each) for each in operands]
        return terms.apply(step.name, operands)

    # --- messages ---------------------------------------------------------------------------

    def place(self, register: Read) -> str:
        """A register as schedules show it."""
        return f"{self.machine.files[register.file].name}.{register.number}"

    def _error(self, state: SymbolicState, said: str) -> ScheduleError:
        return ScheduleError(self.program.name, state.at, said, block=self.block, cycle=state.cycle)
