# SPDX-License-Identifier: Apache-2.0
"""Suspended items run to their ends on threads, before they become pieces of the record.

    device ─> slots ─┬─ can go on at once ─> threads, an interpreter each ─┬─> done
                     │                                                     └─> slots of what is left
                     └─ in their turn ────────────────────────────────────────> pieces of the record

Items are independent, so the rest of one may run beside that of others, up to what has to be done
in order. There it leaves its thread's interpreter, whose control block has little space for
objects, no heap to grow into and no native host function; and it is put into a slot again. The
slots are a range of which each thread takes the next one (`ferryvm.machine.slot_code`).
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from array import array
from collections.abc import Callable

from ferryvm.backend import BackendError
from ferryvm.engine.chunked_run import ChunkedRun
from ferryvm.engine.crew import LOOK, crew
from ferryvm.engine.parallel import useful_threads
from ferryvm.engine.team import Team
from ferryvm.isa.type import WORD_BYTES
from ferryvm.item_range import SlotFinisher
from ferryvm.machine import host_stack
from ferryvm.machine.chunk import Outcome, acquire, new_lock, release
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.machine.launch_operands import LaunchOperands
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm.machine.slot_code import SlotCode, SlotControl
from ferryvm.notice import Log
from ferryvm.region.region import Region
from ferryvm.region.retention import retains_objects
from ferryvm.thread import ThreadError

_MOST_LOOKS = round(1.0 / LOOK)
"""Looks after which items that still run go on in their turn: one below them may trap."""

_FIRST_SECONDS = 1e-6
"""Time of the rest of an item, before it has been measured."""

_ITEM_BYTES = 256
"""Bytes for the objects of an item, on average."""

_LEAST_ARENA = 1 << 12
"""Bytes for the objects of a thread."""

_MOST_LENT = 1 << 22
"""Bytes for the objects of all threads that are given back when all items have ended: each thread
has room for those of all items then, since some begin much later than others."""

LEAST = 32
"""Items that are worth the beginning of threads."""

_LOG = Log("ferryvm")

BindSlots = Callable[[ControlBlock], SlotCode | None]


class SlotTeam(Team):
    """Threads that run slots."""

    def __init__(
        self, objects: ObjectMemory, code: SlotCode, region: Region, threads: int, bind: BindSlots
    ) -> None:
        super().__init__(objects, code, region, threads, code.loop, SlotControl)
        self._bind = bind
        self._bell = new_lock()
        for control in self.controls:
            assert isinstance(control, SlotControl)
            control.headroom = max(region.verified.frame_words)

    def prepare(self, objects: ObjectMemory, first: int, limit: int, size: int) -> None:
        super().prepare(objects, first, limit, size)
        self._bind(self._template)
        self.range.bell = self._bell
        self._template.host_stack = host_stack.floor()
        self.range.operand = (  # the launch is finished with what is left
            ctypes.addressof(self._nowhere) + LaunchOperands.next.offset  # type: ignore[attr-defined]  # a ctypes field
        )

    def reserve_objects(self, objects: ObjectMemory, items: int, is_lent: bool) -> None:
        """Make room for objects of so many items, if they make any and there is some; `is_lent`:
        all of it is expected to be given back."""
        if not self.arena_bytes:
            return
        threads = len(self.workers)
        sizes = [max(_LEAST_ARENA, -(-items // threads) * _ITEM_BYTES)]
        if is_lent:
            most = _MOST_LENT // threads // _ITEM_BYTES
            sizes.insert(0, max(sizes[0], min(items, most) * _ITEM_BYTES))
        self.has_arenas = False
        for own in sizes:
            self.arena_bytes = threads * own
            with contextlib.suppress(AddressSpaceError):
                reserve(objects, 0, self.arena_bytes // WORD_BYTES, collects=False)
                self.has_arenas = True
                return

    def clear(self, control: ControlBlock) -> None:
        """Give all room for objects back, as all items have ended and nothing refers to what they
        made."""
        arenas, self._arenas = self._arenas, 0
        if not arenas or control.object_top != arenas + self.arena_bytes:
            return
        for worker, own in zip(self.workers, self.controls, strict=True):
            if own.object_end == worker.object_end:  # else it has not begun
                made = max(own.object_top - worker.object_top, 0)
                ctypes.memset(control.objects + worker.object_top, 0, made)
        control.object_top = arenas

    def give(self, slots: array[int]) -> None:
        """Give all threads the addresses of slots."""
        for control in self.controls:
            assert isinstance(control, SlotControl)
            control.slots, _ = slots.buffer_info()


class SlotRun(ChunkedRun):
    """A run of slots by a team, in a thread in which no signal handler runs."""

    def __init__(
        self,
        team: SlotTeam,
        objects: ObjectMemory,
        helpers: int,
        batch: ItemBatch,
        is_stopped: Callable[[], bool],
    ) -> None:
        super().__init__(team, objects, helpers, 0)
        self._batch, self._is_to_stop = batch, is_stopped

    def run(self) -> None:
        """Run all slots, or what of them can be."""
        team, shared = self._team, crew()
        address = ctypes.addressof(team.range)
        shared.begin(address, self)
        outcome = team.launch(address, shared.table, shared.size, self._helpers)
        self.settle(0, Outcome(outcome), host_stack.floor())
        acquire(team.range.bell, -1, 0)
        shared.flying.pop(address, None)

    def look(self) -> None:
        self._looks += 1
        is_interrupted = bool(self._objects.control.interrupt) or self._is_to_stop()
        if is_interrupted or self._looks > _MOST_LOOKS or self.is_stopped:
            self._stop()

    def _commit(self) -> None:
        self._team.range.is_done = 1
        release(self._team.range.bell)

    def _stop_at(self, item: int) -> None:
        """Begin no further slot; those that have not begun wait for their turn."""
        super()._stop_at(self._team.first)

    def remainder(self) -> ItemBatch:
        """The slots that are left."""
        (slots,), team = self._batch.runs, self._team
        unbegun = array("Q")
        for first, end in sorted(self._unbegun()):
            unbegun.extend(slots[first:end])
        own = [slot for _, slot in sorted(self._slots, key=lambda one: one[0])]
        runs = [unbegun, array("Q", [slot.buffer_info()[0] for slot in own])]
        words = sum(map(len, own)) + self._batch.words // 2
        for number, worker in enumerate(team.workers):
            addresses, _ = team.suspended(number)
            runs.append(addresses)
            if addresses:
                words += (worker.slot - addresses[0]) // WORD_BYTES
        return ItemBatch(runs, [own, team, self._batch], words)


class ThreadedSlots(SlotFinisher):
    """Runs the rest of suspended items of one launch on threads."""

    def __init__(self, region: Region, threads: int, bind: BindSlots, least: int = LEAST) -> None:
        """`bind`: see `Artifact.bind_slots`; `least`: the least number of items for which threads
        begin."""
        self._least = least
        self._region, self._threads, self._bind = region, threads, bind
        self._seconds = _FIRST_SECONDS
        """Time of the rest of an item."""
        self._retains = retains_objects(region)
        self._has_ended = True
        """True if no item was left last time."""
        self._is_able = True
        """False since threads could not begin."""
        self._teams: weakref.WeakKeyDictionary[ObjectMemory, SlotTeam] = weakref.WeakKeyDictionary()

    def finish(
        self, objects: ObjectMemory, batch: ItemBatch, is_stopped: Callable[[], bool]
    ) -> ItemBatch:
        if batch.count < self._least or not self._is_able:
            return batch
        try:
            team, threads = self._prepared(objects, batch)
        except (BackendError, MemoryError, OSError, ThreadError) as error:
            self._is_able = False
            _LOG.warning("suspended items of a launch wait for their turn: %s", error)
            return batch
        (slots,) = batch.runs
        team.give(slots)
        work = SlotRun(team, objects, threads - 1, batch, is_stopped)
        work.run()
        if work.failures:
            raise work.failures[0]
        self._seconds = 1e-9 * sum(one.nanoseconds for one in team.workers) / len(slots)
        left = work.remainder()
        self._has_ended = not left.count
        if self._has_ended and not self._retains:
            team.clear(objects.control)
        else:
            team.give_back(objects.control)
        return left

    def _prepared(self, objects: ObjectMemory, batch: ItemBatch) -> tuple[SlotTeam, int]:
        """The team for a batch, and the number of its threads. Raises BackendError, MemoryError,
        OSError, ThreadError."""
        team = self._teams.get(objects)
        if team is None:
            code = self._bind(ControlBlock())
            if code is None:
                raise BackendError("the interpreter has no native code for them")
            team = SlotTeam(objects, code, self._region, self._threads, self._bind)
            self._teams[objects] = team
        threads = useful_threads(batch.count * self._seconds, self._threads)
        crew().start(threads - 1, team.loop)
        team.reserve_objects(objects, batch.count, self._has_ended and not self._retains)
        team.prepare(objects, 0, batch.count, 1)
        return team, threads
