# SPDX-License-Identifier: Apache-2.0
"""Looking for planted faults with random programs.

Programs are the outer loop and faults the inner one, so that a program is made, verified and run
on the good side once for all faults that are still to be found. A fault that has been found is not
looked for again. All are looked for without moving; faults of moving, in what does not show there,
at random moves and then at every boundary. The first difference ends it.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ferryvm.backend import Backend
from ferryvm.isa import INSTRUCTIONS
from ferryvm.testing import Comparison, Differ, Schedule, Verdict
from ferryvm.testing.generate import LIMITS, ProgramKind, Weights, generate
from ferryvm.verify import Verified, verify

from .backend import FaultyBackend, registry_of
from .fault import TRANSFER, Fault

MOST = 25_000
"""Instructions after which a program is compared as it stands; random ones are shorter, but a fault
can make them endless."""

_LONGEST_MOVED = 1_500
"""Instructions of the longest program that is moved at every boundary."""

_WEIGHTS = Path(__file__).parent.parent / "testing" / "generate" / "without_objects.toml"

KINDS = (ProgramKind.BYTECODE, ProgramKind.SKIFF)
"""Programs are of these kinds in turn, as in `ferry fuzz`."""


@dataclasses.dataclass(frozen=True)
class Find:
    """How a fault was found."""

    number: int
    """The program's number, from 0; the fault was looked for in as many before."""
    kind: str
    schedule: str
    field: str
    """The first field that differs."""
    is_counted: bool = True
    """Whether it shows where instructions are counted."""


@dataclasses.dataclass
class Outcome:
    """What came of looking for some faults in some programs."""

    finds: dict[str, Find] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Time spent on each fault, its share of what was done for several."""


def program_of(seed: int, number: int) -> Verified:
    """The program of a number; without objects, which these faults do not concern."""
    return verify(generate(seed, number, KINDS[number % len(KINDS)], _weights()))


@functools.cache
def _weights() -> Weights:
    return Weights.load(_WEIGHTS)


class Searcher:
    """Looks for faults, all planted in backends of one kind."""

    def __init__(
        self,
        faults: Sequence[Fault],
        seed: int,
        against: str = "reference",
        plant: Callable[[Fault], Backend] = lambda fault: FaultyBackend(fault.name, fault),
    ) -> None:
        self.seed, self.against = seed, against
        self.left = {fault.name: fault for fault in faults}
        """Faults that are still to be found."""
        self.outcome = Outcome({}, dict.fromkeys(self.left, 0.0))
        self._registry = registry_of(plant(fault) for fault in faults)

    def search(self, numbers: Iterable[int]) -> Outcome:
        """Look for all faults in the programs of these numbers."""
        for number in numbers:
            if not self.left:
                break
            self._try(number)
        return self.outcome

    def _try(self, number: int) -> None:
        program = program_of(self.seed, number)
        used = set(program.program.code.opcodes.tolist())
        present = {INSTRUCTIONS[opcode].mnemonic for opcode in used} | {TRANSFER}
        names = [name for name, fault in self.left.items() if not present.isdisjoint(fault.where)]
        if not names:
            return
        comparisons = self._compare(program, names, Schedule.NONE, number)
        for name, comparison in zip(names, comparisons, strict=True):
            found = self._note(name, number, Schedule.NONE, comparison)
            for schedule in self._schedules(self.left[name], comparison) if not found else ():
                (moved,) = self._compare(program, [name], schedule, number)
                if self._note(name, number, schedule, moved):
                    break
        for name in names:
            if name in self.outcome.finds:
                self.left.pop(name)

    @staticmethod
    def _schedules(fault: Fault, comparison: Comparison) -> tuple[Schedule, ...]:
        if fault.schedule is Schedule.NONE:
            return ()
        if fault.schedule is Schedule.ENVIRONMENT:
            return (fault.schedule,)
        if comparison.instructions > _LONGEST_MOVED:
            return (Schedule.RANDOM,)
        return (Schedule.RANDOM, Schedule.EVERY_BOUNDARY)

    def _compare(
        self, program: Verified, names: list[str], schedule: Schedule, number: int
    ) -> list[Comparison]:
        began = time.perf_counter()
        differ = Differ(names, self.against, self._registry, LIMITS, MOST)
        comparisons = differ.compare(program, schedule, number)
        share = (time.perf_counter() - began) / len(names)
        for name in names:
            self.outcome.seconds[name] += share
        return comparisons

    def _note(self, name: str, number: int, schedule: Schedule, comparison: Comparison) -> bool:
        """Whether the fault is found, which is then noted."""
        if comparison.verdict is Verdict.UNSUPPORTED:
            raise AssertionError(f"{name}: {comparison.reason}")
        difference = comparison.difference
        if comparison.verdict is not Verdict.DISAGREE or difference is None:
            return False
        kind = KINDS[number % len(KINDS)].value
        self.outcome.finds[name] = Find(
            number, kind, schedule.value, difference.field, comparison.is_counted
        )
        return True
