# SPDX-License-Identifier: Apache-2.0
"""Running one program on several backends, moving it between them, and comparing.

    none             each backend runs the program from start to end on its own
    random           the program moves from backend to backend at random fuel counts
    every-boundary   it moves after every single instruction

Under every schedule the end is compared with the end of the same program on the backend that all
are held against, which runs it alone.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Callable, Sequence

from ferryvm.backend import BackendError
from ferryvm.engine import Engine, Execution, TrapError
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry
from ferryvm.testing.state import Difference, State, difference
from ferryvm.verify import Verified

MOST_INSTRUCTIONS = 50_000_000
"""Fuel of a comparison: a program that runs longer is compared there."""

_LONGEST_STEP = 2000
"""Instructions that a random schedule runs at most before it moves on."""


class Schedule(enum.Enum):
    """When a program moves."""

    NONE = "none"
    RANDOM = "random"
    EVERY_BOUNDARY = "every-boundary"


class Verdict(enum.Enum):
    """What came of a comparison. Unsupported is never agreement."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNSUPPORTED = "unsupported"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One program under one set of backends, against one."""

    backends: tuple[str, ...]
    """One backend, or those between which the program moved, in turn."""
    verdict: Verdict
    moves: int
    """Times that the program went on in another backend."""
    instructions: int
    """Instructions completed by the end."""
    difference: Difference | None = None
    reason: str | None = None
    """Why it is unsupported."""


class _Trial:
    """A program under way, with what it writes."""

    def __init__(self, engine: Engine, program: Verified) -> None:
        self.output: list[bytes] = []
        engine.output = self.output.append
        self.execution: Execution = engine.start(program)
        self.left = MOST_INSTRUCTIONS
        """Fuel, counted from the start however the way was cut into runs."""
        self.is_counted = True

    def run(self, backend: str, fuel: int) -> bool:
        """Go on for at most `fuel` instructions; whether the program can still go on."""
        fuel = min(fuel, self.left)
        status = self._run(backend, fuel)
        self.left -= fuel - self.execution.machine.control.fuel
        return status is Status.FUEL and self.left > 0

    def run_uncounted(self, backend: str) -> None:
        """Go on to the end, which the program is known to have, without counting."""
        self._run(backend, None)
        self.is_counted = False

    def _run(self, backend: str, fuel: int | None) -> Status:
        try:
            return self.execution.run(fuel, backend=backend).status
        except TrapError:
            return Status.TRAP

    def state(self) -> State:
        fuel = self.left if self.is_counted else None
        return State(self.execution.machine.snapshot(), fuel, b"".join(self.output))


class Differ:
    """Compares backends on programs."""

    def __init__(
        self,
        backends: Sequence[str],
        against: str = "reference",
        registry: Registry | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Raises UnknownNameError or BackendError if one of the backends cannot be had."""
        self.registry = registry or Registry()
        self.limits = limits
        self.against = against
        self.backends = tuple(name for name in backends if name != against)
        for name in (against, *self.backends):
            self.registry.get(name)
        if not self.backends:
            raise FerryError(f"nothing to compare with {against!r}: name another backend")

    def compare(
        self,
        program: Verified,
        schedule: Schedule = Schedule.NONE,
        seed: int = 0,
        progress: Callable[[], object] = lambda: None,
    ) -> list[Comparison]:
        """One comparison a backend without a schedule, else one of all of them moved between.

        `progress` is called now and then, on long work.
        """
        expected = self._start(program)
        while expected.run(self.against, 1_000_000):
            progress()
        if schedule is Schedule.NONE:
            return [self._alone(program, name, expected, progress) for name in self.backends]
        return [self._moved(program, schedule, random.Random(seed), expected, progress)]

    def _start(self, program: Verified) -> _Trial:
        return _Trial(Engine(self.against, limits=self.limits, registry=self.registry), program)

    def _alone(
        self, program: Verified, name: str, expected: _Trial, progress: Callable[[], object]
    ) -> Comparison:
        trial = self._start(program)
        try:
            while trial.run(name, 100_000_000):
                progress()
        except BackendError as error:
            return Comparison((name,), Verdict.UNSUPPORTED, 0, 0, reason=str(error))
        comparison = self._judge((name,), trial, expected, 0)
        if comparison.verdict is Verdict.DISAGREE or not expected.left:
            return comparison
        # Native backends run other code when nothing is counted: that has to agree as well.
        uncounted = self._start(program)
        uncounted.run_uncounted(name)
        found = difference(expected.execution.machine, expected.state(), uncounted.state())
        if found is None:
            return comparison
        return dataclasses.replace(comparison, verdict=Verdict.DISAGREE, difference=found)

    def _moved(
        self,
        program: Verified,
        schedule: Schedule,
        chance: random.Random,
        expected: _Trial,
        progress: Callable[[], object],
    ) -> Comparison:
        names = (self.against, *self.backends)
        trial = self._start(program)
        moves, goes_on = -1, True
        try:
            while goes_on:
                moves += 1
                step = 1
                name = names[moves % len(names)]
                if schedule is Schedule.RANDOM:
                    step, name = chance.randint(1, _LONGEST_STEP), chance.choice(names)
                goes_on = trial.run(name, step)
                if moves % 1000 == 0:
                    progress()
        except BackendError as error:
            return Comparison(names, Verdict.UNSUPPORTED, moves, 0, reason=str(error))
        return self._judge(names, trial, expected, moves)

    def _judge(
        self, names: tuple[str, ...], trial: _Trial, expected: _Trial, moves: int
    ) -> Comparison:
        found = difference(expected.execution.machine, expected.state(), trial.state())
        verdict = Verdict.AGREE if found is None else Verdict.DISAGREE
        return Comparison(names, verdict, moves, MOST_INSTRUCTIONS - trial.left, found)
