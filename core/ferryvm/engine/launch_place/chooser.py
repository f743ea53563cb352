# SPDX-License-Identifier: Apache-2.0
"""Choosing the place of each range of a launch, by expected and found times.

    range ─> expected time on each place ─┬─ trial due: some items on another place ─> the rest again
                                          └─ the least: all items there ─> found time, learned

The first place has the code that the interpreter enters, and runs until others are compiled. Another
place is compiled once the launch has taken as long as compiling takes, if it is expected to be quicker.
Then some items are its trial, and later ones come when the launch has had twice as many ranges: so
trials cost little however wrong the model is, and a place that a disturbed run made look slow is tried
again. What is chosen depends on times and counts alone: with a clock of its own the same is chosen
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ferryvm import record
from ferryvm.backend import BackendError, Code
from ferryvm.engine.launch_place.model import CALIBRATED
from ferryvm.engine.launch_place.place import LaunchPlace, PlaceState
from ferryvm.item_range import PlaceActivity, RangeOutcome, RangeRunner
from ferryvm.machine.launch import put_off
from ferryvm.machine.state import Machine
from ferryvm.wrapper import CodeWrapper

Clock = Callable[[], float]

Compile = Callable[[Machine, int, Callable[[RangeRunner | str], None]], None]
"""Requests the code of the place of a number; its runner is given to a function, or the reason that there
is none; now or later, in any thread."""

PROMISING = 1.25
"""A place is compiled if it is expected to take less than this times the best one's time, because a
model is only a model."""

DUE = 4.0
"""A place is tried if it is expected to take less than this times the best one's time."""

_TRIAL_PART = 8
"""A trial has the items of the range over this."""

_TRIAL_LAUNCHES = 4.0
"""A trial has so many items, at least, that they take so many times as long as a launch."""

SLICE = 1.0
"""Seconds of a range at once, where the place does not decide that: a trap or a host call of an item
takes effect after that at the latest."""

MOST_WORTH = 20e-3
"""Seconds of work in order that are run out of order in any case, so that times are found again."""


class PlacedRanges(RangeRunner):
    """Runs each range of a launch on the place where it is expected to end first."""

    def __init__(
        self, places: Sequence[LaunchPlace], compile_: Compile, clock: Clock = time.perf_counter
    ) -> None:
        """`places`: the first is ready."""
        self._places, self._compile, self._clock = tuple(places), compile_, clock
        self.places: tuple[PlaceActivity, ...] = tuple(one.activity for one in places)
        first = places[0].runner
        assert first is not None
        self._first = first
        self.sample_seconds, self.is_paced = first.sample_seconds, first.is_paced
        self._sampled = 0.0
        """Seconds of an item in order, of a sample."""
        self._spent = 0.0
        """Seconds of all ranges."""
        self._ranges = 0
        """Ranges so far."""

    @property
    def where(self) -> str:
        return self._first.where

    @property
    def has_slices(self) -> bool:
        return True

    def worth(self, item_seconds: float) -> int | None:
        self._sampled = item_seconds
        if self._places[0].model.source != CALIBRATED:
            return None
        each, least = self._in_order, MOST_WORTH
        for place in self._ready():
            if place.model.ratio < 1.0:
                least = min(least, place.model.launch_seconds / (1.0 - place.model.ratio))
        return int(least / each)

    @property
    def _in_order(self) -> float:
        """Seconds of an item in order: by the model, from what was learned on the first place, since a
        sample is of the first items, which may differ from the others."""
        first = self._places[0]
        learned = first.item_seconds
        return self._sampled if learned is None else learned / first.model.ratio

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        self._ranges += 1
        items = limit - first
        expected = {one: one.expected(items, self._in_order) for one in self._places}
        for place, seconds in expected.items():
            place.activity.next_expected = seconds
        known = [one for one in self._ready() if one.activity.times or one is self._places[0]]
        best = min(known, key=expected.__getitem__)
        self._wake(machine, best, expected)
        tried = self._due(best, expected)
        if tried is None:
            return self._run(best, machine, first, limit)
        least = tried.items_for(_TRIAL_LAUNCHES * tried.model.launch_seconds, self._in_order)
        end = min(first + max(items // _TRIAL_PART, least, 1), limit)
        tried.next_trial = 2 * self._ranges
        if end < limit:
            put_off(machine, end, limit)
        tried.activity.trials += 1
        return self._run(tried, machine, first, end)

    def _ready(self) -> list[LaunchPlace]:
        found = [one for one in self._places if one.state is PlaceState.READY]
        if not found:
            raise BackendError("no place of the launch is usable any more")
        return found

    def _due(self, best: LaunchPlace, expected: dict[LaunchPlace, float]) -> LaunchPlace | None:
        """The place whose trial is due."""
        for place in self._ready():
            is_due = self._ranges >= place.next_trial
            if place is not best and is_due and expected[place] < DUE * expected[best]:
                return place
        return None

    def _wake(
        self, machine: Machine, best: LaunchPlace, expected: dict[LaunchPlace, float]
    ) -> None:
        """Request the code of places that may be quicker than the best one so far."""
        for number, place in enumerate(self._places):
            if place.state is not PlaceState.ASLEEP:
                continue
            times = expected[place] / expected[best]
            if times >= PROMISING:
                place.activity.state = (
                    f"not compiled: it is expected to take {times:.1f} times as long as "
                    f"{best.activity.name}"
                )
            elif self._spent < place.model.compile_seconds:
                place.activity.state = (
                    f"not compiled yet: that takes {place.model.compile_seconds:.2g} s, "
                    f"the launch took {self._spent:.2g} s so far"
                )
            else:
                place.state, place.activity.state = PlaceState.COMPILING, "being compiled"
                self._compile(machine, number, self._receiver(place))

    def _receiver(self, place: LaunchPlace) -> Callable[[RangeRunner | str], None]:
        def receive(found: RangeRunner | str) -> None:
            if isinstance(found, str):
                place.gone(found)
                return
            place.runner, place.activity.state = found, "compiled"
            place.next_trial = 0
            place.state = PlaceState.READY

        return receive

    def _run(self, place: LaunchPlace, machine: Machine, first: int, limit: int) -> RangeOutcome:
        runner = place.runner
        assert runner is not None
        if not runner.has_slices:
            most = max(place.items_for(SLICE, self._in_order), 1)
            if first + most < limit:
                put_off(machine, first + most, limit)
                limit = first + most
        expected = place.expected(limit - first, self._in_order)
        began = self._clock()
        try:
            outcome = runner.run(machine, first, limit)
        except BackendError as error:
            if place is self._places[0]:
                raise
            place.gone(str(error))  # it has run nothing
            return self._run(self._places[0], machine, first, limit)
        seconds = self._clock() - began
        self._spent += seconds
        place.has_run(outcome, expected * outcome.completed / (limit - first), seconds)
        return outcome if runner is self._first else record.replace(outcome, seconds=None)


class PlacedCode(CodeWrapper):
    """Code of a launch's loop whose items have several places."""

    def __init__(self, inner: Code, ranges: PlacedRanges) -> None:
        super().__init__(inner)
        self._ranges = ranges

    @property
    def ranges(self) -> RangeRunner:
        return self._ranges
