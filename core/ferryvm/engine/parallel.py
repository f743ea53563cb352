# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads: native code of a launch's loop, run on chunks of its range.

    launch.test, many items left ─> chunks ─> threads ─> record

The code is that of the loop in order. Each thread has a control block and a stack of its own, with a
copy of the launch's frame in which the range is a chunk. So the code needs to know nothing of
threads, and where it leaves in the middle of an item, the item's frames stand on that stack: they
are suspended, and the thread goes on with the next item.

What an item must not do out of order, it cannot do: on these control blocks there is no space for an
object, no heap to grow into, no native host function. The code leaves in front of that.
Where the code has a part that runs items in the lanes of vectors, a chunk is run by that, but for
what is left of it at its end. A lane that leaves stores the words of its item, which are put on the
thread's stack and then suspended as others are.
After a trap no higher chunk begins. The engine then takes the pieces of the record in order.

The thread that launches waits meanwhile, so that signal handlers run; the thread of the pool that
ends last writes the record. So an exception of a handler finds the threads at work, or the machine
in an exact state, nothing between.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import threading
import time
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Sequence

from ferryvm import record
from ferryvm.backend import Code
from ferryvm.engine.launching import quiet_words
from ferryvm.engine.thread_pool import Action, pool
from ferryvm.float_environment import ours
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.item_range import LostItemsError, RangeOutcome, RangeRunner
from ferryvm.machine import host_stack
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.entry import ENTRY
from ferryvm.machine.lane import FRAME, LANE_ENTRY, LENGTH, PC, STOPS, WORDS
from ferryvm.machine.launch import Left, finish, packed
from ferryvm.machine.native import NATIVE_WORDS
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import Block, reserve
from ferryvm.machine.state import Machine
from ferryvm.region.launch import CALL_DISTANCE, is_in_loop
from ferryvm.region.region import Region
from ferryvm.thread import Bell
from ferryvm.wrapper import CodeWrapper

_LOOK = 0.01
"""Seconds between two looks at the interrupt flag while threads run."""

_CHUNKS = 8
"""Chunks for each thread, so that all have something to do where items differ."""

_CHUNK_SECONDS = 20e-6
"""Time that a chunk takes besides its items."""

_CHUNK_WORTH = 100e-6
"""Least work of a chunk, if there are more than one for each thread."""

_THREAD_SECONDS = 130e-6
"""Time by which one more thread delays all, since Python's lock lets one at a time begin a chunk and
end it. Measured on 16 cores, for 2 to 16 threads. Work w on n threads takes w / n and n times that,
which is least where n is the square root of their ratio."""

_MOST_SUSPENDED = 1 << 12
"""Items that are suspended before no further ones begin: there is room for so many, and for one more
of each thread."""

_MOST_WORDS = 1 << 17
"""Words of these items, likewise."""

_STOPPING = (Status.INTERRUPTED, Status.TRAP, Status.THROW)
"""Statuses of an item after which no higher one needs to begin."""


@record.dataclass
class _Suspended:
    """An item that a thread has suspended."""

    item: int
    block: Block


@record.dataclass
class _Done:
    """The outcome of a chunk."""

    suspended: list[_Suspended]
    rest: tuple[int, int] | None
    """Items that have not begun."""
    completed: int
    """Items that are done."""


class _Worker:
    """The control block and the stack of one thread."""

    def __init__(self, stack_words: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._map = mmap.mmap(-1, WORD_BYTES * stack_words, flags=flags)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.stack = memoryview(self._map).cast("Q")
        self.control = ControlBlock()
        self._natives = array("Q")
        self.buffer = array("Q")
        """The states of suspended lanes of vectors."""

    def prepare(self, objects: ObjectMemory, frame: memoryview, first: int) -> None:
        """Make it stand where the machine stands; `frame`: the words of the launch's frame, from
        word `first` of the stack on."""
        control, source = self.control, objects.control
        ctypes.memmove(ctypes.addressof(control), ctypes.addressof(source), ctypes.sizeof(control))
        control.stack = self._address
        control.stack_end = self._address + WORD_BYTES * len(self.stack)
        control.heap_capacity = control.hp
        control.object_end = control.object_top
        control.prepared = control.prepared_bytes = control.ahead = 0
        hosts = len(objects.program.hosts)
        self._natives = array("Q", bytes(WORD_BYTES * NATIVE_WORDS * (hosts + 1)))
        control.natives, _ = self._natives.buffer_info()
        self.stack[first : first + len(frame)] = frame


class ThreadedCode(CodeWrapper):
    """Native code of a launch's loop, which several threads can run."""

    def __init__(self, inner: Code, region: Region, threads: int) -> None:
        super().__init__(inner)
        self._ranges = ThreadedRanges(inner, region, threads)

    @property
    def ranges(self) -> RangeRunner:
        return self._ranges


class ThreadedRanges(RangeRunner):
    """Runs items by native code on several threads."""

    def __init__(self, code: Code, region: Region, threads: int) -> None:
        self._native: Callable[[int], int] = ENTRY(code.address)
        self._code = code  # for as long as its address is used
        self._entry = code.lanes
        self._vector: Callable[[int, int, int, int], int] | None = None
        """Runs items in lanes of vectors; None: there is no such code."""
        if code.lanes is not None:
            self._vector = LANE_ENTRY(code.lanes.address)
        program = region.verified.program
        self._pc, self._threads = region.entry, threads
        parameters = program.signature(program.code.immediates[self._pc + CALL_DISTANCE]).parameters
        self._arguments = len(parameters)
        """Words that `launch.item` pushes."""
        self._parameters = len(program.signature(region.function).parameters)
        self._item_seconds: float | None = None
        """Time of one item in the last run; None before the first."""
        self._quiet = quiet_words(region.verified)
        """Launches within items run in order."""
        self._workers: weakref.WeakKeyDictionary[ObjectMemory, list[_Worker]] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def where(self) -> str:
        lanes = "" if self._entry is None else f", {self._entry.lanes} lanes"
        return f"{self._threads} thread{'s' * (self._threads > 1)}{lanes}"

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        objects = machine.objects
        assert objects is not None  # the program has launches
        control = machine.control
        threads = self._count(limit - first)
        size = -(-(limit - first) // self._chunks(limit - first, threads))
        if self._entry is not None:  # vectors are full, but for the last
            size = -(-size // self._entry.lanes) * self._entry.lanes
        chunks = [(start, min(start + size, limit)) for start in range(first, limit, size)]
        more = more_words = 0  # a vector of each thread
        if self._entry is not None:
            more = threads * self._entry.lanes
            more_words = more * self._entry.rows
        # Now, since a collection would move what suspended items refer to.
        reserve(objects, len(chunks) + _MOST_SUSPENDED + more, _MOST_WORDS + more_words)
        workers = self._prepared(objects, threads)
        work = _Work(chunks, control, [worker.control for worker in workers])

        def ended() -> None:
            self._commit(objects, work.outcomes, limit)

        shared = pool()
        shared.start(len(workers))
        actions = [work.action(self._worker(objects, worker, work), ended) for worker in workers]
        raised = work.run(shared.submit, actions)
        if work.failures:
            machine.torn = f"a thread of a launch failed: {work.failures[0]!r}"
            raise LostItemsError(machine.torn) from work.failures[0]
        if raised is not None:
            raise raised
        completed = sum(one.completed for one in work.outcomes)
        seconds = max(work.seconds - _CHUNK_SECONDS * len(chunks), 0.0)
        if completed:
            self._item_seconds = seconds / completed
        suspended = sum(len(one.suspended) for one in work.outcomes)
        stops = Counter(one.block.pc for done in work.outcomes for one in done.suspended)
        return RangeOutcome(completed, suspended, seconds, bool(control.interrupt), stops)

    def _count(self, items: int) -> int:
        """The number of threads for so many items: all, unless fewer are quicker."""
        if self._item_seconds is None:
            return self._threads
        best = round(math.sqrt(items * self._item_seconds / _THREAD_SECONDS))
        return min(self._threads, max(1, best))

    def _chunks(self, items: int, threads: int) -> int:
        """The number of chunks for so many items: several for each thread, unless they are short."""
        most = threads * _CHUNKS
        if self._item_seconds is None:
            return most
        return min(most, max(threads, int(items * self._item_seconds / _CHUNK_WORTH)))

    def _prepared(self, objects: ObjectMemory, threads: int) -> list[_Worker]:
        """Workers for so many threads, as the machine stands."""
        control = objects.control
        workers = self._workers.setdefault(objects, [])
        words = (control.stack_end - control.stack) // WORD_BYTES
        while len(workers) < threads:
            workers.append(_Worker(words))
        workers = workers[:threads]
        start = control.fp - self._parameters
        size = WORD_BYTES * (control.sp - start)
        frame = memoryview(ctypes.string_at(control.stack + WORD_BYTES * start, size)).cast("Q")
        words = 0 if self._entry is None else self._entry.lanes * self._entry.rows
        for worker in workers:
            worker.prepare(objects, frame, start)
            worker.control.launches, _ = self._quiet.buffer_info()
            if len(worker.buffer) < words:
                worker.buffer = array("Q", bytes(WORD_BYTES * words))
        return workers

    def _commit(self, objects: ObjectMemory, outcomes: list[_Done], limit: int) -> None:
        """Write the outcome of all chunks, in the order of items, into the launch."""
        left: list[Left] = []
        for outcome in outcomes:
            left += [(one.item, one.block) for one in outcome.suspended]
            left += [] if outcome.rest is None else [outcome.rest]
        finish(objects, limit, left)

    def _worker(self, objects: ObjectMemory, worker: _Worker, work: _Work) -> Callable[[], None]:
        """Runs chunks, as long as there are some, in a thread of the pool."""

        def run() -> None:
            with ours():
                worker.control.host_stack = host_stack.floor()
                while True:
                    number, chunk = work.take()
                    if chunk is None:
                        return
                    began = time.thread_time()  # without waits for a processor and for Python
                    done = self._chunk(objects, worker, work, *chunk)
                    work.finish(number, done, time.thread_time() - began)

        return run

    def _chunk(
        self, objects: ObjectMemory, worker: _Worker, work: _Work, first: int, limit: int
    ) -> _Done:
        """Run the items from `first` up to `limit`."""
        control, stack = worker.control, worker.stack
        source = objects.control
        fp, sp = source.fp, source.sp
        suspended: list[_Suspended] = []
        address = ctypes.addressof(control)
        stack[sp - 3], stack[sp - 1] = limit & I64.mask, 0
        next_ = first
        if self._vector is not None:
            next_, is_over = self._run_vectors(objects, worker, work, (first, limit), suspended)
            if is_over:
                rest = (next_, limit) if next_ < limit else None
                return _Done(suspended, rest, next_ - first - len(suspended))
        while next_ < limit:
            stack[sp - 2] = next_ & I64.mask
            control.pc, control.sp, control.fp = self._pc, sp, fp
            control.interrupt = source.interrupt or work.is_stopped
            status = self._native(address)
            next_ = signed(I64, stack[sp - 2])
            if control.fp == fp:
                if control.sp == sp + self._arguments:
                    next_ -= 1  # in front of the call of an item: it has not begun
                elif not is_in_loop(self._pc, control.pc):
                    break  # behind the loop
                rest = (next_, limit) if next_ < limit else None
                return _Done(suspended, rest, next_ - first - len(suspended))
            suspended.append(_Suspended(next_ - 1, packed(objects, stack, control, sp)))
            if work.is_over(suspended[-1], stops=status in _STOPPING):
                rest = (next_, limit) if next_ < limit else None
                return _Done(suspended, rest, next_ - first - len(suspended))
        return _Done(suspended, None, limit - first - len(suspended))

    def _run_vectors(
        self,
        objects: ObjectMemory,
        worker: _Worker,
        work: _Work,
        items: tuple[int, int],
        suspended: list[_Suspended],
    ) -> tuple[int, bool]:
        """Run a range of items in lanes, as far as they fill vectors; the item that this came to,
        and True if no further one is to begin. `suspended`: receives what they suspend."""
        control, stack, source = worker.control, worker.stack, objects.control
        entry, buffer = self._entry, worker.buffer
        assert self._vector is not None
        assert entry is not None
        fp, sp = source.fp, source.sp
        next_, limit = items
        address, where = ctypes.addressof(control), buffer.buffer_info()[0]
        is_over = False
        while not is_over:
            control.pc, control.sp, control.fp = self._pc, sp, fp
            control.interrupt = source.interrupt or work.is_stopped
            next_ = self._vector(address, next_, limit, where)
            mask = buffer[0]
            if not mask:
                break
            for number in range(entry.lanes):
                if mask >> number & 1:
                    words = buffer[WORDS * entry.lanes + number :: entry.lanes]
                    pc, frame, length, stops = (
                        buffer[row * entry.lanes + number] for row in (PC, FRAME, LENGTH, STOPS)
                    )
                    stack[sp : sp + length] = words[:length]
                    control.pc, control.sp, control.fp = pc, sp + length, sp + frame
                    item = next_ - entry.lanes + number
                    suspended.append(_Suspended(item, packed(objects, stack, control, sp)))
                    is_over |= work.is_over(suspended[-1], stops=bool(stops))
        return next_, is_over


class _Work:
    """The chunks of a launch, and what became of them."""

    def __init__(
        self, chunks: list[tuple[int, int]], control: ControlBlock, workers: list[ControlBlock]
    ) -> None:
        """`control`: of the machine, whose interrupt flag is passed on to those of the workers."""
        self._chunks, self._control, self._workers = chunks, control, workers
        self._taken = 0
        self._past: int | None = None
        """Chunks from this item on do not begin."""
        self._lock = threading.Lock()
        self._items = self._words = 0
        """Suspended items, and their words."""
        self.outcomes = [_Done([], chunk, 0) for chunk in chunks]
        self.seconds = 0.0
        """Time of the chunks that have ended."""
        self.failures: list[BaseException] = []
        """Exceptions of threads, which only a lack of memory explains."""
        self._running = len(workers)
        self.is_stopped = False
        self._bell = Bell()

    def take(self) -> tuple[int, tuple[int, int] | None]:
        """The number and the items of the next chunk; None if there is none."""
        with self._lock:
            number = self._taken
            if number == len(self._chunks) or self._control.interrupt or self.is_stopped:
                return number, None
            if self._past is not None and self._chunks[number][0] >= self._past:
                return number, None
            self._taken += 1
            return number, self._chunks[number]

    def finish(self, number: int, done: _Done, seconds: float) -> None:
        """Note the outcome of a chunk."""
        with self._lock:
            self.outcomes[number] = done
            self.seconds += seconds

    def stop(self, item: int) -> None:
        """Begin no chunk from an item on."""
        with self._lock:
            self._past = item if self._past is None else min(self._past, item)

    def is_over(self, suspended: _Suspended, *, stops: bool) -> bool:
        """Note an item that was suspended; True if no further one of its chunk is to begin. `stops`:
        no higher one needs to begin at all."""
        block = suspended.block
        if stops:
            self.stop(suspended.item + 1)
        with self._lock:
            self._items += 1
            self._words += len(block.words) + len(block.references)
            is_full = self._items >= _MOST_SUSPENDED // 2 or self._words >= _MOST_WORDS // 2
        if is_full:
            self.stop(self._chunks[0][0])
        return stops or is_full

    def action(self, run: Callable[[], None], ended: Callable[[], None]) -> Callable[[], None]:
        """The action of a thread of the pool: `run`, and after the last of them `ended`."""

        def act() -> None:
            try:
                run()
            except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
                self.failures.append(error)
            with self._lock:
                self._running -= 1
                is_last = not self._running
            if is_last:
                try:
                    ended()
                except BaseException as error:  # noqa: BLE001 - likewise
                    self.failures.append(error)
                self._bell.ring()

        return act

    def run(
        self, submit: Callable[[Sequence[Action]], None], actions: Sequence[Action]
    ) -> BaseException | None:
        """Submit actions by a function of C, and wait for all threads. An interrupt of the machine
        stops them, and so does an exception of a signal handler, which is returned."""
        submitted: list[None] = []
        raised: BaseException | None = None
        try:
            submitted.extend(map(submit, (actions,)))
        except BaseException as error:  # noqa: BLE001 - a handler's, before or after it was done
            raised = error
        while submitted and not self._bell.is_rung:
            try:
                while not self._bell.wait(_LOOK):
                    if self._control.interrupt or raised is not None:
                        self.is_stopped = True
                        for worker in self._workers:
                            worker.interrupt = 1
            except BaseException as error:  # noqa: BLE001 - a handler's: the threads still write
                raised = error
        return raised
