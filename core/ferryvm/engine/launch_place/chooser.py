# SPDX-License-Identifier: Apache-2.0
"""Choosing the place of each range of a launch, by expected and found times.

    range ─> expected time on each place ─┬─ trial due: another place, or in order ─┐
                                          └─ the least: there ──────────────────────┴─> found time

The first place has the code that the interpreter enters, and runs until others are compiled.
Another place is compiled once the launch has taken some time, if it is expected to be quicker. Then
an eighth of a range is its first trial, or all of it on a device that paces itself; later ones are
whole ranges, whose items are those that other places ran. They come when the launch has had twice
as many ranges, so they cost little however wrong the model is, and a place that a disturbed or cold
run made look slow is tried again. Items in order are tried in the same way; before they have been
timed twice, no launch stays within the code around it, which would never leave for it any more,
unless it is tiny. What is chosen depends on times and counts alone: with a clock of its own the
same is chosen again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence

from ferryvm import record
from ferryvm.backend import BackendError, Code
from ferryvm.engine.launch_place.model import CALIBRATED, CostModel
from ferryvm.engine.launch_place.place import FAR, LEAST, LaunchPlace, PlaceState
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.launch import put_off
from ferryvm.machine.state import Machine
from ferryvm.residency import Residency
from ferryvm.wrapper import CodeWrapper

Clock = Callable[[], float]

Compile = Callable[[Machine, int, Callable[[RangeRunner | str], None]], None]
"""Requests the code of the place of a number; its runner is given to a function, or the reason that
there is none; now or later, in any thread."""

PROMISING = 1.25
"""A place is compiled early if it is expected to take less than this times the best one's time."""

DUE = 4.0
"""A place is tried if it is expected to take less than this times the best one's time."""

_LATER = 8.0
"""A place that is not promising but may be tried is compiled after so many times the time."""

_BUDGET = 0.2
"""A trial of a whole range takes less than this part of the launch's time so far, unless it is
promising."""

_PART = 8
"""The first trial of a place has the items of a range over this, in case the model is all wrong."""

_PART_LAUNCHES = 4.0
"""It has so many items, at least, that they take so many times as long as a launch."""

_FIRST_IN_ORDER = 4
"""The number of the range that is the first to be tried in order."""

SLICE = 1.0
"""Seconds of a range at once, where the place does not decide that: a trap or a host call of an
item takes effect after that at the latest."""

EXIT = 50e-6
"""Seconds of leaving code for a launch and of coming back, besides the launch itself; measured."""

MOST_WORTH = 5e-4
"""Seconds of work in order for which code is left in any case, so that times are found again."""

UNTIMED_WORTH = 20e-6
"""The same as long as items in order were timed in samples only, which first items and cold caches
mislead."""

_STREAK, _STREAK_AFTER = 7, 8
"""So many ranges with as many items follow the last decision, as soon as there were so many times
more."""

_TIMINGS = 2
"""Ranges that have to be timed in order before a launch stays within the code around it."""


class PlacedRanges(RangeRunner):
    """Runs each range of a launch on the place where it is expected to end first."""

    _wants_all = False
    """All places are compiled, however long they are expected to take."""

    def __init__(
        self, places: Sequence[LaunchPlace], compile_: Compile, clock: Clock = time.perf_counter
    ) -> None:
        """`places`: the first is ready."""
        self._places, self._compile, self._clock = tuple(places), compile_, clock
        first = places[0].runner
        assert first is not None
        self._first = first
        self.sample_seconds, self.is_paced = first.sample_seconds, first.is_paced
        model = CostModel(0.0, 1.0, 0.0, 0.0, self._places[0].model.source)
        self._alone = LaunchPlace("in order", model)
        self._alone.activity.state = "within the code around the launch"
        self._alone.next_trial, self._alone.is_checked = _FIRST_IN_ORDER, True
        self.places = (*(one.activity for one in places), self._alone.activity)
        self._sampled = 0.0
        """Seconds of an item in order, of a sample."""
        self._spent = 0.0
        """Seconds of all ranges."""
        self._ranges = 0
        """Ranges so far."""
        self._decided: LaunchPlace | None = None
        """The place of the next range, if that is decided."""
        self._streak = 0
        """Ranges for which the last decision still holds."""
        self._last: tuple[int, LaunchPlace] = 0, self._places[0]
        """It: items, and the place."""
        self._last_worth: int | None = None
        self._ahead: LaunchPlace | None = None
        """The place on whose device results are that the host lacks."""

    @property
    def where(self) -> str:
        return self._first.where

    @property
    def has_slices(self) -> bool:
        return True

    @property
    def _in_order(self) -> float:
        """Seconds of an item in order: as found, else by the model from what was learned on the
        first place, since a sample is of the first items, which may differ from the others."""
        if self._alone.unit is not None:
            return self._alone.unit
        first = self._places[0]
        return self._sampled if first.unit is None else first.unit

    def worth(self, item_seconds: float) -> int | None:
        self._sampled = item_seconds
        if self._streak <= 0:
            self._last_worth = self._worth()
        return self._last_worth

    def _worth(self) -> int | None:
        each, items = self._in_order, math.inf
        known = [one for one in self._ready() if one.is_known or one.model.source == CALIBRATED]
        if not known:
            return None
        for place in known:
            saved = each - place.each(each)
            if saved > 0.0:
                items = min(items, (EXIT + place.launch_seconds) / saved)
        is_timed = self._alone.activity.times >= _TIMINGS
        return int(min(items, (MOST_WORTH if is_timed else UNTIMED_WORTH) / each))

    def in_order(self, items: int) -> int:
        self._decided = self._decide(items)
        if self._decided is not self._alone:
            return 0
        return min(items, max(int(SLICE / self._in_order), 1))

    def timed(self, items: int, seconds: float) -> None:
        self._decided = None
        self._ranges += 1
        self._spent += seconds
        self._alone.next_trial = 2 * self._ranges
        expected = self._alone.expected(items, self._in_order)
        self._alone.has_run(RangeOutcome(items, 0, None), expected, seconds, self._in_order)
        self._last_worth = self._worth()

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        items = limit - first
        place = self._decided or self._decide(items)
        self._decided = None
        self._ranges += 1
        self._wake(machine, items)
        if place is self._alone:  # what is run out of order all the same, for tests
            place = self._places[0]
        if place.is_checked:
            return self._run(place, machine, first, limit)
        least = place.items_for(_PART_LAUNCHES * place.launch_seconds, self._in_order)
        end = min(first + max(items // _PART, least, 1), limit)
        if place.runner is not None and place.runner.is_paced:
            end = limit  # fewer would take as long, and copies, too
        if end < limit:
            put_off(machine, end, limit)
        most = FAR * self._best(end - first)[1]
        return self._run(place, machine, first, end, check=most, is_part=end < limit)

    def deferral_of(self, items: int) -> Hashable | None:
        """The deferral of the place where a decision has so many items run next, or has begun a
        sequence. Times of deferred ranges are not those of whole ones, so others choose places."""
        count, place = self._last
        is_settled = self._ahead is not None or self._streak > 0
        if not is_settled or items != count or place.runner is None:
            return None
        return place.runner.deferral_of(items)

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        _, place = self._last
        assert place.runner is not None  # there is a deferral
        if self._ahead is None:
            self._streak -= 1  # a sequence is one range of those for which the decision holds
        self._ahead, self._decided = place, None
        self._ranges += 1
        outcome = place.runner.run_deferred(machine, first, limit)
        place.activity.deferred += 1
        place.activity.deferred_items += outcome.completed
        return record.replace(outcome, seconds=None)

    def write_back(self, machine: Machine) -> None:
        place, self._ahead = self._ahead, None
        if place is not None and place.runner is not None:
            place.runner.write_back(machine)

    def lost(self, reason: str) -> bool:
        _, place = self._last
        self._streak = 0
        if place is self._places[0]:
            return False
        place.gone(reason)
        return True

    def resident(self, items: int, residency: Residency) -> RangeRunner | None:
        """The runner of the place that has elements; without any, that of the place which is
        expected to end first, if it is a device."""
        memory = residency.memory
        best, _ = self._best(items)
        for place in self._ready() if memory is not None else [best]:
            found = None if place.runner is None else place.runner.resident(items, residency)
            if found is not None:
                self._ranges += 1
                place.activity.times += 1
                place.activity.items += items
                return found
        return None

    def _decide(self, items: int) -> LaunchPlace:
        """The place of the next range, or `_alone`."""
        if self._streak > 0 and items == self._last[0]:
            self._streak -= 1
            return self._last[1]
        in_order = self._in_order
        for each in (*self._places, self._alone):
            each.activity.next_expected = each.expected(items, in_order)
        best, seconds = self._best(items)
        tried = self._tried(items, best, seconds)
        if tried is not None:
            tried.activity.trials += 1
            self._streak = 0
            return tried
        number = self._ranges + 1
        due = [one.next_trial - number for one in (*self._ready(), self._alone) if one is not best]
        most = min([_STREAK, number // _STREAK_AFTER, *(one for one in due if one >= 0)])
        self._streak, self._last = most, (items, best)
        return best

    def _best(self, items: int) -> tuple[LaunchPlace, float]:
        """The place that is expected to take the least time, of those whose times are known and the
        first; and that time. Code need not be left for items in order."""
        in_order = self._in_order
        known = [one for one in self._ready() if one.is_known or one is self._places[0]]
        expected = [one.expected(items, in_order) for one in known]
        seconds = min(expected)
        if self._alone.is_known:
            alone = self._alone.expected(items, in_order)
            if alone < seconds + (EXIT if alone < MOST_WORTH else 0.0):
                return self._alone, alone
        return known[expected.index(seconds)], seconds

    def _ready(self) -> list[LaunchPlace]:
        found = [one for one in self._places if one.state is PlaceState.READY]
        if not found:
            raise BackendError("no place of the launch is usable any more")
        return found

    def _tried(self, items: int, best: LaunchPlace, seconds: float) -> LaunchPlace | None:
        """The place whose trial is due; `seconds`: expected on the best one."""
        number, each = self._ranges + 1, self._in_order
        for place in (*self._ready(), self._alone):
            if place is best or number < place.next_trial:
                continue
            least = most = place.expected(items, each)
            if place is self._alone and not place.is_known:
                least = min(most, place.expected(items, self._sampled))
            is_cheap = most < max(PROMISING * seconds, _BUDGET * self._spent)
            if least < DUE * seconds and (is_cheap or not place.is_checked):
                return place
        return None

    def _wake(self, machine: Machine, items: int) -> None:
        """Request the code of places that may be quicker than the best one so far."""
        if self._streak > 0:
            return
        asleep = [n for n, one in enumerate(self._places) if one.state is PlaceState.ASLEEP]
        if not asleep:
            return
        best, seconds = self._best(items)
        for number in asleep:
            place = self._places[number]
            if self._wants_all:
                self._request(machine, number)
                continue
            times = place.expected(items, self._in_order) / max(seconds, LEAST)
            patience = place.patience * (1.0 if times < PROMISING else _LATER)
            if times >= DUE:
                place.activity.state = (
                    f"not compiled: it is expected to take {times:.1f} times as long as "
                    f"{best.activity.name}"
                )
            elif self._spent < patience:
                place.activity.state = (
                    f"not compiled yet: that takes {place.model.compile_seconds:.2g} s, and is begun "
                    f"once the launch took {patience:.2g} s; it took {self._spent:.2g} s so far"
                )
            else:
                self._request(machine, number)

    def _request(self, machine: Machine, number: int) -> None:
        """Request the code of a place."""
        place = self._places[number]
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
            self._streak = 0

        return receive

    def _run(
        self,
        place: LaunchPlace,
        machine: Machine,
        first: int,
        limit: int,
        check: float = math.inf,
        is_part: bool = False,
    ) -> RangeOutcome:
        """Run a range on a place. `check`: the place's first range is to show whether it takes
        longer than that; `is_part`: it is a part of a range, whose time is not that of other
        parts."""
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
            self._streak = 0
            return self._run(self._places[0], machine, first, limit)
        seconds = self._clock() - began
        self._spent += seconds
        expected *= outcome.completed / (limit - first)
        if seconds > FAR * expected:
            self._streak = 0
        is_slow, is_first = seconds >= check, check < math.inf
        # Items of a part may not be like others; what is far too slow may have been cold.
        learns = place.was_slow if is_slow else not (is_first and is_part)
        place.has_run(outcome, expected, seconds, self._in_order, learns=learns)
        # After a part, behind the rest of this launch.
        is_next = is_first and is_part and not is_slow
        place.next_trial = self._ranges + 2 if is_next else 2 * self._ranges
        place.is_checked = not is_slow or place.was_slow
        place.was_slow = is_slow
        # Threads measure the time of items in order by themselves, from samples.
        return record.replace(outcome, seconds=None)


class PlacedCode(CodeWrapper):
    """Code of a launch's loop whose items have several places."""

    def __init__(self, inner: Code, ranges: PlacedRanges) -> None:
        super().__init__(inner)
        self._ranges = ranges

    @property
    def ranges(self) -> RangeRunner:
        return self._ranges
