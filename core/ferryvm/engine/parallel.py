# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads: native code of a launch's loop, run on chunks of its range.

    launch.test, many items left ─> chunks ─> threads ─> record

The code is that of the loop in order. Each thread has a control block and a stack of its own, with
a copy of the launch's frame in which the range is a chunk. So the code needs to know nothing of
threads, and where it leaves in the middle of an item, the item's frames stand on that stack: they
are suspended, and the thread goes on with the next item.

What an item must not do out of order, it cannot do: on these control blocks there is no space for
an object, no heap to grow into, no native host function. The code leaves in front of that. Where
the code has a part that runs items in the lanes of vectors, a chunk is run by that, but for what is
left of it at its end. A lane that leaves stores the words of its item, which are put on the
thread's stack and then suspended as others are. After a trap no higher chunk begins. The engine
then takes the pieces of the record in order.

Chunks begin and end in native code (`ferryvm.machine.chunk`); `ferryvm.engine.chunked_run` does the
rest.
"""

from __future__ import annotations

import ctypes
import math
import weakref

from ferryvm.backend import Code
from ferryvm.engine import chunked_run
from ferryvm.engine.chunked_run import ChunkedRun
from ferryvm.engine.crew import crew
from ferryvm.engine.team import MOST_SUSPENDED, MOST_WORDS, Team
from ferryvm.engine.thread_pool import pool
from ferryvm.isa.type import WORD_BYTES
from ferryvm.item_range import LostItemsError, RangeOutcome, RangeRunner
from ferryvm.machine.chunk import (
    ChunkLoop,
)
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region
from ferryvm.wrapper import CodeWrapper

_CHUNKS = 16
"""Chunks for each thread, so that all have something to do where items differ."""

_CHUNK_WORTH = 20e-6
"""Least work of a chunk, if there are more than one for each thread."""

_THREAD_SECONDS = 10e-6
"""Time by which one more thread delays all. Work w on n threads takes w / n and n times that, which
is least where n is the square root of their ratio."""

_PAUSE = 5e-3
"""Seconds of work after which the thread that launches looks if signal handlers are to be run."""


def useful_threads(seconds: float, most: int) -> int:
    """The number of threads by which so many seconds of work are done soonest."""
    return min(most, max(1, round(math.sqrt(seconds / _THREAD_SECONDS))))


class ThreadedCode(CodeWrapper):
    """Native code of a launch's loop, which several threads can run."""

    def __init__(self, inner: Code, region: Region, threads: int, loop: ChunkLoop) -> None:
        super().__init__(inner)
        self._ranges = ThreadedRanges(inner, region, threads, loop)

    @property
    def ranges(self) -> RangeRunner:
        return self._ranges


class ThreadedRanges(RangeRunner):
    """Runs items by native code on several threads."""

    is_companion = True

    def __init__(self, code: Code, region: Region, threads: int, loop: ChunkLoop) -> None:
        self._code, self._region, self._threads, self._loop = code, region, threads, loop
        self._entry = code.lanes
        self._item_seconds: float | None = None
        """Time of one item in the last run; None before the first."""
        self._teams: weakref.WeakKeyDictionary[ObjectMemory, Team] = weakref.WeakKeyDictionary()

    @property
    def where(self) -> str:
        lanes = "" if self._entry is None else f", {self._entry.lanes} lanes"
        return f"{self._threads} thread{'s' * (self._threads > 1)}{lanes}"

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        objects = machine.objects
        assert objects is not None  # the program has launches
        threads = self._count(limit - first)
        size = -(-(limit - first) // self._chunks(limit - first, threads))
        more = more_words = 0  # a vector of each thread
        if self._entry is not None:  # vectors are full, but for the last
            size = -(-size // self._entry.lanes) * self._entry.lanes
            more = threads * self._entry.lanes
            more_words = more * self._entry.rows
        # Now, since a collection would move what suspended items refer to.
        pieces = MOST_SUSPENDED + more + chunked_run.MOST_RANGES * (threads + 1)
        team = self._team(objects)
        team.has_arenas = _reserve(objects, pieces, MOST_WORDS + more_words, team.arena_bytes)
        pool().start(1)
        shared = crew()
        shared.start(threads - 1, self._loop)
        team.prepare(objects, first, limit, size)
        work = ChunkedRun(team, objects, threads - 1, self._pause(size))
        raised = work.run()
        if raised is None and not work.failures:
            team.give_back(machine.control)
        if work.failures:
            machine.torn = f"a thread of a launch failed: {work.failures[0]!r}"
            raise LostItemsError(machine.torn) from work.failures[0]
        if raised is not None:
            raise raised
        suspended = work.stops.total()
        completed = limit - first - suspended - work.rest
        seconds = 1e-9 * sum(worker.nanoseconds for worker in team.workers)
        if completed:
            self._item_seconds = seconds / completed
        is_interrupted = bool(machine.control.interrupt)
        return RangeOutcome(completed, suspended, seconds, is_interrupted, work.stops)

    def _team(self, objects: ObjectMemory) -> Team:
        """Workers for the machine with these objects."""
        team = self._teams.get(objects)
        # A signal handler may have raised in the one moment in which threads are left behind.
        if team is None or ctypes.addressof(team.range) in crew().flying:
            team = Team(objects, self._code, self._region, self._threads, self._loop)
            self._teams[objects] = team
        return team

    def _count(self, items: int) -> int:
        """The number of threads for so many items: all, unless fewer are quicker."""
        if self._item_seconds is None:
            return self._threads
        return useful_threads(items * self._item_seconds, self._threads)

    def _chunks(self, items: int, threads: int) -> int:
        """The number of chunks for so many items: several for each thread, unless they are
        short."""
        most = threads * _CHUNKS
        if self._item_seconds is None:
            return most
        return min(most, max(threads, int(items * self._item_seconds / _CHUNK_WORTH)))

    def _pause(self, size: int) -> int:
        """Chunks of so many items that the thread that launches runs at once."""
        if not self._item_seconds:
            return 1
        return max(1, int(_PAUSE / (size * self._item_seconds)))


def _reserve(objects: ObjectMemory, pieces: int, words: int, arenas: int) -> bool:
    """Make room for pieces, and for so many bytes of objects of items; True if there is for both.
    Raises AddressSpaceError if there is none for the former."""
    if arenas and objects.gathered is None:
        try:
            reserve(objects, pieces, words + arenas // WORD_BYTES)
        except AddressSpaceError:
            pass  # items that make objects are then suspended
        else:
            return True
    reserve(objects, pieces, words)
    return False
