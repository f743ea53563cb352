# SPDX-License-Identifier: Apache-2.0
"""The contract of native code that runs the items of a launch in chunks, on several threads.

    launch(range, table, count, most) ─┬─ wakes parked threads ─> each: its worker ─┐
                                       └─ worker 0 ─────────────────────────────────┴─> take a chunk,
                                                                                        run it, …

    ItemRange    one launch: the counter of which chunks are taken, and what its threads share
    RangeWorker  what one thread works with: a control block, a stack, the chunk under way
    ParkedThread a thread that waits in native code until a launch gives it a worker

An item that stops in the middle is put into the worker's next slot (`ferryvm.machine.item_batch`),
and the thread goes on. It comes back to Python where there is no slot left, or where no higher item
needs to begin: after a trap, a throw or an interrupt.

Invariants: a thread that has ended (`running` counts the others) reads nothing of the range and its
worker any more. The last one that ends writes the outcome: native code, if all items are done; else
Python, which has set `is_left` before.
"""

from __future__ import annotations

import ctypes
import enum
import time

from ferryvm.named_tuple import NamedTuple

__all__ = ["CLOCK", "ChunkLoop", "ItemRange", "Outcome", "ParkedThread", "RangeWorker"]

ACQUIRED = 1
"""Result of `ACQUIRE` if the lock was acquired (`PY_LOCK_ACQUIRED`)."""

_LOCK = ctypes.c_void_p
ACQUIRE = ctypes.CFUNCTYPE(ctypes.c_int, _LOCK, ctypes.c_longlong, ctypes.c_int)
"""The type of `PyThread_acquire_lock_timed`: lock, microseconds, 1 to return at a signal."""


def _address(function: object) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]  # a function of a library
    assert address is not None
    return address


ACQUIRE_ADDRESS = _address(ctypes.pythonapi.PyThread_acquire_lock_timed)
RELEASE_ADDRESS = _address(ctypes.pythonapi.PyThread_release_lock)
CLOCK_ADDRESS = _address(ctypes.CDLL(None).clock_gettime)
CLOCK = getattr(time, "CLOCK_THREAD_CPUTIME_ID", 0)
"""The clock of the processor time of a thread."""


_allocate = ctypes.CFUNCTYPE(ctypes.c_void_p)(_address(ctypes.pythonapi.PyThread_allocate_lock))
acquire = ACQUIRE(ACQUIRE_ADDRESS)
"""Acquire a lock, in this thread: `ACQUIRED` if it was."""


release = ctypes.CFUNCTYPE(None, _LOCK)(RELEASE_ADDRESS)


def new_lock() -> int:
    """The address of a new lock that is acquired; it is never freed. Raises MemoryError."""
    lock = _allocate()
    if not lock:
        raise MemoryError
    acquire(lock, 0, 0)
    return int(lock)


class Outcome(enum.IntEnum):
    """The reason for which a thread has stopped to run chunks."""

    ENDED = 0
    """It has ended its part of the range."""
    LAST = 1
    """It has ended likewise, as the last one; items are left, so the outcome is to be written."""
    EXIT = 2
    """Code has left in the middle of its chunk, as the control block says; its item is in no
    slot."""
    LANES = 3
    """Lanes of vectors have suspended items, as the buffer says, which are in no slots."""
    PAUSED = 4
    """It has run as many chunks as it was to."""


class ItemRange(ctypes.Structure):
    """The range of a launch that threads share."""

    next: int
    past: int
    limit: int
    size: int
    running: int
    is_left: int
    is_done: int

    _fields_ = [
        ("next", ctypes.c_int64),  # the first item that no thread has taken
        ("past", ctypes.c_int64),  # chunks from this item on do not begin
        ("limit", ctypes.c_int64),  # the end of the range
        ("size", ctypes.c_int64),  # items of a chunk
        ("running", ctypes.c_int64),  # threads that have not ended
        ("is_left", ctypes.c_int64),  # 1 if an item may be left when all have ended
        ("is_done", ctypes.c_int64),  # 1 once the outcome is written
        ("operand", ctypes.c_uint64),  # address of the launch's `next`
        ("operands", ctypes.c_uint64),  # bytes of a stack below the launch's operands
        ("bell", ctypes.c_uint64),  # a lock that is released when the outcome is written
        ("template", ctypes.c_uint64),  # address of the control block to begin with
        ("frame", ctypes.c_uint64),  # address of the words of the launch's frame
        ("frame_offset", ctypes.c_uint64),  # bytes of the stack below them
        ("frame_bytes", ctypes.c_uint64),
        ("pc", ctypes.c_uint64),  # of the launch's loop
        ("last_pc", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("fp", ctypes.c_uint64),
        ("entry", ctypes.c_uint64),  # address of the code
        ("lanes", ctypes.c_uint64),  # address of the code for lanes; or 0
        ("release", ctypes.c_uint64),  # address of `PyThread_release_lock`
        ("clock", ctypes.c_uint64),  # address of `clock_gettime`
        ("workers", ctypes.c_uint64),  # address of an array of `RangeWorker`
        ("helpers", ctypes.c_uint64),  # address of words for the threads that help
        ("helper_count", ctypes.c_int64),  # threads that help
        ("lane_count", ctypes.c_int64),  # items of a vector
        ("lane_rows", ctypes.c_int64),  # rows of the buffer for their states
    ]


class RangeWorker(ctypes.Structure):
    """One thread's part of a range."""

    item: int
    end: int
    entered: int
    refused: int
    most: int
    status: int
    nanoseconds: int
    slot: int
    entry: int
    object_top: int
    object_end: int

    _fields_ = [
        ("range", ctypes.c_uint64),  # address of the `ItemRange`
        ("control", ctypes.c_uint64),  # address of its control block
        ("stack", ctypes.c_uint64),
        ("stack_end", ctypes.c_uint64),
        ("buffer", ctypes.c_uint64),  # for the states of suspended lanes
        ("number", ctypes.c_int64),
        ("item", ctypes.c_int64),  # the chunk's items from here on have not begun
        ("end", ctypes.c_int64),  # the end of the chunk
        ("entered", ctypes.c_int64),  # `item` when the code was entered last
        ("refused", ctypes.c_int64),  # first item of a chunk that was taken too late; or the limit
        ("most", ctypes.c_int64),  # chunks that it may take before it pauses
        ("status", ctypes.c_int64),  # with which the code has returned last
        ("nanoseconds", ctypes.c_int64),  # processor time
        ("slot", ctypes.c_uint64),  # address of the next slot
        ("slot_end", ctypes.c_uint64),  # end of the memory for slots
        ("entry", ctypes.c_uint64),  # where the address of the next slot goes
        ("entry_end", ctypes.c_uint64),
        ("pc_offset", ctypes.c_uint64),  # bytes from there to where its pc goes
        ("object_top", ctypes.c_uint64),  # where its items may make objects,
        ("object_end", ctypes.c_uint64),  # up to here; 0: nowhere
    ]


class ParkedThread(ctypes.Structure):
    """A thread that waits for work in native code."""

    _fields_ = [
        ("state", ctypes.c_int64),  # 0: it may be given a worker
        ("lock", ctypes.c_uint64),  # released when `worker` is set
        ("worker", ctypes.c_uint64),  # 0: it was given none, or that was taken back
        ("taken", ctypes.c_uint64),  # the worker that it has run last
        ("floor", ctypes.c_uint64),  # lowest usable address of its stack; or 0
        ("acquire", ctypes.c_uint64),  # address of `PyThread_acquire_lock_timed`
    ]


LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 2)
SERVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
RESUME = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
FINISH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class ChunkLoop(NamedTuple):
    """Addresses of native functions, which are never freed; each returns an `Outcome`."""

    launch: int
    """`(ItemRange *, ParkedThread **table, count, most)`: have at most so many of the parked
    threads run workers from 1 on, and run worker 0 in this thread."""
    serve: int
    """`(ParkedThread *)`: wait, and run the worker that the thread is given, until one needs
    Python; `taken` is that one."""
    resume: int
    """`(RangeWorker *)`: go on with the chunk, then with others."""
    end: int
    """`(RangeWorker *)`: end this thread's part."""
