# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads: native code of a launch's loop, run on chunks of its range.

    launch.test ─> first items, timed ─> is there much left? ─┬─ no: the code itself
                                                              └─ chunks ─> threads ─> record

The code is that of the loop in order. Each thread has a control block and a stack of its own, with a
copy of the launch's frame in which the range is a chunk. So the code needs to know nothing of
threads, and where it leaves in the middle of an item, the item's frames stand on that stack: they
are suspended, and the thread goes on with the next item.

What an item must not do out of order, it cannot do: on these control blocks there is no space for an
object, no heap to grow into, no native host function. The code leaves in front of that.
After a trap no higher chunk begins. The engine then takes the pieces of the record in order.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import mmap
import os
import threading
import time
import weakref
from array import array
from collections.abc import Callable
from typing import Any

from ferryvm import record
from ferryvm.backend import Code
from ferryvm.float_environment import ours
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine import host_stack
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.entry import ENTRY, PythonEntry
from ferryvm.machine.launch import packed
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.native import NATIVE_WORDS
from ferryvm.machine.object_memory import ObjectMemory, objects_at
from ferryvm.machine.piece import Block, add_item, add_range, reserve
from ferryvm.policy.machine import cpus
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.region import Region
from ferryvm.wrapper import CodeWrapper

_FIRST = 64
"""Items that are run, and timed, before threads are."""

_WORTH = 200e-6
"""Seconds of work for which threads are woken: four times what that takes."""

_CHUNKS = 8
"""Chunks for each thread, so that all have something to do where items differ."""

_MOST_SUSPENDED = 1 << 12
"""Items that are suspended before no further ones begin: there is room for so many, and for one more
of each thread."""

_MOST_WORDS = 1 << 17
"""Words of these items, likewise."""

_STOPPING = (Status.INTERRUPTED, Status.TRAP, Status.THROW)
"""Statuses of an item after which no higher one needs to begin."""

_MASK = (1 << 64) - 1


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


class _Lane:
    """The control block and the stack of one thread."""

    def __init__(self, stack_words: int) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._map = mmap.mmap(-1, WORD_BYTES * stack_words, flags=flags)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.stack = memoryview(self._map).cast("Q")
        self.control = ControlBlock()
        self._natives = array("Q")

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


class ParallelCode(CodeWrapper):
    """The code of a launch's loop, run by several threads where that is worth it."""

    def __init__(self, inner: Code, region: Region, threads: int) -> None:
        """`threads`: their number; 0: as many as there are cores."""
        super().__init__(inner)
        self._native: Callable[[int], int] = ENTRY(inner.address)
        self._pc, self._program = region.entry, region.verified.program
        self._threads = threads or cpus()
        parameters = self._program.signature(
            self._program.code.immediates[self._pc + CALL_DISTANCE]
        ).parameters
        self._arguments = len(parameters)
        """Words that `launch.item` pushes."""
        self._parameters = len(self._program.signature(region.function).parameters)
        self._lanes: weakref.WeakKeyDictionary[ObjectMemory, list[_Lane]] = (
            weakref.WeakKeyDictionary()
        )
        self._entry = PythonEntry(self._run)
        self.address = self._entry.address

    def _run(self, address: int) -> int:
        """As the code itself."""
        objects = objects_at(address)
        if objects is None:
            return self._native(address)
        control = objects.control
        stack = (ctypes.c_uint64 * control.sp).from_address(control.stack)
        sp = control.sp
        limit, next_ = signed(I64, stack[sp - 3]), signed(I64, stack[sp - 2])
        if self._threads == 1 or limit - next_ <= 2 * _FIRST or stack[sp - 1] or control.interrupt:
            return self._native(address)
        began = time.perf_counter()
        stack[sp - 3] = (next_ + _FIRST) & _MASK
        status = self._native(address)
        stack[sp - 3] = limit & _MASK
        seconds = time.perf_counter() - began
        if control.sp != sp or self._is_inside(control.pc) or status != Status.LEAVE:
            return status
        next_ += _FIRST
        control.pc = self._pc
        if seconds / _FIRST * (limit - next_) < _WORTH:
            return self._native(address)
        return _waited(_pool().submit(self._parallel, objects, next_, limit), control)

    def _is_inside(self, pc: int) -> bool:
        """True for an instruction of the launch's own loop."""
        return self._pc <= pc <= self._pc + CALL_DISTANCE + 1

    def _parallel(self, objects: ObjectMemory, first: int, limit: int) -> int:
        """Run the items from `first` up to `limit` on all threads; a status."""
        control = objects.control
        size = -(-(limit - first) // (self._threads * _CHUNKS))
        chunks = [(start, min(start + size, limit)) for start in range(first, limit, size)]
        try:
            # Now, since a collection would move what suspended items refer to.
            reserve(objects, len(chunks) + _MOST_SUSPENDED, _MOST_WORDS)
            lanes = self._prepared(objects)
        except (AddressSpaceError, OSError, MemoryError):
            return self._native(ctypes.addressof(control))
        work = _Work(chunks, control, [lane.control for lane in lanes])
        for future in [_pool().submit(self._work, objects, lane, work) for lane in lanes]:
            work.wait(future)
        outcomes = work.outcomes
        completed = sum(one.completed for one in outcomes)
        suspended = sum(len(one.suspended) for one in outcomes)
        if not control.interrupt and completed <= suspended:
            self._threads = 1  # most items do what they cannot do out of order, or none could begin
        try:
            self._commit(objects, outcomes, limit)
        except AddressSpaceError:  # not even for a few words: the items are lost
            control.trap = Trap.HEAP_EXHAUSTED
            return int(Status.TRAP)
        return int(Status.INTERRUPTED if control.interrupt else Status.LEAVE)

    def _prepared(self, objects: ObjectMemory) -> list[_Lane]:
        """The lanes for a machine, where it stands."""
        control = objects.control
        lanes = self._lanes.setdefault(objects, [])
        words = (control.stack_end - control.stack) // WORD_BYTES
        while len(lanes) < self._threads:
            lanes.append(_Lane(words))
        start = control.fp - self._parameters
        size = WORD_BYTES * (control.sp - start)
        frame = memoryview(ctypes.string_at(control.stack + WORD_BYTES * start, size)).cast("Q")
        for lane in lanes:
            lane.prepare(objects, frame, start)
        return lanes

    def _commit(self, objects: ObjectMemory, outcomes: list[_Done], limit: int) -> None:
        """Write the outcome of all chunks, in the order of items, into the launch."""
        pieces = 0
        for outcome in reversed(outcomes):
            if outcome.rest is not None:
                pieces = add_range(objects, *outcome.rest, pieces)
            for one in reversed(outcome.suspended):
                pieces = add_item(objects, one.item, one.block, pieces)
        control = objects.control
        stack = (ctypes.c_uint64 * control.sp).from_address(control.stack)
        stack[control.sp - 3] = stack[control.sp - 2] = limit & _MASK
        stack[control.sp - 1] = pieces

    def _work(self, objects: ObjectMemory, lane: _Lane, work: _Work) -> None:
        """Run chunks, as long as there are some, in this thread."""
        with ours():
            lane.control.host_stack = host_stack.floor()
            while True:
                number, chunk = work.take()
                if chunk is None:
                    return
                done = self._chunk(objects, lane, work, *chunk)
                work.finish(number, done)

    def _chunk(
        self, objects: ObjectMemory, lane: _Lane, work: _Work, first: int, limit: int
    ) -> _Done:
        """Run the items from `first` up to `limit`."""
        control, stack = lane.control, lane.stack
        source = objects.control
        fp, sp = source.fp, source.sp
        suspended: list[_Suspended] = []
        address = ctypes.addressof(control)
        stack[sp - 3], stack[sp - 1] = limit & _MASK, 0
        next_ = first
        while next_ < limit:
            stack[sp - 2] = next_ & _MASK
            control.pc, control.sp, control.fp = self._pc, sp, fp
            control.interrupt = source.interrupt
            status = self._native(address)
            next_ = signed(I64, stack[sp - 2])
            if control.fp == fp:
                if control.sp == sp + self._arguments:
                    next_ -= 1  # in front of the call of an item: it has not begun
                elif not self._is_inside(control.pc):
                    break  # behind the loop
                rest = (next_, limit) if next_ < limit else None
                return _Done(suspended, rest, next_ - first - len(suspended))
            suspended.append(_Suspended(next_ - 1, packed(objects, stack, control, sp)))
            if status in _STOPPING:
                work.stop(next_)  # higher ones need not begin
            is_full = work.is_full(
                len(suspended[-1].block.words) + len(suspended[-1].block.references)
            )
            if status in _STOPPING or is_full:
                rest = (next_, limit) if next_ < limit else None
                return _Done(suspended, rest, next_ - first - len(suspended))
        return _Done(suspended, None, limit - first - len(suspended))


class _Work:
    """The chunks of a launch, and what became of them."""

    def __init__(
        self, chunks: list[tuple[int, int]], control: ControlBlock, lanes: list[ControlBlock]
    ) -> None:
        """`control`: of the machine, whose interrupt flag is passed on to those of the lanes."""
        self._chunks, self._control, self._lanes = chunks, control, lanes
        self._taken = 0
        self._past: int | None = None
        """Chunks from this item on do not begin."""
        self._lock = threading.Lock()
        self._items = self._words = 0
        """Suspended items, and their words."""
        self.outcomes = [_Done([], chunk, 0) for chunk in chunks]

    def take(self) -> tuple[int, tuple[int, int] | None]:
        """The number and the items of the next chunk; None if there is none."""
        with self._lock:
            number = self._taken
            if number == len(self._chunks) or self._control.interrupt:
                return number, None
            if self._past is not None and self._chunks[number][0] >= self._past:
                return number, None
            self._taken += 1
            return number, self._chunks[number]

    def finish(self, number: int, done: _Done) -> None:
        """Note the outcome of a chunk."""
        self.outcomes[number] = done

    def stop(self, item: int) -> None:
        """Begin no chunk from an item on."""
        with self._lock:
            self._past = item if self._past is None else min(self._past, item)

    def is_full(self, words: int) -> bool:
        """Note an item of so many words that was suspended; True if no further one is to begin."""
        with self._lock:
            self._items += 1
            self._words += words
            is_full = self._items >= _MOST_SUSPENDED // 2 or self._words >= _MOST_WORDS // 2
        if is_full:
            self.stop(self._chunks[0][0])
        return is_full

    def wait(self, future: concurrent.futures.Future[None]) -> None:
        """Wait for a thread; an interrupt of the machine is passed on to all."""
        while not _is_done(future):
            if self._control.interrupt:
                for lane in self._lanes:
                    lane.interrupt = 1
        future.result()


def _is_done(future: concurrent.futures.Future[Any]) -> bool:
    """True if a call has ended, after a hundredth of a second at most."""
    return bool(concurrent.futures.wait([future], timeout=0.01).done)


def _waited(future: concurrent.futures.Future[int], control: ControlBlock) -> int:
    """The result of a call. A signal's handler that raises meanwhile interrupts the program: the
    call ends in a state that it can go on from."""
    is_done = False
    while not is_done:
        try:
            is_done = _is_done(future)
        except BaseException:  # noqa: BLE001 - a handler's: the threads still write to the program
            control.interrupt = control.interrupt or 1
    return future.result()


_threads: concurrent.futures.ThreadPoolExecutor | None = None


def _pool() -> concurrent.futures.ThreadPoolExecutor:
    """The threads of this process that run launches."""
    global _threads
    if _threads is None:
        _threads = concurrent.futures.ThreadPoolExecutor(1024, "ferry launch")
    return _threads


def _forget() -> None:
    """Make a forked child start threads of its own."""
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_forget)
