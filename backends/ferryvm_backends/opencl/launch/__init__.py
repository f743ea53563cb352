# SPDX-License-Identifier: Apache-2.0
"""Entering a kernel from native code, without Python on the way.

    interpreter ─> door n ─> launch(record n, control) ─> unmap, enqueue, map ─> status
                                  └─ another machine than last time? ─> bind (Python)

A door is a C function of the kind that `Code.address` is. There are a fixed number of doors in an
object; each has a record that says which kernel is behind it, so no code is made for a kernel.
"""

from __future__ import annotations

import ctypes
import functools
import threading

from ferryvm_backends._llvm.native import NativeCode, load_or_build

DOORS = 256
"""Doors of one object; there may be several."""

MOST_BUFFERS = 4
"""One for all of a machine's memory, if it is one reservation; one a segment else."""

BIND = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64)
"""Called with a record's `key` and a control block's address; returns 0, or a status to leave with."""

_WORDS = (
    "key",
    "queue",
    "kernel",
    "enqueue",
    "unmap",
    "map",
    "finish",
    "clock",
    "bind",
    "control",
    "heap",
    "capacity",
    "wrapping",
    "maps",
    "guard_limit",
    "failures",
    "observed",
    "error",
    "entries",
    "nanoseconds",
    "instructions",
)


class Wrapping(ctypes.Structure):
    """A machine's memory as buffers; whoever enters a kernel unmaps and maps them."""

    count: int
    buffer: ctypes.Array[ctypes.c_uint64]
    size: ctypes.Array[ctypes.c_uint64]
    """Bytes."""
    mapped: ctypes.Array[ctypes.c_uint64]
    """Where they are mapped for the host; 0: not yet."""

    _fields_ = [
        ("count", ctypes.c_uint64),
        *((name, ctypes.c_uint64 * MOST_BUFFERS) for name in ("buffer", "size", "mapped")),
    ]


class Record(ctypes.Structure):
    """What a door knows of its kernel; addresses and handles are words."""

    key: int
    """What `bind` is told."""
    queue: int
    kernel: int
    enqueue: int
    unmap: int
    map: int
    finish: int
    clock: int
    """Addresses of clEnqueueNDRangeKernel and its like, and of clock_gettime."""
    bind: int
    control: int
    heap: int
    capacity: int
    """Of the machine that the kernel's arguments are set for; 0: of none."""
    wrapping: int
    """Address of its `Wrapping`."""
    maps: int
    """Whether memory has to be unmapped for a kernel, and mapped for the host after it."""
    guard_limit: int
    failures: int
    """Address of a word a guard."""
    observed: int
    """Whether time and instructions are counted."""
    error: int
    """Of the call that failed."""
    entries: int
    nanoseconds: int
    instructions: int
    """What it has done."""

    _fields_ = [(name, ctypes.c_uint64) for name in _WORDS]


RECORD_BYTES = ctypes.sizeof(Record)


class Door:
    """A native function and its record."""

    def __init__(self, doors: Doors, number: int) -> None:
        self._doors, self._number = doors, number
        self.record = Record.from_address(doors.records + RECORD_BYTES * number)
        ctypes.memset(ctypes.addressof(self.record), 0, RECORD_BYTES)
        self.address = doors.native.function_address(f"door_{number}")

    def close(self) -> None:
        """Let another kernel have it."""
        self._doors.free.append(self._number)


class Doors:
    """The doors of one object."""

    def __init__(self) -> None:
        self.native: NativeCode = load_or_build(__name__)[0]
        self.records = self.native.address("records")
        self.free = list(range(DOORS))


_lock = threading.Lock()


@functools.cache
def _objects() -> list[Doors]:
    return []


def door() -> Door:
    """A door that nobody uses. Raises BackendError where native code cannot be had."""
    with _lock:
        objects = _objects()
        found = next((each for each in objects if each.free), None)
        if found is None:
            found = Doors()
            objects.append(found)
        return Door(found, found.free.pop())
