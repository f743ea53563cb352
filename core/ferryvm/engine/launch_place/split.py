# SPDX-License-Identifier: Apache-2.0
"""Splitting a range of a launch: a part on each place, all at once.

    range ─ shares, by expected times ─> part ─ place, in a thread ─┐
                                         part ─ place, in a thread ─┼─> what is left, in order ─> record
                                         part ─ the first place ────┘

While they run, what is left of each part is gathered, and nothing is written into the launch: so
all see the machine as it was. There is no collection. Then one record is made of all, in the order
of items: it is that of a runner which has run the whole range, so host calls keep their order, and
the lowest item that traps is the first to go on.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence

from ferryvm.backend import BackendError
from ferryvm.engine.launch_place.chooser import SLICE, Clock, Compile, PlacedRanges
from ferryvm.engine.launch_place.place import LaunchPlace
from ferryvm.item_range import LostItemsError, RangeOutcome
from ferryvm.machine.launch import Left, finish, put_off, space_for
from ferryvm.machine.object_memory import Gathered, ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm.machine.state import Machine
from ferryvm.thread import Bell, ThreadError, start

_PIECES, _WORDS = 1 << 13, 1 << 18
"""Pieces of each part, and their words, for which there is room before any of them runs."""

_LOOK = 0.01
"""Seconds between two looks at signals while parts run."""


class SplitRanges(PlacedRanges):
    """Runs a part of each range of a launch on each of its places."""

    _wants_all = True

    def __init__(
        self, places: Sequence[LaunchPlace], compile_: Compile, clock: Clock = time.perf_counter
    ) -> None:
        super().__init__(places, compile_, clock)
        for place in places:  # parts have other items each time
            place.estimate = _mean

    def in_order(self, items: int) -> int:
        return 0

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        self._ranges += 1
        self._wake(machine, limit - first)
        places = self._companions()
        for place in (*self._places, self._alone):
            place.activity.next_expected = place.expected(limit - first, self._in_order)
        most = sum(max(place.items_for(SLICE, self._in_order), 1) for place in places)
        end = _rounded_up(first + most, places)
        if end < limit:
            put_off(machine, end, limit)
            limit = end
        parts = [
            part
            for part in divided(places, first, limit, self._in_order)
            if part.first < part.limit
        ]
        if len(parts) == 1:
            return self._run(parts[0].place, machine, first, limit)
        objects = machine.objects
        assert objects is not None  # the program has launches
        reserve(objects, _PIECES * len(parts), _WORDS * len(parts))
        began = self._clock()
        split = Split(machine, objects, parts, limit, self._clock)
        split.run()
        self._spent += self._clock() - began
        for part in parts:
            self._learn(part)
        return split.outcome()

    def _companions(self) -> list[LaunchPlace]:
        """The places that can run beside each other, the first among them."""
        found = []
        for place in self._ready():
            runner = place.runner
            if place is self._places[0] or (runner is not None and runner.is_companion):
                found.append(place)
            else:
                place.gone(
                    "it cannot run beside another place: its device has memory of its own, and items store "
                    "elsewhere than into the elements with their numbers"
                )
        first = found[0].runner
        if first is None or not first.is_companion:
            for place in found[1:]:
                place.gone("the first place can run beside no other")
            return found[:1]
        return found

    def _learn(self, part: Part) -> None:
        place, outcome = part.place, part.outcome
        if outcome is None:
            if place is not self._places[0]:
                place.gone(str(part.error))
            return
        items = part.limit - part.first
        expected = place.expected(items, self._in_order) * outcome.completed / items
        place.has_run(outcome, expected, part.seconds, self._in_order)


class Split:
    """The parts of one range while they run: all of it is done by a thread, while the one that
    launches waits, so that signal handlers run in no other place."""

    def __init__(
        self,
        machine: Machine,
        objects: ObjectMemory,
        parts: Sequence[Part],
        limit: int,
        clock: Clock,
    ) -> None:
        self._machine, self._objects, self._clock = machine, objects, clock
        self._parts, self._limit = parts, limit
        self._go, self._ended = Bell(), Bell()
        self._is_abandoned = False
        self._fault: BaseException | None = None

    def run(self) -> None:
        """Run all parts. Raises the exceptions of the first part's runner, and of a signal handler
        once the machine's state is exact."""
        try:
            start(self._act)
        except BaseException:  # a thread that has begun all the same does nothing
            self._is_abandoned = True
            self._go.ring()
            raise
        raised: BaseException | None = None
        while not self._ended.is_rung:
            try:
                self._go.ring()
                while not self._ended.wait(_LOOK):
                    pass
            except BaseException as error:  # noqa: BLE001 - a handler's: the threads still write
                raised = error
        raised = self._fault or raised
        if raised is not None:
            raise raised

    def outcome(self) -> RangeOutcome:
        """The outcome of all parts. Raises the error of the first part if no part has run."""
        found = [part.outcome for part in self._parts if part.outcome is not None]
        error = self._parts[0].error
        if not found and error is not None:
            raise error
        stops = Counter[int]()
        for one in found:
            stops.update(one.stops)
        completed, suspended = (
            sum(one.completed for one in found),
            sum(one.suspended for one in found),
        )
        is_interrupted = any(one.is_interrupted for one in found)
        return RangeOutcome(completed, suspended, None, is_interrupted, stops)

    def _act(self) -> None:
        while not self._go.wait(1.0):
            pass
        if self._is_abandoned:
            return
        try:
            self._run_parts()
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            self._fault = error
        self._ended.ring()

    def _run_parts(self) -> None:
        objects, parts = self._objects, self._parts
        gathered: list[Gathered] = []
        objects.gathered = gathered
        try:
            for part in parts[1:]:
                part.start(self._machine, self._clock)
            parts[0].run(self._machine, self._clock)
            for part in parts[1:]:
                part.wait()
        finally:
            objects.gathered = None
        for part in parts:
            if isinstance(part.error, LostItemsError):
                raise part.error
        left: list[Left] = [each for _, some in gathered for each in some]
        left += [(one.first, one.limit) for one in parts if not one.has_run(gathered)]
        left.sort(key=lambda each: each[0])
        reserve(objects, *space_for(left), collects=False)
        finish(objects, self._limit, left)
        for part in parts:
            if part.error is not None and not isinstance(part.error, BackendError | ThreadError):
                raise part.error


class Part:
    """A part of a range, on one place."""

    def __init__(self, place: LaunchPlace, first: int, limit: int) -> None:
        self.place, self.first, self.limit = place, first, limit
        self.outcome: RangeOutcome | None = None
        self.error: BaseException | None = None
        self.seconds = 0.0
        self.bell: Bell | None = None
        """Rung at its end, if it runs in a thread of its own."""

    def start(self, machine: Machine, clock: Clock) -> None:
        """Run it in a thread."""
        bell = Bell()

        def action() -> None:
            try:
                self.run(machine, clock)
            finally:
                bell.ring()

        try:
            start(action)
        except ThreadError as error:
            self.error = error
        else:
            self.bell = bell

    def run(self, machine: Machine, clock: Clock) -> None:
        """Run it; `outcome` or `error` is set."""
        runner = self.place.runner
        assert runner is not None
        began = clock()
        try:
            self.outcome = runner.run(machine, self.first, self.limit)
        except BaseException as error:  # noqa: BLE001 - it is raised when all parts have ended
            self.error = error
        self.seconds = clock() - began

    def wait(self) -> None:
        """Wait for its end, if it runs in a thread."""
        while self.bell is not None and not self.bell.wait(1.0):
            pass

    def has_run(self, gathered: Sequence[Gathered]) -> bool:
        """True if its items have run, but for those that were gathered."""
        return self.outcome is not None or any(limit == self.limit for limit, _ in gathered)


def divided(places: Sequence[LaunchPlace], first: int, limit: int, in_order: float) -> list[Part]:
    """A range in parts, one for each place, that are expected to end at the same time; a place
    whose launch alone takes longer has none. `in_order`: seconds of an item in order."""
    taking = list(places)
    while True:
        rates = [1.0 / place.each(in_order) for place in taking]
        launches = sum(p.launch_seconds * rate for p, rate in zip(taking, rates, strict=True))
        seconds = (limit - first + launches) / sum(rates)
        quick = [place for place in taking if place.launch_seconds < seconds]
        if len(quick) == len(taking) or not quick:
            break
        taking = quick
    parts, at = [], first
    for place, rate in zip(taking, rates, strict=True):
        end = at + round((seconds - place.launch_seconds) * rate)
        end = limit if place is taking[-1] else min(_rounded_up(end, places), limit)
        parts.append(Part(place, at, end))
        at = end
    return parts


def _rounded_up(item: int, places: Sequence[LaunchPlace]) -> int:
    """The next item at which a part of any place may begin."""
    each = max((p.runner.part_items for p in places if p.runner is not None), default=1)
    return -(-item // each) * each


def _mean(times: Sequence[float]) -> float:
    return math.fsum(times) / len(times)  # `statistics` takes long to import
