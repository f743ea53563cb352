# SPDX-License-Identifier: Apache-2.0
"""The machine, interpreted cycle by cycle as `machine/model.py` defines it: slow and simple.

    fetch the bundle ─> write-back ─> operands ─> issue ─> stores ─> branch

The interpreter shares nothing with the scheduler. What a schedule must not do is an error here: two
writes through one port, two results of one unit in one cycle, a constant or read too many.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict, deque
from collections.abc import Iterator

import numpy as np

from ferryvm_backends.vliw.code.operation import BRANCHES, work_of
from ferryvm_backends.vliw.code.program import (
    Bundle,
    Bypass,
    Immediate,
    Program,
    Read,
    Slot,
    Source,
)
from ferryvm_backends.vliw.simulate.arithmetic import compute
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import HazardError, Issue, RunMetrics

_MASK = (1 << 64) - 1


@dataclasses.dataclass
class _Branch:
    """A branch in flight."""

    due: int
    """The last cycle before it takes effect."""
    target: int | None
    """The bundle at which control continues; None: nowhere."""
    is_exit: bool


@dataclasses.dataclass
class _PendingResult:
    """A result in flight."""

    unit: int
    value: int
    written: Read | None


def interpret(program: Program, memory: Memory, budget: int) -> RunMetrics:
    """Run a program until it stops; after `budget` cycles its time is over. Raises HazardError."""
    return _Run(program, memory, budget).run()


class _Run:
    def __init__(self, program: Program, memory: Memory, budget: int) -> None:
        self.program, self.memory, self.budget = program, memory, budget
        self.machine = program.machine
        self.files = [[0] * file.registers for file in self.machine.files]
        self.outputs: dict[int, int] = {}
        self.pending: dict[int, list[_PendingResult]] = defaultdict(list)
        self.busy: dict[int, int] = {}
        """The first cycle in which a unit takes the next operation."""
        self.issued: Counter[int] = Counter()
        self.fetched = np.zeros(len(program.bundles), np.int64)
        self.cycle = 0

    def run(self) -> RunMetrics:
        """Run from the first bundle on."""
        at = 0
        branches: deque[_Branch] = deque()
        """The branches in flight, the next one first."""
        while True:
            self._write_back()
            bundle = self.program.bundles[at]
            self.fetched[at] += 1
            self._check(bundle)
            operands = [tuple(map(self._read, slot.sources)) for slot in bundle]
            # Loads see memory as it is before the stores of the cycle.
            for slot, given in zip(bundle, operands, strict=True):
                if slot.has_result:
                    self._issue(slot, self._result(slot, given))
            for slot, given in zip(bundle, operands, strict=True):
                if slot.name == "store":
                    assert slot.place is not None
                    if not self._is_done(slot):
                        continue
                    where = (given[0] + slot.place.offset) & _MASK
                    try:
                        self.memory.store(slot.place.segment, where, slot.place.size, given[1])
                    except IndexError as error:
                        raise self._hazard(f"a store to {error}") from None
                elif not any(each.is_exit for each in branches):
                    branches.extend(self._taken(slot, given))
            at += 1
            if branches and branches[0].due == self.cycle:
                target = branches.popleft().target
                if target is None:
                    cycles = self.cycle + 1
                    Issue(self.program).counts(cycles, self.fetched)
                    return RunMetrics(cycles, self.fetched, self.issued)
                at = target
            self.cycle += 1

    def _is_done(self, slot: Slot) -> bool:
        """True if the predicate of an operation has the required value."""
        return slot.predicate is None or bool(self._read(slot.predicate[0])) is slot.predicate[1]

    def _taken(self, slot: Slot, given: tuple[int, ...]) -> Iterator[_Branch]:
        """The branch of an operation, if it is one and taken."""
        due = self.cycle + self.machine.delay_slots
        is_over = self.cycle >= self.budget
        match slot.name:
            case "exit" | "exit_unless":
                if bool(given[0]) is (slot.name == "exit"):
                    yield _Branch(due, slot.target, is_exit=True)
            case "exit_expired":
                if is_over:
                    yield _Branch(due, slot.target, is_exit=True)
            case "repeat":
                if is_over and slot.target is not None:
                    yield _Branch(due, slot.target, is_exit=True)
                else:
                    yield _Branch(due, slot.again, is_exit=False)
            case "jump" | "stop":
                yield _Branch(due, slot.target, is_exit=False)
            case "jump_to":
                yield _Branch(due, given[0], is_exit=False)

    def _write_back(self) -> None:
        pending = self.pending.pop(self.cycle, ())
        for each in pending:
            self.outputs[each.unit] = each.value
            if each.written is not None:
                self.files[each.written.file][each.written.number] = each.value
        if len({each.unit for each in pending}) < len(pending):
            raise self._hazard("two results of one unit are written back together")
        writes = Counter(each.written.file for each in pending if each.written is not None)
        for file, count in writes.items():
            if count > self.machine.files[file].write_ports:
                raise self._hazard(f"{count} writes to file {self.machine.files[file].name}")

    def _check(self, bundle: Bundle) -> None:
        """Raise HazardError if a bundle exceeds the machine's resources in a cycle."""
        machine = self.machine
        if len(bundle) > machine.slots:
            raise self._hazard(f"{len(bundle)} operations")
        if sum(slot.name in BRANCHES for slot in bundle) > 1:
            raise self._hazard("two branches")
        constants: set[int] = set()
        reads: dict[int, set[int]] = defaultdict(set)
        for slot in bundle:
            unit = machine.units[slot.unit]
            if self.busy.get(slot.unit, 0) > self.cycle:
                raise self._hazard(f"unit {unit.name} is not ready for {slot.name}")
            work = work_of(slot.name, slot.static)
            self.busy[slot.unit] = self.cycle + unit.work[work].interval
            self.issued[slot.unit] += 1
            if slot.predicate is not None and (not machine.predication or slot.name != "store"):
                raise self._hazard(f"{slot.name} with a predicate")
            for number, source in enumerate(slot.reads):
                if isinstance(source, Immediate):
                    if source.bits or slot.place is None or number:  # a base of nothing is none
                        constants.add(source.bits)
                elif isinstance(source, Read):
                    reads[source.file].add(source.number)
                    if machine.files[source.file].name not in unit.reads:
                        raise self._hazard(f"unit {unit.name} does not reach what it reads")
        if len(constants) > machine.immediates:
            raise self._hazard(f"{len(constants)} constants")
        for file, numbers in reads.items():
            if len(numbers) > machine.files[file].read_ports:
                raise self._hazard(f"{len(numbers)} reads of file {machine.files[file].name}")

    def _read(self, source: Source) -> int:
        match source:
            case Immediate(bits):
                return bits
            case Read(file, number):
                return self.files[file][number]
            case Bypass(unit):
                if unit not in self.outputs:
                    raise self._hazard(f"unit {self.machine.units[unit].name} has no result yet")
                return self.outputs[unit]

    def _result(self, slot: Slot, given: tuple[int, ...]) -> int:
        if slot.place is not None:
            where = (given[0] + slot.place.offset) & _MASK
            return self.memory.load(slot.place.segment, where, slot.place.size)
        return compute(slot.name, slot.static, given)

    def _issue(self, slot: Slot, value: int) -> None:
        unit = self.machine.units[slot.unit]
        ready = self.cycle + unit.work[work_of(slot.name, slot.static)].latency
        self.pending[ready].append(_PendingResult(slot.unit, int(value), slot.written))

    def _hazard(self, said: str) -> HazardError:
        return HazardError(f"{self.program.name}: cycle {self.cycle}: {said}")
