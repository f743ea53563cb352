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

from ferryvm import record
from ferryvm.engine.crew import LOOK, crew
from ferryvm.engine.team import Team
from ferryvm.engine.thread_pool import pool
from ferryvm.float_environment import ours
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
from ferryvm.machine.lane import FRAME, LENGTH, PC, STOPS, WORDS
from ferryvm.machine.launch import Left, finish, packed
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import Block
from ferryvm.region.launch import is_in_loop

MOST_SUSPENDED = 1 << 12
"""Items that are suspended before no further ones begin: there is room for so many, and for one more
of each thread."""

MOST_WORDS = 1 << 17
"""Words of these items, likewise."""

MOST_RANGES = 3
"""Ranges of items that a thread leaves, at most."""

_STOPPING = (Status.INTERRUPTED, Status.TRAP, Status.THROW)
"""Statuses of an item after which no higher one needs to begin."""

_NO_PAUSE = 1 << 62

_bells: list[int] = []
"""Locks of runs that have ended."""


@record.dataclass
class Suspended:
    """An item that a thread has suspended."""

    item: int
    block: Block


class ChunkedRun:
    """A run of a range of items by a team of workers."""

    def __init__(self, team: Team, objects: ObjectMemory, helpers: int, pause: int) -> None:
        """`helpers`: threads besides this one; `pause`: chunks that this one runs before it looks if
        signal handlers are to be run."""
        self._team, self._objects = team, objects
        self._helpers, self._pause = helpers, pause
        self._lock = threading.Lock()
        self._items = self._words = 0
        """Suspended items, and their words."""
        self._suspended: list[Suspended] = []
        self._rest: list[tuple[int, int]] = []
        """Ranges that have not begun, of chunks that were taken."""
        self.failures: list[BaseException] = []
        """Exceptions of threads, which only a lack of memory explains."""
        self.left: list[Left] = []
        """Items that were not done, once the run has ended."""
        self.is_stopped = False

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
                if raised is not None or self._objects.control.interrupt:
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
        if self._objects.control.interrupt or self.is_stopped:
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
        block = packed(self._objects, stack, control, sp)
        if self._is_over(Suspended(next_ - 1, block), stops=worker.status in _STOPPING):
            self._leave_rest(next_, worker)

    def _suspend_lanes(self, number: int) -> None:
        """Suspend the items of a vector that have left."""
        team = self._team
        worker, control, stack = team.workers[number], team.controls[number], team.stacks[number]
        entry, buffer, sp = team.entry, team.buffers[number], team.range.sp
        assert entry is not None
        team.range.is_left = 1
        is_over, mask = False, buffer[0]
        for lane in range(entry.lanes):
            if mask >> lane & 1:
                words = buffer[WORDS * entry.lanes + lane :: entry.lanes]
                pc, frame, length, stops = (
                    buffer[row * entry.lanes + lane] for row in (PC, FRAME, LENGTH, STOPS)
                )
                stack[sp : sp + length] = words[:length]
                control.pc, control.sp, control.fp = pc, sp + length, sp + frame
                block = packed(self._objects, stack, control, sp)
                item = worker.item - entry.lanes + lane
                is_over |= self._is_over(Suspended(item, block), stops=bool(stops))
        if is_over:
            self._leave_rest(worker.item, worker)

    def _leave_rest(self, first: int, worker: RangeWorker) -> None:
        """Leave the rest of a worker's chunk from an item on."""
        if first < worker.end:
            with self._lock:
                self._rest.append((first, worker.end))
        worker.item = worker.end

    def _is_over(self, suspended: Suspended, *, stops: bool) -> bool:
        """Note an item that was suspended; True if no further one of its chunk is to begin. `stops`:
        no higher one needs to begin at all."""
        block = suspended.block
        with self._lock:
            self._suspended.append(suspended)
            self._items += 1
            self._words += len(block.words) + len(block.references)
            is_full = self._items >= MOST_SUSPENDED // 2 or self._words >= MOST_WORDS // 2
            if stops:
                self._stop_at(suspended.item + 1)
            if is_full:
                self._stop_at(self._team.first)
        return stops or is_full

    def _stop_at(self, item: int) -> None:
        """Begin no chunk from an item on; the lock is held."""
        range_ = self._team.range
        range_.past = min(range_.past, item)

    def _commit(self) -> None:
        """Write the outcome, in the order of items, into the launch."""
        range_ = self._team.range
        try:
            if not self.failures:
                self.left = self._all_left()
                finish(self._objects, range_.limit, self.left)
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            self.failures.append(error)
        range_.is_done = 1
        release(range_.bell)

    def _all_left(self) -> list[Left]:
        """The items that are not done, in their order."""
        limit, size = self._team.range.limit, self._team.range.size
        ranges = [*self._rest, (self._team.range.next, limit)]
        ranges += [(one.refused, one.refused + size) for one in self._team.workers]
        left: list[Left] = [(one.item, one.block) for one in self._suspended]
        left += [(first, min(end, limit)) for first, end in ranges if first < min(end, limit)]
        left.sort(key=lambda each: each[0])
        return left
