# SPDX-License-Identifier: Apache-2.0
"""Bisection: the first instruction at which a backend diverges from a good one.

The good backend runs some instructions, then hands control over to the bad one:

    0            entered           number      end
    ├── good ───────┼───── bad ───────┼─ ... ───┤
                                      └ here the states differ for the first time

There are two binary searches: for the earliest boundary at which the states differ (`number`), then
for the latest one at which the bad backend can be entered so that they still differ (`entered`).
Usually one instruction is left between them. The searches assume nothing about the fault. Their
invariant is that the states are equal at one end and differ at the other, so they end at an
instruction at which the states diverge.

On request, a backend that agrees is searched again in other floating-point environments of the
thread: a backend that computes in the caller's environment diverges there.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Callable, Iterator

from ferryvm.deadline import Deadline
from ferryvm.errors import FerryError, Position
from ferryvm.machine.control import Status
from ferryvm.machine.difference import Difference
from ferryvm.testing.differential import Differ, Verdict, judge
from ferryvm.testing.divergence import LEGAL
from ferryvm.testing.environment import ENVIRONMENTS, USUAL
from ferryvm.testing.region import Region, regions
from ferryvm.testing.schedule import Schedule, environments, moves
from ferryvm.testing.trace import LONGEST, Row, TraceLine, finished, first_line, sides, trace
from ferryvm.testing.trial import IN_PREPARE, Trial, failing
from ferryvm.verify import Verified

__all__ = [
    "Bisector",
    "DivergenceMode",
    "DivergencePoint",
    "LateError",
    "Parting",
    "SearchError",
    "UnpreparedError",
    "UnstableError",
]

_GOOD_CHUNK = 200_000
"""Instructions that the good backend runs between two checks of the time."""

_STEPPED = 100_000
"""The number of instructions for each of which the bad backend is entered separately."""

_STEPPED_INTO = 200
"""The number of instructions at each of which it is entered to continue without counting."""

_LONGEST_WINDOW = 11
"""Binary logarithm of the largest number of instructions that the bad backend then runs at once."""

_MOST_SNAPSHOTS = 64


class SearchError(FerryError):
    """A search ended without a result; the backends may disagree nevertheless."""


class LateError(SearchError):
    """The time for a search ran out."""


class UnstableError(SearchError):
    """A backend failed, and did not fail again."""


class UnpreparedError(SearchError):
    """A backend fails to compile the program, so there is no point of divergence."""

    def __init__(self, good: str, bad: str, failure: str) -> None:
        what = failure.removeprefix(IN_PREPARE)
        super().__init__(f"pc: none, preparing the program failed on {bad}: {what}")
        self.difference = Difference("failure", "none", failure)
        self.good, self.bad = good, bad


class DivergenceMode(enum.Enum):
    """The mode in which a disagreement shows."""

    COUNTED = "counting"
    """The bad backend runs the program alone, counting instructions."""
    UNCOUNTED = "not counting"
    """It shows only if the bad backend runs to the end without counting."""
    MOVED = "moving"
    """It shows only if the bad backend is entered and left in the middle, counting."""
    ENTERED = "entered, not counting"
    """It shows only if the bad backend is entered in the middle and runs to the end without
    counting."""


@dataclasses.dataclass(frozen=True)
class DivergencePoint:
    """The point at which two backends diverge, in numbers; `Parting` describes it."""

    mode: DivergenceMode
    bad: str
    entered: int
    number: int
    difference: Difference
    environment: str = USUAL
    """Name of the floating-point environment in which they diverge."""


@dataclasses.dataclass(frozen=True)
class Parting:
    """The divergence of two backends."""

    mode: DivergenceMode
    good: str
    bad: str
    entered: int
    """Instructions that the good backend completed before the bad one was entered."""
    number: int
    """Instructions completed before the one at which they diverge; if nothing was counted, the same
    as `entered`: the last boundary at which entering the bad backend still fails."""
    pc: int
    """pc of that instruction."""
    mnemonic: str
    regions: tuple[Region, ...]
    """Function, loops and block around it, widest first."""
    position: Position | None
    """Its position in the source."""
    difference: Difference
    """Of the states after that instruction; if nothing was counted, of those at the end."""
    good_trace: tuple[TraceLine, ...]
    """The last instructions on the good side, that one included."""
    bad_trace: tuple[TraceLine, ...]
    """The same on the bad side."""
    after: tuple[Row, ...]
    """The states after that instruction, field by field; if nothing was counted, at the end."""
    environment: str = USUAL
    """Name of the floating-point environment that the bad backend was entered in."""


class Bisector:
    """Searches one program for the divergence of one backend from a good one."""

    def __init__(
        self,
        differ: Differ,
        bad: str,
        program: Verified,
        progress: Callable[[], object] = lambda: None,
        patience: float | None = None,
        windows: int = 200,
        seconds: float | None = None,
        schedule: Schedule = Schedule.RANDOM,
        environment: str = USUAL,
    ) -> None:
        """Runs the good backend to the program's end. `patience`: seconds within which the bad one
        must return, the differ's if None; `windows`: number of random windows, for faults that take
        moves and more than one instruction between them, 0 for none; `seconds`: time limit of all
        searches, from now on; `schedule`: ENVIRONMENT to search in other floating-point
        environments, too; `environment`: name of the environment of the search.

        All searches raise LateError when that time runs out.
        """
        self._seconds, self._deadline = seconds, Deadline(seconds)
        self.differ = differ
        self.good, self.bad = differ.against, bad
        self.program, self.progress, self.windows = program, progress, windows
        self.varies_environment = schedule is Schedule.ENVIRONMENT
        self.environment = environment
        self.patience = differ.patience if patience is None else patience
        self.end = differ.start(program)
        """The good trial at the program's end: it records the host calls that all others replay."""
        self._snapshots = {0: self.end.again()}
        """Good trials at some boundaries."""
        while self.end.run(self.good, _GOOD_CHUNK):
            self._check()
        is_failed = self.end.status is Status.TRAP or self.end.raised is not None
        self.boundaries = self.end.instructions + is_failed
        """Number of the last boundary; a trap has one of its own after it, as has an exception."""

    def find(
        self, mode: DivergenceMode | None = None, seed: int = 0, names: tuple[str, ...] = ()
    ) -> Parting | None:
        """The divergence and the actions of each backend there, None if they agree; see
        `search`."""
        place = self.search(mode, seed, names)
        return None if place is None else self.describe(place)

    def search(
        self, mode: DivergenceMode | None = None, seed: int = 0, names: tuple[str, ...] = ()
    ) -> DivergencePoint | None:
        """The point of divergence, None if they agree.

        Modes are tried in the order of `DivergenceMode`, or only the given one; `seed`: of the
        random moves; `names`: backends to move between if they are not just the two. Raises
        RefusalError if a backend does not accept the program, FerryError if they diverge legally,
        and the subclasses of SearchError.
        """
        self._refuse_legal()
        names = names or (self.good, self.bad)
        found = self._alone(mode) or self._moving(mode, seed, names)
        if found is None and self.varies_environment:
            found = self._in_other_environments(mode, seed, names)
        return found

    def _alone(self, mode: DivergenceMode | None) -> DivergencePoint | None:
        """The point of divergence if the bad backend runs the program from its start."""
        if mode in (None, DivergenceMode.COUNTED) and self.segment(0, self.boundaries):
            return self._narrow(DivergenceMode.COUNTED, 0, self.boundaries)
        if mode in (None, DivergenceMode.UNCOUNTED) and self.end.remaining and self.uncounted(0):
            return self._uncounted(0, DivergenceMode.UNCOUNTED)
        return None

    def _moving(
        self, mode: DivergenceMode | None, seed: int, names: tuple[str, ...]
    ) -> DivergencePoint | None:
        """The point of divergence if the bad backend is entered in the middle."""
        if mode in (None, DivergenceMode.MOVED):
            place = self._stepped()
            if place is not None:
                return place
        if mode in (None, DivergenceMode.ENTERED) and self.end.remaining:
            for number in range(1, min(self.boundaries, _STEPPED_INTO)):
                if self.uncounted(number) is not None:
                    return self._uncounted(number, DivergenceMode.ENTERED)
        if mode in (None, DivergenceMode.MOVED, DivergenceMode.ENTERED) and self.windows:
            return self._scheduled(seed, names) or self._windows(seed)
        return None

    def _in_other_environments(
        self, mode: DivergenceMode | None, seed: int, names: tuple[str, ...]
    ) -> DivergencePoint | None:
        """The same in other floating-point environments of the thread, one of which is recorded in
        the result."""
        usual = self.environment
        for self.environment in sorted({*ENVIRONMENTS} - {usual}):
            found = self._alone(mode)
            if found is not None:
                return found
        if mode in (None, DivergenceMode.MOVED, DivergenceMode.ENTERED) and self.windows:
            found = self._scheduled(seed, names, environments(Schedule.ENVIRONMENT, seed))
            if found is not None:
                return found
        self.environment = usual
        return None

    def _refuse_legal(self) -> None:
        capabilities = self.differ.registry.get(self.bad).capabilities
        if not any(divergence.declared(capabilities) for divergence in LEGAL):
            return
        for comparison in self.differ.compare(self.program, progress=self._check):
            if comparison.verdict is Verdict.DIVERGE and self.bad in comparison.backends:
                raise FerryError(f"{self.good} and {self.bad} diverge legally: {comparison.reason}")

    # --- comparing at one place -------------------------------------------------------------

    def at(self, number: int) -> Trial:
        """The good trial after that many instructions; it must not be continued."""
        if number not in self._snapshots:
            near = max(before for before in self._snapshots if before < number)
            trial = self._snapshots[near].fork()
            while near < number:
                step = min(number - near, _GOOD_CHUNK)
                trial.run(self.good, step)
                near += step
                self._check()
            self._snapshots[number] = trial
        return self._snapshots[number]

    def segment(self, first: int, last: int) -> Difference | None:
        """The difference of the states at boundary `last` if the bad backend runs there from
        `first`, counting, in one run."""
        trial = self.at(first).fork()
        failure = self._attempt(trial, last - first)
        return judge(self.at(last), trial, failure)

    def uncounted(self, first: int) -> Difference | None:
        """The difference of the ends if the bad backend continues from `first` without counting."""
        trial = self.at(first).fork()
        failure = self._attempt(trial, None)
        return judge(self.end, trial, failure)

    def _attempt(self, trial: Trial, fuel: int | None, name: str | None = None) -> str | None:
        self._check()
        name, seconds_left = name or self.bad, self._deadline.remaining
        trial.environment = ENVIRONMENTS[self.environment]
        failure = trial.attempt(name, fuel, min(self.patience, seconds_left))
        if failure is not None and failing(failure) is not None:
            raise UnpreparedError(self.good, name, failure)
        if seconds_left < self.patience:
            self._check()  # a run that was stopped early proves nothing
        return failure

    def _check(self) -> None:
        """Report progress. Raises LateError if the time has run out."""
        self.progress()
        if self._deadline.is_over:
            raise LateError(f"no place where they part was found within {self._seconds:g} s")

    # --- searching --------------------------------------------------------------------------

    def _narrow(self, mode: DivergenceMode, first: int, last: int) -> DivergencePoint:
        """The point inside a segment whose ends differ."""
        number = _turn(first, last, lambda at: self.segment(first, at) is None)
        last = number + 1
        entered = first
        if self.segment(number, last) is not None:
            entered = number
        elif number > first:
            entered = _turn(first, number, lambda at: self.segment(at, last) is not None)
        found = self.segment(entered, last)
        if found is None:
            raise unstable(self.bad)
        return self._point(mode, self.bad, entered, number, found)

    def _uncounted(self, first: int, mode: DivergenceMode) -> DivergencePoint:
        entered = _turn(first, self.boundaries, lambda at: self.uncounted(at) is not None)
        found = self.uncounted(entered)
        if found is None:
            raise unstable(self.bad)
        return self._point(mode, self.bad, entered, entered, found)

    def _stepped(self) -> DivergencePoint | None:
        """The first instruction that fails when the bad backend is entered for it alone."""
        trial = self.at(0).fork()
        for number in range(min(self.boundaries, _STEPPED)):
            other = trial.fork()
            failure = self._attempt(other, 1)
            trial.run(self.good, 1)
            found = judge(trial, other, failure)
            if found is not None:
                return self._point(DivergenceMode.MOVED, self.bad, number, number, found)
        return None

    def _scheduled(
        self, seed: int, names: tuple[str, ...], around: Iterator[str] | None = None
    ) -> DivergencePoint | None:
        """The point in the first move of a random schedule that fails. `around`: the floating-point
        environments of its moves."""
        trial, first = self.at(0).again(), 0
        for name, step in moves(
            Schedule.RANDOM, names, seed, self.end.instructions, bool(self.end.remaining)
        ):
            last = self.boundaries if step is None else min(first + step, self.boundaries)
            fuel = None if step is None else last - first
            if around is not None:
                self.environment = next(around)
            failure = self._attempt(trial, fuel, name)
            found = judge(self.at(last), trial, failure)
            if found is not None:
                return self._blame(name, first, last, fuel, found)
            self._forget()
            if last == self.boundaries:
                return None
            first = last
        return None

    def _blame(
        self, name: str, first: int, last: int, fuel: int | None, found: Difference
    ) -> DivergencePoint:
        """The point inside a move that failed on the backend of that name."""
        self.bad = name
        if name != self.good and fuel is None and self.uncounted(first) is not None:
            return self._uncounted(first, DivergenceMode.ENTERED)
        if name != self.good and fuel is not None and self.segment(first, last) is not None:
            return self._narrow(DivergenceMode.MOVED, first, last)
        # From an equal state it succeeds: an earlier backend left data outside of the state, above
        # sp or hp, and this one read it.
        return self._point(DivergenceMode.MOVED, name, first, last - 1, found)

    def _point(
        self, mode: DivergenceMode, bad: str, entered: int, number: int, found: Difference
    ) -> DivergencePoint:
        return DivergencePoint(mode, bad, entered, number, found, self.environment)

    def _windows(self, seed: int) -> DivergencePoint | None:
        """The point at which the bad backend runs some instructions between two moves."""
        chance = random.Random(seed)
        for _ in range(min(self.windows, self.boundaries**2)):
            first = int(chance.random() * self.boundaries)
            length = int(2 ** (chance.random() * _LONGEST_WINDOW))
            last = min(first + length, self.boundaries)
            if self.segment(first, last) is not None:
                return self._narrow(DivergenceMode.MOVED, first, last)
            if self.end.remaining and self.uncounted(first) is not None:
                return self._uncounted(first, DivergenceMode.ENTERED)
            self._forget()
        return None

    def _forget(self) -> None:
        """Release most of the cached trials: each holds memory."""
        if len(self._snapshots) > _MOST_SNAPSHOTS:
            self._snapshots = dict(sorted(self._snapshots.items())[::2])

    # --- describing -------------------------------------------------------------------------

    def describe(self, place: DivergencePoint) -> Parting:
        """The traces of both up to a boundary, and their states there."""
        self.environment = place.environment
        pc = self.at(place.number).pc
        good, bad, after = self._traces(place.mode, place.entered, place.number)
        return Parting(
            place.mode,
            self.good,
            place.bad,
            place.entered,
            place.number,
            pc,
            good[-1].mnemonic,
            tuple(regions(self.program, pc)),
            self.program.program.source_map.position(pc),
            place.difference,
            tuple(good),
            tuple(bad),
            tuple(after),
            place.environment,
        )

    def _traces(
        self, mode: DivergenceMode, entered: int, number: int
    ) -> tuple[list[TraceLine], list[TraceLine], list[Row]]:
        """The last instructions on both sides, up to and including number `number`; and both states
        afterwards."""
        first = max(0, number + 1 - LONGEST)
        good = trace(
            self.at(first).fork(), number + 1 - first, lambda it: self._attempt(it, 1, self.good)
        )
        line = first_line(self.at(number))
        trial = self.at(entered).fork()
        if mode in (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED):
            self._attempt(trial, None)
            entry = dataclasses.replace(line, then=f"{self.bad} goes on without counting")
            return good, [*good[:-1], entry], sides(self.end, trial)
        # Stepping might hide a fault that shows in one run of the bad backend, so the last line
        # comes from such a run.
        stepped = max(first, entered)
        bad = good[: stepped - first]
        bad += trace(self.at(stepped).fork(), number - stepped, lambda it: self._attempt(it, 1))
        failure = self._attempt(trial, number + 1 - entered)
        return good, [*bad, finished(line, trial, failure)], sides(self.at(number + 1), trial)


def _turn(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """A number that holds and whose successor does not; `low` does, `high` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def unstable(backend: str) -> UnstableError:
    """The error for a backend with two different results."""
    return UnstableError(f"backend {backend!r} does not do the same twice: nothing to search by")
