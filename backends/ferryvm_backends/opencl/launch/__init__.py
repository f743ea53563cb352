# SPDX-License-Identifier: Apache-2.0
"""Entering a kernel from native code, without Python.

    interpreter ─> entry stub n ─> launch(record n, control) ─> arguments, enqueue, wait ─> status
                                  └─ another machine than last time, for one ─> back to Python

An entry stub is a C function of the kind that `Code.address` is. An object has a fixed number of
entry stubs, each with a record of its kernel, so no native code is built for a kernel.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import threading
from collections.abc import Sequence

from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.native import load_or_build

STACK = 32 << 10
"""Bytes of the thread's stack for a driver's functions and a kernel, which PoCL runs in the thread
that launches it."""

STUBS = 256
"""Entry stubs of one object; there may be several."""

BACK = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
"""Called with a record's `key`, a control block's address, and why: one of the following. It
returns a status to leave with, or RUNNING to continue."""

ENTER, GO_ON, FAILED = range(3)
"""Native code cannot do it this time; a slice has ended; a call of OpenCL has failed."""


STAGING_WORDS = 2048
"""Words that are read without thinking twice: 16 KiB take 2 us more than half a KiB on an H200."""


def _words(*names: str) -> list[tuple[str, type[ctypes.c_uint64]]]:
    return [(name, ctypes.c_uint64) for name in names]


class Record(ctypes.Structure):
    """The record of a trampoline's kernel; addresses and handles are words."""

    launch: int
    """Address of the function behind the entry stub."""
    key: int
    """The argument of `back`."""
    back: int
    queue: int
    kernel: int
    enqueue: int
    finish: int
    set_argument: int
    read: int
    clock: int
    compare: int
    """Addresses of clEnqueueNDRangeKernel, clFinish, clSetKernelArg, clEnqueueReadBuffer,
    clock_gettime and memcmp."""
    guard_limit: int
    failures: int
    """Address of a word a guard."""
    observed: int
    """True if time and instructions are counted."""
    error: int
    """Of the call that failed."""
    entries: int
    nanoseconds: int
    instructions: int
    to_device: int
    to_host: int
    """Metrics; the last two in bytes."""
    crowded: int
    """Entries left at once, for lack of native stack (`STACK`)."""

    control: int
    heap: int
    capacity: int
    stack_end: int
    """Wrapped: the machine that the kernel's arguments are set for; 0: none."""

    residence: int
    """Copied: the address of the `Residence` that the kernel's arguments are set for; 0: none."""
    entry: int
    """A pc."""
    slice: int
    """Looks at the interrupt flag."""
    parameters: int
    callers: int
    statics: int
    writes_statics: int
    reads_heap: int
    writes_heap: int
    objects: int
    """Needs of the kernel; `objects`: true if it uses references, or may leave for launches, which
    native code leaves to `back`."""

    _fields_ = [
        *_words("launch", "key", "back", "queue", "kernel", "enqueue", "finish", "set_argument"),
        *_words("read", "clock", "compare", "guard_limit", "failures", "observed", "error"),
        *_words("entries", "nanoseconds", "instructions", "to_device", "to_host", "crowded"),
        *_words("control", "heap", "capacity", "stack_end"),
        *_words("residence", "entry", "slice"),
        *_words("parameters", "callers", "statics", "writes_statics", "reads_heap", "writes_heap"),
        *_words("objects"),
    ]


class Residence(ctypes.Structure):
    """A machine and its copy on a device: a buffer of control block, statics and stack, and one of
    the heap."""

    control: int
    heap: int
    capacity: int
    stack_end: int
    """As the machine's control block, and its address, were."""
    buffer: int
    mirror: int
    """The first buffer, and the address of its mirror."""
    staging: int
    """Address of `STAGING_WORDS` words, to which the device can write directly."""
    valid: int
    """Bytes of the stack for which the mirror equals the device's memory."""
    heap_mirror: int
    used: int
    """Bytes of the heap from which on the device has zeros."""

    _fields_ = [
        *_words("control", "heap", "capacity", "stack_end"),
        *_words("buffer", "mirror", "staging", "valid", "heap_mirror", "used"),
    ]


RECORD_BYTES = ctypes.sizeof(Record)


class RangeStatus(enum.IntEnum):
    """The outcome of `run_range`."""

    UNLIKE = 0
    """Something is not as it was; nothing has been done."""
    DONE = 1
    """All items are done, and the machine has their results."""
    LEFT = 2
    """Items are left. The machine is as it was; what the device and the mirrors have is not
    known."""
    FAILED = 3
    """OpenCL failed before the kernel had begun; otherwise the same."""
    LOST = 4
    """OpenCL failed later; otherwise the same."""


STATUSES: Sequence[RangeStatus] = [*RangeStatus]
"""By number."""


class RangePlan(ctypes.Structure):
    """The plan of a range for `run_range`; addresses and handles are words."""

    gate: int
    """Address of a `GateWords`."""
    epoch: int
    """Its epoch when all that is not compared was as the plan says."""
    host_stack: int
    """Address of the word that has the lowest address of the thread's stack."""
    environment: int
    """Address of the floating-point environment that `run_range_apart` sets meanwhile."""
    get_environment: int
    set_environment: int
    compare: int
    move: int
    clock: int
    set_argument: int
    enqueue: int
    read: int
    write: int
    finish: int
    """Addresses of fegetenv, fesetenv, memcmp, memmove, clock_gettime and OpenCL's functions."""
    queue: int
    kernel: int
    dimensions: int
    sizes: int
    group: int
    """Of all work-items and of a group: addresses."""
    argument: int
    launch: int
    launch_bytes: int
    """Number, address and size of the argument that tells of the launch."""
    head: int
    zeros: int
    head_bytes: int
    """The head of the slots, which is to be zero."""
    checks: int
    checks_count: int
    """A table of two addresses and a number of bytes, which are to be equal."""
    sends: int
    sends_count: int
    """A table of buffers, offsets, numbers of bytes, addresses on the host and of mirrors, counts of
    the times that this was sent because both differ, and addresses of `PartWords`."""
    reads: int
    reads_count: int
    """A table of buffers, offsets, numbers of bytes, and addresses."""
    copies: int
    copies_count: int
    """A table of addresses to and from which so many bytes are copied."""
    unknown: int
    unknown_count: int
    """A table of addresses of words that are not 0 from the first command until all is done."""
    is_awaited: int
    """Not 0 if the end of all commands is waited for; set where something is sent."""
    attempts: int
    done: int
    """Runs that began, and that have ended as DONE."""
    nanoseconds: int
    """Of the last run."""

    _fields_ = [
        *_words("gate", "epoch", "host_stack", "environment", "get_environment", "set_environment"),
        *_words("compare", "move", "clock", "set_argument", "enqueue", "read", "write", "finish"),
        *_words("queue", "kernel", "dimensions", "sizes", "group"),
        *_words("argument", "launch", "launch_bytes", "head", "zeros", "head_bytes"),
        *_words("checks", "checks_count", "sends", "sends_count", "reads", "reads_count"),
        *_words("copies", "copies_count", "unknown", "unknown_count", "is_awaited"),
        *_words("attempts", "done", "nanoseconds"),
    ]


class PartWords(ctypes.Structure):
    """The last attempt in which some of a part was sent, and the number of such attempts."""

    last: int
    attempts: int

    _fields_ = _words("last", "attempts")


class GateWords(ctypes.Structure):
    """Native code runs one range of a device at a time, and none that was planned in an earlier
    epoch."""

    epoch: int
    busy: int

    _fields_ = _words("epoch", "busy")


class ItemRecord(ctypes.Structure):
    """The record of an entry stub of `launch_items`."""

    launch: int
    key: int
    back: int
    """As of `Record`; `back` is told a `RangeStatus`."""
    in_order: int
    """Address of the code that runs items in order."""
    word: int
    """Bytes from the start of `ControlBlock.launches` to the word of the launch."""
    behind: int
    """The pc behind the launch."""
    gate: int
    epoch: int
    plan: int
    control: int
    """A plan that may run, its gate and epoch, and the machine that it is of; 0: none."""
    longest: int
    """Nanoseconds of a range after which the plan is not used again without Python."""
    entries: int
    """Times that the code came here with a plan."""
    times: int
    items: int
    nanoseconds: int
    """Ranges that have run so."""

    _fields_ = [
        *_words("launch", "key", "back", "in_order", "word", "behind"),
        *_words("gate", "epoch", "plan", "control", "longest"),
        *_words("entries", "times", "items", "nanoseconds"),
    ]


class EntryStub:
    """A native function and its record."""

    def __init__(self, stubs: EntryStubs, number: int, launch: str) -> None:
        """`launch`: the function behind it."""
        self._stubs, self._number = stubs, number
        place = stubs.records + RECORD_BYTES * number
        ctypes.memset(place, 0, RECORD_BYTES)
        self.record = Record.from_address(place)
        self.items = ItemRecord.from_address(place)
        """The same, as `launch_items` has it."""
        self.record.launch = stubs.native.address(launch)
        self.address = stubs.native.address(f"entry_stub_{number}")

    def close(self) -> None:
        """Let another kernel have it."""
        self._stubs.free.append(self._number)


class EntryStubs:
    """The entry stubs of one object."""

    def __init__(self) -> None:
        self.native: NativeCode = load_or_build(__name__)[0]
        self.records = self.native.address("records")
        self.free = list(range(STUBS))


_lock = threading.Lock()


@functools.cache
def _objects() -> list[EntryStubs]:
    return []


def native_function(name: str) -> int:
    """The address of one of `module`'s functions. Raises BackendError as `entry_stub`."""
    with _lock:
        objects = _objects()
        if not objects:
            objects.append(EntryStubs())
        return objects[0].native.address(name)


def entry_stub(launch: str) -> EntryStub:
    """A free entry stub for one of `module`'s functions. Raises BackendError if its native code
    cannot be built."""
    with _lock:
        objects = _objects()
        found = next((each for each in objects if each.free), None)
        if found is None:
            found = EntryStubs()
            objects.append(found)
        return EntryStub(found, found.free.pop(), launch)
