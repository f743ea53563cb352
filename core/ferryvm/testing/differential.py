# SPDX-License-Identifier: Apache-2.0
"""Running one program on several backends, moving it between them, and comparing.

    none             each backend runs the program from start to end on its own
    random           the program moves from backend to backend at random fuel counts, and goes on
                     to its end without counting after some of these moves
    every-boundary   it moves after every single instruction

Under every schedule the end is compared with the end of the same program on the backend that all
are held against, which runs it alone.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Callable, Sequence

from ferryvm.backend import BackendError, Forcing
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry
from ferryvm.testing.divergence import LEGAL
from ferryvm.testing.state import Difference, State, difference
from ferryvm.testing.trial import MOST_INSTRUCTIONS, Trial
from ferryvm.verify import Verified

_LONGEST_STEP = 11
"""Binary logarithm of the most instructions that a random schedule runs before it moves on; the
logarithms are uniform, so that short programs move too."""

_LATEST_UNCOUNTED = 20
"""Moves after which, at the latest, a random schedule goes on to the end without counting."""


class Schedule(enum.Enum):
    """When a program moves."""

    NONE = "none"
    RANDOM = "random"
    EVERY_BOUNDARY = "every-boundary"


class Verdict(enum.Enum):
    """What came of a comparison. Unsupported is never agreement."""

    AGREE = "agree"
    DISAGREE = "disagree"
    DIVERGE = "diverge"
    """It ends elsewhere, in a way that `ferryvm.testing.divergence` lists as legal."""
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
    seconds: float = dataclasses.field(default=0.0, compare=False)
    """Time that the counted run took, preparation apart."""
    difference: Difference | None = None
    is_counted: bool = True
    """Whether the difference shows in the run that counts instructions."""
    reason: str | None = None
    """Why it is unsupported, or diverges legally."""


class Differ:
    """Compares backends on programs."""

    def __init__(
        self,
        backends: Sequence[str],
        against: str = "reference",
        registry: Registry | None = None,
        limits: Limits | None = None,
        most: int = MOST_INSTRUCTIONS,
        forcing: frozenset[Forcing] = frozenset(),
    ) -> None:
        """`forcing`: what all but `against` are forced to; `most`: instructions after which a program that still runs is compared as it stands.

        Raises UnknownNameError or BackendError if one of the backends cannot be had.
        """
        self.registry = registry or Registry()
        self.limits = limits
        self.most = most
        self.against = against
        self.backends = tuple(name for name in dict.fromkeys(backends) if name != against)
        self._forcing = dict.fromkeys(self.backends, forcing)
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
        trial = Trial(self._engine.start(program), self.most)
        trial.forcing = self._forcing
        return trial

    def _alone(self, name: str, expected: Trial, progress: Callable[[], object]) -> Comparison:
        trial = expected.again()
        try:
            while trial.run(name, 100_000_000):
                progress()
        except BackendError as error:
            return Comparison(
                (name,), Verdict.UNSUPPORTED, 0, trial.instructions, reason=str(error)
            )
        comparison = self._judge((name,), trial, expected, 0)
        if comparison.verdict is not Verdict.AGREE or not expected.left:
            return comparison
        # Native backends run other code when nothing is counted: that has to agree as well.
        uncounted = expected.again()
        uncounted.run_uncounted(name)
        found = difference(expected.execution.machine, expected.state(), uncounted.state())
        if found is None:
            return comparison
        return dataclasses.replace(
            comparison, verdict=Verdict.DISAGREE, difference=found, is_counted=False
        )

    def _moved(
        self,
        schedule: Schedule,
        chance: random.Random,
        expected: Trial,
        progress: Callable[[], object],
    ) -> Comparison:
        names = (self.against, *self.backends)
        trial = expected.again()
        is_random = schedule is Schedule.RANDOM
        # Uncounted code is entered in the middle as well, where it is known to come to an end.
        uncounted = chance.randint(1, _LATEST_UNCOUNTED) if is_random and expected.left else 0
        moves, goes_on = -1, True
        try:
            while goes_on:
                moves += 1
                step = 1
                name = names[moves % len(names)]
                if is_random:
                    step, name = int(2 ** chance.uniform(0, _LONGEST_STEP)), chance.choice(names)
                if uncounted and moves == uncounted:
                    trial.run_uncounted(name)
                    break
                goes_on = trial.run(name, step)
                if moves % 1000 == 0:
                    progress()
        except BackendError as error:
            done = trial.instructions
            return Comparison(names, Verdict.UNSUPPORTED, moves, done, reason=str(error))
        return self._judge(names, trial, expected, moves)

    def _judge(
        self, names: tuple[str, ...], trial: Trial, expected: Trial, moves: int
    ) -> Comparison:
        found = difference(expected.execution.machine, expected.state(), trial.state())
        verdict = Verdict.AGREE if found is None else Verdict.DISAGREE
        reason = None
        if found is not None:
            reason = self._legal(names, trial, expected)
            if reason is not None:
                verdict, found = Verdict.DIVERGE, None
        return Comparison(
            names, verdict, moves, trial.instructions, trial.seconds, found, reason=reason
        )

    def _legal(self, names: tuple[str, ...], trial: Trial, expected: Trial) -> str | None:
        """The reason for which a difference is legal, None if it is not."""
        state = trial.state()
        capabilities = {name: self.registry.get(name).capabilities for name in names}
        for divergence in LEGAL:
            who = [name for name in names if divergence.declared(capabilities[name])]
            if not who or not divergence.shows(state):
                continue
            before = expected.again()
            before.run(self.against, trial.instructions)
            stopped = before.state()
            end = state.machine
            as_stopped = dataclasses.replace(stopped.machine, status=end.status, trap=end.trap)
            stopped = State(as_stopped, state.fuel, stopped.output)
            if difference(before.execution.machine, stopped, state) is None:
                return f"{divergence.reason} ({', '.join(who)})"
        return None
