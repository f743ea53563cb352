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
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry
from ferryvm.testing.state import Difference, difference
from ferryvm.testing.trial import MOST_INSTRUCTIONS, Trial
from ferryvm.verify import Verified

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


class Differ:
    """Compares backends on programs."""

    def __init__(
        self,
        backends: Sequence[str],
        against: str = "reference",
        registry: Registry | None = None,
        limits: Limits | None = None,
        most: int = MOST_INSTRUCTIONS,
    ) -> None:
        """`most`: instructions after which a program that still runs is compared as it stands.

        Raises UnknownNameError or BackendError if one of the backends cannot be had.
        """
        self.registry = registry or Registry()
        self.limits = limits
        self.most = most
        self.against = against
        self.backends = tuple(name for name in backends if name != against)
        for name in (against, *self.backends):
            self.registry.get(name)
        self._engine = Engine(against, limits=limits, registry=self.registry)
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
        expected = self.start(program)
        while expected.run(self.against, 1_000_000):
            progress()
        if schedule is Schedule.NONE:
            return [self._alone(name, expected, progress) for name in self.backends]
        return [self._moved(schedule, random.Random(seed), expected, progress)]

    def start(self, program: Verified) -> Trial:
        """A trial of the program at its start."""
        return Trial(self._engine, program, self.most)

    def _alone(self, name: str, expected: Trial, progress: Callable[[], object]) -> Comparison:
        trial = expected.again()
        try:
            while trial.run(name, 100_000_000):
                progress()
        except BackendError as error:
            return Comparison((name,), Verdict.UNSUPPORTED, 0, 0, reason=str(error))
        comparison = self._judge((name,), trial, expected, 0)
        if comparison.verdict is Verdict.DISAGREE or not expected.left:
            return comparison
        # Native backends run other code when nothing is counted: that has to agree as well.
        uncounted = expected.again()
        uncounted.run_uncounted(name)
        found = difference(expected.execution.machine, expected.state(), uncounted.state())
        if found is None:
            return comparison
        return dataclasses.replace(comparison, verdict=Verdict.DISAGREE, difference=found)

    def _moved(
        self,
        schedule: Schedule,
        chance: random.Random,
        expected: Trial,
        progress: Callable[[], object],
    ) -> Comparison:
        names = (self.against, *self.backends)
        trial = expected.again()
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
        self, names: tuple[str, ...], trial: Trial, expected: Trial, moves: int
    ) -> Comparison:
        found = difference(expected.execution.machine, expected.state(), trial.state())
        verdict = Verdict.AGREE if found is None else Verdict.DISAGREE
        return Comparison(names, verdict, moves, trial.instructions, found)
