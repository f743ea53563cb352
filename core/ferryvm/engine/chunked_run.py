# SPDX-License-Identifier: Apache-2.0
"""One run of a range of items by threads: what native code cannot do, and the outcome.

    thread that launches ─ native ─┬─ ended ──────────────────────────────> wait for the others
                                   └─ exit ─> thread of the pool: settle ─┐
    parked threads ─────── native ─── exit ─> settle ─────────────────────┴─> the last one: record

Only threads that no signal handler runs in settle exits and write the record, and native code does
if nothing is left. So an exception of a handler finds the threads at work, or the machine in an
exact state, nothing between.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from array import array
from collections import Counter
from collections.abc import Iterable

from ferryvm.engine.crew import LOOK, crew
from ferryvm.engine.interrupt import BY_SIGNAL
from ferryvm.engine.team import Team
from ferryvm.engine.thread_pool import pool
from ferryvm.float_environment import ours
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm.machine import host_stack
from ferryvm.machine.chunk import (
    ACQUIRED,
    Outcome,
    RangeWorker,
    acquire,
    new_lock,
    release,
)
from ferryvm.machine.control import Status
from ferryvm.machine.item_batch import PC as SLOT_PC
from ferryvm.machine.item_batch import ItemBatch, range_slot
from ferryvm.machine.lane import FRAME, LENGTH, PC, STOPS, WORDS
from ferryvm.machine.launch import Left, finish, space_for
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm.region.launch import is_in_loop

MOST_RANGES = 3
"""Ranges of items that a thread leaves, at most."""

_STOPPING = (Status.INTERRUPTED, Status.TRAP, Status.THROW)
"""Statuses of an item after which no higher one needs to begin."""

_NO_PAUSE = 1 << 62

_PATIENCE = 3
"""Looks during which a signal's handler waits for the end of a chunk."""

_bells: list[int] = []
"""Locks of runs that have ended."""


class ChunkedRun:
    """A run of a range of items by a team of workers."""

    def __init__(self, team: Team, objects: ObjectMemory, helpers: int, pause: int) -> None:
        """`helpers`: threads besides this one; `pause`: chunks that this one runs before it looks
        if signal handlers are to be run."""
        self._team, self._objects = team, objects
        self._helpers, self._pause = helpers, pause
        self._lock = threading.Lock()
        self._slots: list[tuple[int, array[int]]] = []
        """Items that Python has suspended: for each its number, and a slot."""
        self._rest: list[tuple[int, int]] = []
        """Ranges that have not begun, of chunks that were taken."""
        self.failures: list[BaseException] = []
        """Exceptions of threads, which only a lack of memory explains."""
        self.stops = Counter[int]()
        """Suspended items by the pc in front of which they stand, once the run has ended."""
        self.rest = 0
        """Items that have not begun, likewise."""
        self.is_stopped = False
        self._passes = self._passes_seen = self._looks = 0
        """Returns of this thread to Python, which then runs signal handlers; and looks that found a
        signal since the last one."""

    # --- the thread that launches -----------------------------------------------------------

    def run(self) -> BaseException | None:
        """Run all items, or what of them can be; the exception of a signal handler that came
        meanwhile."""
        range_, workers = self._team.range, self._team.workers
        first = ctypes.addressof(workers[0])
        workers[0].most = self._pause
        bell = _bells.pop() if _bells else new_lock()
        range_.bell = bell
        outcomes: list[int] = []
        submitted: list[None] = []
        raised: BaseException | None = None
        shared = crew()
        is_rung = False
        try:
            shared.begin(ctypes.addressof(range_), self)
            # One call of C, which stores its result, too: a handler finds it done or not done.
            launch = (ctypes.addressof(range_),), (shared.table,), (shared.size,), (self._helpers,)
            outcomes.extend(map(self._team.launch, *launch))
        except BaseException as error:  # noqa: BLE001 - a handler's, before or after it was done
            raised = error
        while outcomes and not is_rung and not (raised is not None and range_.is_done):
            try:
                self._passes += 1
                if raised is not None or self._objects.control.interrupt not in (0, BY_SIGNAL):
                    self._stop()
                if outcomes[-1] == Outcome.PAUSED:
                    workers[0].most = self._pause
                    outcomes.extend(map(self._team.resume, (first,)))
                    continue
                if outcomes[-1] != Outcome.ENDED and not submitted:
                    action = functools.partial(self._take_over, Outcome(outcomes[-1]))
                    submitted.extend(map(pool().submit, ((action,),)))
                is_rung = acquire(bell, int(1e6 * LOOK), 1) == ACQUIRED
            except BaseException as error:  # noqa: BLE001 - a handler's: the threads still write
                raised = error
        if not outcomes or range_.is_done:
            shared.flying.pop(ctypes.addressof(range_), None)
        if is_rung:
            _bells.append(bell)
        return raised

    def _stop(self) -> None:
        """Tell all threads to stop."""
        self.is_stopped = True
        for control in self._team.controls:
            control.interrupt = 1

    def look(self) -> None:
        """Stop the threads if the machine is interrupted."""
        interrupt = self._objects.control.interrupt
        if interrupt == BY_SIGNAL:
            if self._looks == 0:
                self._passes_seen = self._passes
            self._looks += self._passes == self._passes_seen
        if interrupt not in (0, BY_SIGNAL) or self.is_stopped or self._looks == _PATIENCE:
            self._stop()

    def stop_if_interrupted(self) -> None:
        """See `crew.Flying`."""
        if self._objects.control.interrupt:
            self._stop()

    def _take_over(self, outcome: Outcome) -> None:
        """Go on as worker 0, in a thread of the pool."""
        with ours():
            self._team.workers[0].most = _NO_PAUSE
            self.settle(0, outcome, host_stack.floor())

    # --- threads of Python's own -------------------------------------------------------------

    def settle(self, number: int, outcome: Outcome, floor: int) -> None:
        """See `crew.Flying`."""
        team = self._team
        worker, control = team.workers[number], team.controls[number]
        address = ctypes.addressof(worker)
        control.host_stack = floor
        while outcome is not Outcome.ENDED:
            try:
                if outcome is Outcome.LAST:
                    self._commit()
                    return
                if outcome is Outcome.LANES:
                    self._suspend_lanes(number)
                else:
                    self._leave(number)
            except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
                self.failures.append(error)
                team.range.is_left = 1
                worker.item = worker.end = 0
                outcome = Outcome(team.end(address))
            else:
                outcome = Outcome(team.resume(address))

    def _leave(self, number: int) -> None:
        """Suspend the item in which the code has left; or end, if it left between items."""
        team = self._team
        worker, control, stack = team.workers[number], team.controls[number], team.stacks[number]
        range_ = team.range
        next_, sp = worker.item, range_.sp
        team.range.is_left = 1
        if control.fp == range_.fp:
            if control.sp == sp + team.arguments:
                next_ -= 1  # in front of the call of an item: it has not begun
            else:
                assert is_in_loop(range_.pc, control.pc)
            if next_ == worker.entered or control.interrupt:
                self._leave_rest(next_, worker)
                control.interrupt = 1  # it takes no more
            else:
                worker.item = next_
            return
        words = stack[sp : control.sp]
        self._suspend(next_ - 1, control.pc, control.fp - sp, words, worker.status in _STOPPING)
        self._leave_rest(next_, worker)

    def _suspend_lanes(self, number: int) -> None:
        """Suspend the items of a vector that have left."""
        team = self._team
        worker, entry, buffer = team.workers[number], team.entry, team.buffers[number]
        assert entry is not None
        team.range.is_left = 1
        mask = buffer[0]
        for lane in range(entry.lanes):
            if mask >> lane & 1:
                words = buffer[WORDS * entry.lanes + lane :: entry.lanes]
                pc, frame, length, stops = (
                    buffer[row * entry.lanes + lane] for row in (PC, FRAME, LENGTH, STOPS)
                )
                item = worker.item - entry.lanes + lane
                self._suspend(item, pc, frame, words[:length], bool(stops))
        self._leave_rest(worker.item, worker)

    def _leave_rest(self, first: int, worker: RangeWorker) -> None:
        """Leave the rest of a worker's chunk from an item on."""
        if first < worker.end:
            with self._lock:
                self._rest.append((first, worker.end))
        worker.item = worker.end

    def _suspend(self, item: int, pc: int, frame: int, words: Iterable[int], stops: bool) -> None:
        """Put an item that native code has left to Python into a slot. `stops`: no higher one needs
        to begin; else there is space for no further ones, so none begins."""
        content = array("Q", words)
        slot = array("Q", (item & I64.mask, pc, frame, len(content), 0))
        with self._lock:
            self._slots.append((item, slot + content))
            self._stop_at(item + 1 if stops else self._team.first)

    def _stop_at(self, item: int) -> None:
        """Begin no chunk from an item on; the lock is held."""
        range_ = self._team.range
        range_.past = min(range_.past, item)

    def _commit(self) -> None:
        """Write the outcome, in the order of items, into the launch."""
        range_ = self._team.range
        try:
            if not self.failures:
                left = self._left()
                reserve(self._objects, *space_for(left), collects=False)
                finish(self._objects, range_.limit, left)
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            self.failures.append(error)
        range_.is_done = 1
        release(range_.bell)

    def _unbegun(self) -> list[tuple[int, int]]:
        """The ranges of items that have not begun."""
        range_ = self._team.range
        limit, size = range_.limit, range_.size
        ranges = [*self._rest, (range_.next, limit)]
        ranges += [(one.refused, one.refused + size) for one in self._team.workers]
        return [(first, min(end, limit)) for first, end in ranges if first < min(end, limit)]

    def _left(self) -> list[Left]:
        """The rest of the range, in a batch."""
        team, ranges = self._team, self._unbegun()
        self.rest = sum(end - first for first, end in ranges)
        slots = self._slots + [(first, array("Q", range_slot(first, end))) for first, end in ranges]
        slots.sort(key=lambda one: one[0])
        runs = [array("Q", [slot.buffer_info()[0] for _, slot in slots])]
        words = 0
        for number, worker in enumerate(team.workers):
            addresses, pcs = team.suspended(number)
            runs.append(addresses)
            self.stops.update(pcs)
            if addresses:
                words += worker.slot - addresses[0]
        self.stops.update(slot[SLOT_PC] for _, slot in self._slots)
        words = words // WORD_BYTES + sum(len(slot) for _, slot in slots)
        batch = ItemBatch(runs, [slots, team], words)
        return [(batch.first, batch)] if batch.count else []
