# SPDX-License-Identifier: Apache-2.0
"""A launch with installed code that runs its items out of order: its metrics, guesses and times.

`Launches` decides when this code runs. What is learned here is how long an item takes in order,
which guards fail too often, and if other launches follow so soon that results may stay on a device.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping

from ferryvm import record
from ferryvm.backend import BackendError, Code
from ferryvm.engine.guess import GuessLimit
from ferryvm.engine.launch_interlude import Begin, Interlude
from ferryvm.errors import FerryError
from ferryvm.failure import is_signals
from ferryvm.item_range import PlaceActivity, RangeOutcome, RangeRunner
from ferryvm.machine.entry import ENTRY
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.state import Machine
from ferryvm.thread import ThreadError

SUSPENSION = 1e-6
"""Seconds that an item takes that fails a guard out of order: it is suspended, and taken up
again."""

_MOST_SUSPENSION = 0.1
"""The share of a launch's work that this may take, for one guard."""

SAMPLES_LEFT = 16
"""Samples that items end by leaving after which it shows whether more items are done than leave."""

LEAST = 1e-12
"""The least time of an item, so that words are finite."""

FAILURE = (OSError, MemoryError, AddressSpaceError, ThreadError, BackendError)
"""Errors of a runner that has run nothing."""


@record.dataclass
class LaunchActivity:
    """Metrics of one launch since its code was installed."""

    where: str = ""
    """Place where items run out of order: `2 threads`."""
    item_seconds: float | None = None
    """Time of one item, as last measured; None: not measured yet."""
    exits: int = 0
    """Times that code left for the launch."""
    times: int = 0
    """Times that items ran out of order."""
    items: int = 0
    """Items that were done so."""
    suspended: int = 0
    """Items that were suspended meanwhile."""
    finished: int = 0
    """Of these, those that threads have run to their ends at once."""
    remained: int = 0
    """Times that results remained on a device."""
    failures: dict[int, int] = record.field(default_factory=dict)
    """Items that failed a guard, out of order or in samples, by the pc of the branch."""
    expected: float = 0.0
    """Seconds that these items would have taken in order, by the time of one item."""
    seconds: float = 0.0
    """Seconds that they took."""
    most: int = 0
    """The largest number of items left at an exit."""
    stopped: str = ""
    """The reason that items run in order from now on; empty if they do not."""
    at_once: str = ""
    """The reason that results come back behind each launch from now on, not behind the last one of
    a sequence; empty if they may stay on a device."""
    places: tuple[PlaceActivity, ...] = ()
    """The places among which one is chosen for each range, if there are several."""


class LostResultsError(FerryError):
    """A device has failed that had results of launches; the machine's memory is as it was in front
    of them."""


@contextlib.contextmanager
def _losing() -> Iterator[None]:
    """Raise LostResultsError for an error of a runner."""
    try:
        yield
    except FAILURE as error:
        if is_signals(error):
            raise
        raise LostResultsError(str(error)) from None


class InstalledLaunch:
    """A launch with code that runs its items out of order."""

    def __init__(
        self, pc: int, number: int, code: Code, ranges: RangeRunner, guesses: GuessLimit
    ) -> None:
        self.pc, self.number, self.code, self.ranges = pc, number, code, ranges
        self.guesses = guesses
        self.started = 0
        """Items that have begun out of order, or in samples."""
        self.disturbed = 0, 0.0
        """Items and seconds of samples that an item ended by leaving, since the last that counted."""
        self.left = self.done = 0
        """Samples that an item ended by leaving for what has to be done in order; items done in
        them."""
        self.in_order: Callable[[int], int] = ENTRY(code.address)
        self._activity = LaunchActivity(ranges.where, places=tuple(ranges.places))
        self.followed = self.alone = 0
        """Times that another launch followed, and that none did."""
        self.gain: float | None = None
        """Times as long as an item takes in order than out of order, where lanes do several at
        once; None until both have been measured."""
        if not guesses.words:  # else the engine looks at these first
            ranges.note = self.has_run

    @property
    def activity(self) -> LaunchActivity:
        """Its metrics."""
        self.ranges.settle()
        return self._activity

    @property
    def is_stopped(self) -> bool:
        """True if its items run in order from now on."""
        return bool(self._activity.stopped)

    def failed(self, items: int, stops: Mapping[int, int]) -> int:
        """Note items that have begun, and those that failed a guard; the number of these. `stops`:
        the number of items that stopped, by the pc at which they did."""
        self.started += items
        if not stops:
            return 0
        found = {pc: times for pc, times in stops.items() if pc in self.guesses.branches}
        failures = self.activity.failures
        for pc, times in found.items():
            failures[pc] = failures.get(pc, 0) + times
        return sum(found.values())

    def wrong(self) -> list[int]:
        """The branches whose guards have failed too often."""
        return [branch for branch in self.activity.failures if self.is_wrong(branch)]

    def is_wrong(self, branch: int) -> bool:
        """True if too many of the items that have started failed a guard, by the policy, or because
        suspending them takes too large a part of the time."""
        failures, each = self.activity.failures.get(branch, 0), self.activity.item_seconds
        if self.guesses.is_exceeded(failures, self.started):
            return True
        most = math.inf if each is None else _MOST_SUSPENSION * each * self.started
        return self.guesses.is_many(failures) and SUSPENSION * failures > most

    def timed(self, items: int, seconds: float, sample: float) -> None:
        """Note the time of the items of a sample that the next one ended by leaving: several such
        samples are one."""
        self.disturbed = self.disturbed[0] + items, self.disturbed[1] + seconds
        if self.disturbed[0] and self.disturbed[1] >= sample:
            self.activity.item_seconds = max(self.disturbed[1] / self.disturbed[0], LEAST)
            self.gain, self.disturbed = None, (0, 0.0)

    def has_left(self, items: int) -> bool:
        """Note a sample that an item ended by leaving for what has to be done in order, after so
        many that were done; True if most items of such samples leave."""
        self.left += 1
        self.done += items
        return self.left >= SAMPLES_LEFT and self.done <= self.left

    def may_be_followed(self, machine: Machine, interlude: Interlude, items: int) -> bool:
        """True if results of so many items may stay on a device, and it is likely that another
        launch follows before anything can look at them: if one has as often as not, or it is time
        to see again."""
        exits = self.activity.exits
        is_likely = self.followed >= self.alone or not exits & (exits - 1)
        can = is_likely and not self.activity.at_once
        can = can and self.ranges.deferral_of(items) is not None
        return can and interlude.is_plain() and Begin.is_small(machine)

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        """As of its ranges. Raises LostResultsError."""
        with _losing():
            return self.ranges.run_deferred(machine, first, limit)

    def write_back(self, machine: Machine) -> None:
        """As of its ranges. Raises LostResultsError."""
        with _losing():
            self.ranges.write_back(machine)

    def has_run(self, times: int, items: int, seconds: float) -> None:
        """Note so many ranges, with all their items, that ran as ever, without the engine."""
        activity = self._activity
        activity.exits += times
        activity.times += times
        activity.items += items
        activity.seconds += seconds
        self.started += items

    def raise_pending(self) -> None:
        """Raise the exception of a signal handler that came where nothing could raise it."""
        raised = self.ranges.raised
        if raised is not None:
            self.ranges.raised = None
            raise raised

    def has_remained(self, items: int, seconds: float) -> None:
        """Note so many items that have run again as before, whose results have remained on a device."""
        activity = self._activity
        activity.exits += 1
        activity.times += 1
        activity.items += items
        activity.remained += 1
        activity.seconds += seconds

    def was_followed(self, followed: bool) -> None:
        """Note if another launch has followed."""
        if followed:
            self.followed += 1
        else:
            self.alone += 1

    def measure(self, seconds: float) -> None:
        """Note the seconds of work that an item took out of order. What counts is its time in
        order, since that is what running it out of order saves."""
        activity, seconds = self.activity, max(seconds, LEAST)
        assert activity.item_seconds is not None
        if self.gain is None:
            self.gain = max(activity.item_seconds / seconds, 1.0)
        activity.item_seconds = seconds * self.gain
