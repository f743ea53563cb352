# SPDX-License-Identifier: Apache-2.0
"""The launches that compiled code leaves for, and the decision to run their items out of order.

    code ─ items left > word ─> PARALLEL ─┬─ time of an item unknown: some items in order, timed
                                          │  (not on a device that paces itself)
                                          ├─ little work left: in order, the word is raised
                                          └─ much: `ranges` of the launch's code ─> record

Each launch has a word in `control.launches`. Code that comes to the launch, also code of a function
or a loop around it, compares the items left with it, once for a launch. The word is `NEVER` as long
as there is no code that runs items out of order. Then it is the number of items whose work pays for
that, as far as items have been timed: so small launches stay within the code around them.
"""

from __future__ import annotations

import contextlib
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ferryvm.backend import Code
from ferryvm.engine.guess import NO_GUESSES, GuessLimit
from ferryvm.engine.installed_launch import (
    FAILURE,
    LEAST,
    InstalledLaunch,
    LaunchActivity,
    LostResultsError,
)
from ferryvm.engine.launch_interlude import Begin, Interlude
from ferryvm.failure import SignalRaised, is_signals
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.launch import put_off
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.state import Machine
from ferryvm.region.launch import is_in_loop, launch_numbers
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.machine.slot_code import SlotCode
    from ferryvm.region.known_word import KnownWord
    from ferryvm.region.region import Region
    from ferryvm.residency import Residency

NEVER = (1 << 63) - 1
"""A word that no number of items is above."""

WORTH = 150e-6
"""Seconds of work that are worth an exit and threads, which take some 40 us together."""

SAMPLE = 10e-6
"""Seconds of a sample of items after which their time is known well enough."""

SLICE = 2.0
"""Seconds of work, of all cores together, that run out of order at once: a trap, an exception or a
host call of an item takes effect after that at the latest, however many items there are."""

_IN_ORDER = "most items do what has to be done in order, or none could begin"

_INTERRUPTIONS = frozenset({Status.INTERRUPTED, Status.TRAP, Status.FUEL})
"""Statuses that say nothing about what most items do."""

_Run = Callable[[Machine, int, int], RangeOutcome]


class Launches:
    """The launches of one program, as its code leaves for them."""

    def __init__(self, program: Verified, worth: float, sample: float) -> None:
        """`worth`, `sample`: seconds, see `WORTH` and `SAMPLE`."""
        self._worth, self._sample = worth, sample
        self._numbers: Mapping[int, int] = launch_numbers(program)
        self._words, self._never = (array("Q", [NEVER]) * len(self._numbers) for _ in range(2))
        self._address, _ = self._words.buffer_info()
        self._launches: dict[int, InstalledLaunch] = {}
        self._activities: dict[int, LaunchActivity] = {}
        self.interlude: Interlude | None = None
        """Runs the code between launches whose results stay on a device; None: they never do."""
        self.bind_slots: Callable[[ControlBlock], SlotCode | None] | None = None
        """See `Artifact.bind_slots`; None: suspended items wait for their turn."""
        self._is_disabled = False
        self._words_known: dict[int, frozenset[KnownWord]] = {}
        """Words that the code of a launch takes for constant, by its pc."""
        self._wrong: SimpleQueue[tuple[int, int | frozenset[KnownWord]]] = SimpleQueue()

    @property
    def activities(self) -> Mapping[int, LaunchActivity]:
        """Metrics of the launches with such code, by pc."""
        for launch in [*self._launches.values()]:
            launch.ranges.settle()
        return self._activities

    def disable(self) -> None:
        """Leave for no launch, so that all items run in order."""
        self._is_disabled = True

    def bind(self, control: ControlBlock) -> None:
        """Let code that a machine enters read the words."""
        control.launches = self._address

    def has(self, pc: int) -> bool:
        """True if the items of the launch at `pc` may run out of order."""
        return pc in self._numbers

    def within(self, region: Region) -> frozenset[tuple[int, int]]:
        """The launches in a region and what it calls: their pcs and numbers."""
        owner, called = region.verified.owner, {*region.callees}
        return frozenset(
            (pc, number)
            for pc, number in self._numbers.items()
            if pc in region.pcs or owner(pc) in called
        )

    def observe(self, pc: int) -> None:
        """Leave for the launch at `pc` until it is removed: an interpreter runs its items."""
        number = self._numbers.get(pc)
        if number is not None:
            self._words[number] = 1

    def tolerates(self, pc: int, branch: int) -> bool:
        """True if so few items of the launch at `pc`, of those that ran out of order, have failed a
        guard that its code may keep it."""
        launch = self._launches.get(pc)
        if launch is None or not launch.activity.times:
            return False
        failures = launch.code.activity().failures.get(branch)
        if failures is None or launch.guesses.is_exceeded(failures, launch.started):
            return False
        return not launch.is_wrong(branch)

    def failed(self) -> Iterator[tuple[int, int | frozenset[KnownWord]]]:
        """Guesses that were wrong too often since the last call: pc of the launch; pc of the
        branch, or words that have other values."""
        with contextlib.suppress(Empty):
            while not self._wrong.empty():
                yield self._wrong.get_nowait()

    def install(
        self, pc: int, code: Code, guesses: GuessLimit = NO_GUESSES
    ) -> LaunchActivity | None:
        """Leave for the launch at `pc` from now on, if its code runs items out of order; its
        metrics then."""
        self._words_known[pc] = guesses.words
        ranges, number = code.ranges, self._numbers.get(pc)
        if ranges is None or number is None or self._is_disabled:
            return None
        launch = self._launches[pc] = InstalledLaunch(pc, number, code, ranges, guesses)
        self._activities[pc] = launch.activity
        self._words[number] = 0 if ranges.takes_one else 1  # its items are timed first
        return launch.activity

    def remove(self, pc: int) -> None:
        """Leave for the launch at `pc` no more."""
        launch = self._launches.pop(pc, None)
        if launch is not None:
            launch.ranges.settle()
        self._words_known.pop(pc, None)
        number = self._numbers.get(pc)
        if number is not None:
            self._words[number] = NEVER

    def run_in_order(self, pc: int, reason: str) -> None:
        """Run the items of a launch in order from now on, until other code of it is installed."""
        launch = self._launches.get(pc)
        if launch is not None:
            self._stop(launch, reason)

    def run(self, machine: Machine) -> Status:
        """Continue a machine that code has left at a launch with many items; LEAVE: an interpreter
        goes on where it stands then.

        Raises SignalRaised.
        """
        try:
            return self._run(machine)
        except BaseException as error:
            if is_signals(error):  # the state is exact wherever it came
                raise SignalRaised(error) from None
            raise

    def _run(self, machine: Machine) -> Status:
        control = machine.control
        changed = self._changed_words(machine)
        if changed:
            self._wrong.put((control.pc, changed))
            return Status.LEAVE
        launch = self._launches.get(control.pc)
        if launch is None:
            return Status.LEAVE  # it was removed at this moment, or is observed
        launch.raise_pending()
        try:
            return self._run_launch(launch, machine)
        finally:
            for branch in launch.wrong():
                self._wrong.put((launch.pc, branch))

    def _changed_words(self, machine: Machine) -> frozenset[KnownWord]:
        """The words that code of the launch at which a machine stands takes for constant, and that
        have other values."""
        control = machine.control
        known = self._words_known.get(control.pc)
        if not known:
            return frozenset()
        from ferryvm.engine.launch_profile import words_at  # few programs speculate

        return known - words_at(machine, control.pc, control.sp)

    def _run_launch(self, launch: InstalledLaunch, machine: Machine) -> Status:
        operands, activity = launch_operands(machine.control), launch.activity
        limit, next_ = operands.limit, operands.next
        activity.exits += 1
        activity.most = max(activity.most, limit - next_)
        interlude, has_items = self.interlude, next_ < limit
        if has_items and interlude and launch.may_be_followed(machine, interlude, limit - next_):
            return self._run_sequence(interlude, launch, machine)
        if launch.ranges.is_paced:
            if not has_items:
                return Status.LEAVE
            return self._run_out_of_order(launch, machine, next_, limit)
        # A sample may have been disturbed, and others are as cheap as exits are rare.
        is_sampled = not activity.exits & (activity.exits - 1)
        is_timed = activity.item_seconds is not None
        tried = launch.ranges.in_order(limit - next_) if is_timed and self._worth else 0
        if not is_timed or is_sampled or tried:
            status = self._time(launch, machine, next_, limit, tried)
            if status is not None:
                return status
            next_ = operands.next
        assert activity.item_seconds is not None
        if limit - next_ < self._worth_of(launch) or next_ == limit:
            self._set_word(launch)
            return Status.LEAVE
        return self._run_out_of_order(launch, machine, next_, limit)

    def _run_sequence(
        self, interlude: Interlude, launch: InstalledLaunch, machine: Machine
    ) -> Status:
        """Run a launch, and those that follow before anything can look at what its items store.
        That comes back from the device at the end; if it fails the machine stands in front of the
        first one as before."""
        begin, launches, status = Begin(machine), [launch], Status.LEAVE
        errors: list[BaseException] = []
        try:
            status = self._follow(interlude, launches, machine)
        except BaseException as error:  # noqa: BLE001 - also a signal handler's: results must come back
            errors.append(error)
        for each in dict.fromkeys(reversed(launches)):
            try:
                each.write_back(machine)
            except BaseException as error:  # noqa: BLE001 - likewise
                errors.append(error)
        lost = [error for error in errors if isinstance(error, LostResultsError)]
        if lost:
            begin.restore(machine)
            self._lose(launches, str(lost[0]))
        for raised in errors:
            if not isinstance(raised, LostResultsError):
                raise raised
        if lost:
            return Status.LEAVE
        launch.was_followed(len(launches) > 1)
        return status

    def _lose(self, launches: list[InstalledLaunch], reason: str) -> None:
        """Note that a device has lost the results of a sequence, which begins again."""
        first = launches[0]
        if len(launches) > 1:  # it may have had no memory for the arrays of all
            first.activity.at_once = f"the device failed in a sequence of launches: {reason}"
        elif not first.ranges.lost(reason):
            self._stop(first, f"they cannot run out of order: {reason}")

    def _follow(
        self, interlude: Interlude, launches: list[InstalledLaunch], machine: Machine
    ) -> Status:
        """Run a launch and those that follow it, which are added to the list; the status in front
        of anything else. Results may be on the device alone. Raises LostResultsError, and what an
        interpreter and signal handlers raise."""
        control, began = machine.control, time.perf_counter()
        while True:
            launch, operands = launches[-1], launch_operands(machine.control)
            first, limit = operands.next, operands.limit
            memory = launch.ranges.deferral_of(limit - first)
            status = self._run_range(launch, machine, first, limit, launch.run_deferred)
            if status is not Status.LEAVE or launch_operands(control).record:
                return status
            status = interlude.run(machine)
            if status is not Status.PARALLEL:
                return status
            operands, found = launch_operands(control), self._launches.get(control.pc)
            left = operands.limit - operands.next
            if found is None or found.ranges.deferral_of(left) != memory:
                return Status.LEAVE
            if self._words_known.get(found.pc) or left <= self._words[found.number]:
                return Status.LEAVE
            if control.interrupt or time.perf_counter() - began > SLICE:
                return Status.LEAVE
            launches.append(found)
            found.activity.most = max(found.activity.most, left)

    def _run_out_of_order(
        self, launch: InstalledLaunch, machine: Machine, first: int, limit: int
    ) -> Status:
        try:
            return self._run_range(launch, machine, first, limit, launch.ranges.run)
        except FAILURE as error:
            if is_signals(error):  # a handler's own TimeoutError, say
                raise
            self._stop(launch, f"they cannot run out of order: {error}")
            return Status.LEAVE

    def run_resident(self, machine: Machine, residency: Residency) -> InstalledLaunch | None:
        """The launch at which a machine stands, if all its items have run on a device, where what
        they have stored remains as far as that is wanted; None if the machine is as it was. Raises
        the exceptions of signal handlers."""
        launch, operands = self._launches.get(machine.control.pc), launch_operands(machine.control)
        first, limit = operands.next, operands.limit
        if launch is None or self._changed_words(machine):
            residency.refusal = "there is no code of its items for a device yet"
            return None
        if launch.activity.stopped:
            residency.refusal = launch.activity.stopped
            return None
        runner = launch.ranges.resident(limit - first, residency)
        if runner is None:
            residency.refusal = _not_resident(launch.ranges, residency)
            return None
        activity, began = launch.activity, time.perf_counter()
        activity.exits += 1
        activity.most = max(activity.most, limit - first)
        try:
            outcome = runner.run_resident(machine, first, limit, residency)
        except FAILURE as error:
            if is_signals(error):
                raise
            residency.left.clear()
            residency.refusal = f"they cannot run out of order: {error}"
            self._stop(launch, residency.refusal)
            return None
        activity.seconds += time.perf_counter() - began
        activity.times += 1
        if outcome.completed < limit - first:
            launch.failed(outcome.completed + outcome.suspended, outcome.stops)
            residency.refusal = "items did not end there"
            return None
        activity.items += outcome.completed
        activity.remained += bool(residency.left)
        if self._words_known.get(launch.pc):  # they may have others next time
            residency.again = None
        return launch

    def is_installed(self, launch: InstalledLaunch) -> bool:
        """True if the items of a launch still run out of order, by the same code."""
        return self._launches.get(launch.pc) is launch and not launch.is_stopped

    def _run_range(
        self, launch: InstalledLaunch, machine: Machine, first: int, limit: int, run: _Run
    ) -> Status:
        """Run a range, and note its outcome. Raises what `run` raises."""
        activity = launch.activity
        is_paced, each = launch.ranges.is_paced, activity.item_seconds or 0.0
        expected = each * (limit - first)
        began = time.perf_counter()
        end = limit
        if not launch.ranges.has_slices:
            end = min(limit, first + max(int(SLICE / each), 1))
        if end < limit:
            put_off(machine, end, limit)
        outcome = run(machine, first, end)
        activity.times += 1
        activity.seconds += time.perf_counter() - began
        activity.items += outcome.completed
        activity.suspended += outcome.suspended
        activity.finished += outcome.finished
        # An interrupted item may stand in front of a guard that it did not fail.
        stops = {} if outcome.is_interrupted else outcome.stops
        failed = launch.failed(outcome.completed + outcome.suspended, stops)
        if outcome.is_interrupted:
            machine.control.status = Status.INTERRUPTED
            return Status.INTERRUPTED
        activity.expected += expected * outcome.completed / (limit - first)
        if outcome.completed <= outcome.suspended - failed:
            self._stop(launch, _IN_ORDER)
        elif outcome.completed and not is_paced:
            if outcome.seconds:
                launch.measure(outcome.seconds / outcome.completed)
            self._set_word(launch)
        return Status.LEAVE

    def _set_word(self, launch: InstalledLaunch) -> None:
        self._words[launch.number] = min(int(self._worth_of(launch)), NEVER)

    def _worth_of(self, launch: InstalledLaunch) -> float:
        """The least number of items for which running a launch out of order pays."""
        seconds = launch.activity.item_seconds
        assert seconds is not None
        own = launch.ranges.worth(seconds) if self._worth else None
        return self._worth / seconds if own is None else own

    def _stop(self, launch: InstalledLaunch, reason: str) -> None:
        """Run a launch's items in order from now on."""
        launch.activity.stopped = reason
        self._words[launch.number] = NEVER

    def _time(
        self, launch: InstalledLaunch, machine: Machine, next_: int, limit: int, tried: int
    ) -> Status | None:
        """Run some items in order, so that the time of one is known; None if all is as it was but
        for them, else the status with which the machine was left. `tried`: items that the runner of
        ranges wants timed; 0: as few as suffice."""
        control, operands = machine.control, launch_operands(machine.control)
        sp, fp, launches = control.sp, control.fp, control.launches
        record_ = operands.record
        sample = self._sample_of(launch)
        size = tried or 1
        while True:
            size = min(size, limit - next_)
            try:
                operands.limit, operands.record = next_ + size, 0
                control.launches = self._never.buffer_info()[0]
                began = time.perf_counter()
                status = launch.in_order(machine.address)
                seconds = time.perf_counter() - began
            finally:
                control.launches = launches
                operands.limit, operands.record = limit, record_
                is_done = (control.sp, control.fp) == (sp, fp) and not is_in_loop(
                    launch.pc, control.pc
                )
                if is_done:
                    control.pc = launch.pc
            launch.failed(operands.next - next_, {} if is_done else {control.pc: 1})
            if not is_done or status != Status.LEAVE:
                if status not in _INTERRUPTIONS:
                    self._note_left(launch, control.pc, operands.next - next_ - 1, seconds)
                control.status = status
                return Status(status)
            next_ += size
            if size == tried:
                launch.ranges.timed(size, seconds)
            if seconds >= sample or next_ == limit:
                launch.activity.item_seconds = max(seconds / size, LEAST)
                launch.gain = None
                return None
            size *= 2

    def _sample_of(self, launch: InstalledLaunch) -> float:
        """Seconds after which the time of a launch's items is known."""
        return self._sample and max(self._sample, launch.ranges.sample_seconds)

    def _note_left(self, launch: InstalledLaunch, pc: int, items: int, seconds: float) -> None:
        """Note a sample of so many items, which the next one ended by leaving at `pc`."""
        launch.timed(items, seconds, self._sample_of(launch))
        if pc not in launch.guesses.branches and launch.has_left(items):
            self._stop(launch, _IN_ORDER)


def _not_resident(ranges: RangeRunner, residency: Residency) -> str:
    """The reason for which a runner takes no elements that are on a device."""
    of, where = ranges.deferral, ranges.where
    if of is None:
        return f"{where} have no memory of their own for results"
    if residency.memory not in (None, of):
        return f"elements are on another device than {where}"
    return f"it is expected to end earlier elsewhere than on {where}"


def launches_in(program: Verified, is_forced: bool) -> Launches | None:
    """The launches of a program; None if it has none whose items may run out of order.

    `is_forced`: for tests, they run so however few they are.
    """
    if not launch_numbers(program):
        return None
    return Launches(program, *((0.0, 0.0) if is_forced else (WORTH, SAMPLE)))


def quiet_words(program: Verified) -> array[int]:
    """Words for `control.launches` with which code leaves for no launch of a program."""
    return array("Q", [NEVER]) * len(launch_numbers(program))
