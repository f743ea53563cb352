# SPDX-License-Identifier: Apache-2.0
"""Kernels on processors, which work in the machine's own memory: nothing is copied.

A machine's memory is wrapped in buffers once. The standard has it mapped for the host between two
kernels (The OpenCL Specification 1.2, 5.4.2), for which a processor's driver has nothing to do; so
this is used only if a dry run of the same kernel has shown that it and the host see each other's
words without mapping. The kernel sees the host's interrupt flag, then, too.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.failure import one_line
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import PAGE
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.code import KernelCode
from ferryvm_backends.opencl.kernel import BufferOffset

_MOST_CACHED = 16
"""The number of machines whose memory remains wrapped, for each device."""


def _segments(control: ControlBlock) -> list[tuple[int, int]]:
    """Address and size of control block, statics, stack and usable heap."""
    return [
        (ctypes.addressof(control), ctypes.sizeof(ControlBlock)),
        (control.statics, WORD_BYTES * control.static_count),
        (control.stack, control.stack_end - control.stack),
        (control.heap, control.heap_capacity),
    ]


def _ranges(segments: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Start and end of the memory that is wrapped together: segments with only guards between
    them."""
    found: list[tuple[int, int]] = []
    for address, size in segments:
        end = address + max(size, 1)
        if found and 0 <= address - found[-1][1] <= 2 * PAGE:
            found[-1] = (found[-1][0], end)
        else:
            found.append((address, end))
    return found


class Wrapped:
    """A machine's memory as buffers."""

    def __init__(self, session: Session, control: ControlBlock) -> None:
        """Raises BackendError, or cl.Error."""
        self._session = session
        segments = _segments(control)
        ranges = _ranges(segments)
        self._buffers = [self._buffer(start, end) for start, end in ranges]
        self.places = []
        for address, _ in segments:
            number = next(n for n, (start, end) in enumerate(ranges) if start <= address < end)
            self.places.append(BufferOffset(self._buffers[number], address - ranges[number][0]))
        self.stack_bytes: int = control.stack_end - control.stack
        self.users: weakref.WeakSet[WrappedCode] = weakref.WeakSet()
        """Code whose arguments are these buffers."""

    def _buffer(self, start: int, end: int) -> Any:
        size = end - start
        self._session.check_size(size)
        bytes_ = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(start))
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        return cl.Buffer(self._session.context, flags, hostbuf=bytes_)

    def close(self) -> None:
        """Release the buffers, which are no longer used."""
        for user in self.users:
            user.forget()
        for buffer in self._buffers:
            buffer.release()


class Memories:
    """The machines whose memory is wrapped for a device, the one that was used last at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cached: OrderedDict[tuple[int, ...], Wrapped] = OrderedDict()

    def wrapped(self, control: ControlBlock) -> Wrapped:
        """Raises BackendError, or cl.Error."""
        key = tuple(n for segment in _segments(control) for n in segment)
        found = self._cached.get(key)
        if found is None:
            # The same machine with a smaller heap, or one that had this memory before.
            for other in [k for k in self._cached if k[0] == key[0] or k[6] == key[6]]:
                self._cached.pop(other).close()
            found = self._cached[key] = Wrapped(self._session, control)
            while len(self._cached) > _MOST_CACHED:
                self._cached.popitem(last=False)[1].close()
        self._cached.move_to_end(key)
        return found


@functools.cache
def memories(session: Session) -> Memories:
    """Of a session."""
    return Memories(session)


class WrappedCode(KernelCode):
    """A kernel that works in the machine's own memory."""

    launch = "launch_wrapped"

    def back(self, control: ControlBlock, why: int) -> Status:
        """Set the kernel's arguments for another machine."""
        try:
            wrapped = memories(self.session).wrapped(control)
            machine, statics, stack, heap = wrapped.places
            self.kernel.bind(machine, statics, stack, wrapped.stack_bytes, heap)
        except cl.Error as error:
            said = f"opencl: the program's memory cannot be wrapped: {one_line(str(error))}"
            raise BackendError(said) from None
        wrapped.users.add(self)
        record, self._wrapped = self.record, wrapped
        record.control = ctypes.addressof(control)
        record.heap, record.capacity = control.heap, control.heap_capacity
        record.stack_end = control.stack_end
        return Status.RUNNING
