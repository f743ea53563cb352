# SPDX-License-Identifier: Apache-2.0
"""Entering a kernel from native code, without Python on the way.

    interpreter ─> door n ─> launch(record n, control) ─> enqueue, finish ─> status
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

BIND = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64)
"""Called with a record's `key` and a control block's address; returns 0, or a status to leave with."""

_WORDS = (
    "key",
    "queue",
    "kernel",
    "enqueue",
    "finish",
    "clock",
    "bind",
    "control",
    "heap",
    "capacity",
    "stack_end",
    "guard_limit",
    "failures",
    "observed",
    "error",
    "entries",
    "nanoseconds",
    "instructions",
)


class Record(ctypes.Structure):
    """What a door knows of its kernel; addresses and handles are words."""

    key: int
    """What `bind` is told."""
    queue: int
    kernel: int
    enqueue: int
    finish: int
    clock: int
    """Addresses of clEnqueueNDRangeKernel, clFinish and clock_gettime."""
    bind: int
    control: int
    heap: int
    capacity: int
    stack_end: int
    """Of the machine that the kernel's arguments are set for; 0: of none."""
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
