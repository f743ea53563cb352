# SPDX-License-Identifier: Apache-2.0
"""Kernels on processors, which work in the machine's own memory: nothing is copied.

A machine's memory is wrapped in buffers once. The standard has it mapped for the host between two
kernels (The OpenCL Specification 1.2, 5.4.2), which a processor's driver does nothing for; so code
is made in this way only where a dry run of the very kernel has shown that it and the host see each
other's words without. The kernel sees the host's interrupt flag, then, too.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import Activity, BackendError, Code, Options
from ferryvm.failure import described, one_line
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import PAGE
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.kernel import Kernel, Place
from ferryvm_backends.opencl.launch import BIND, door

_MOST_KEPT = 16
"""Machines whose memory stays wrapped, of each device."""


def _segments(control: ControlBlock) -> list[tuple[int, int]]:
    """Address and size of control block, statics, stack and usable heap."""
    return [
        (ctypes.addressof(control), ctypes.sizeof(ControlBlock)),
        (control.statics, WORD_BYTES * control.static_count),
        (control.stack, control.stack_end - control.stack),
        (control.heap, control.heap_capacity),
    ]


def _ranges(segments: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Begin and end of what is wrapped together: segments with only guards between them."""
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
        self._buffers = [self._buffer(begin, end) for begin, end in ranges]
        self.places = []
        for address, _ in segments:
            number = next(n for n, (begin, end) in enumerate(ranges) if begin <= address < end)
            self.places.append(Place(self._buffers[number], address - ranges[number][0]))
        self.stack_bytes: int = control.stack_end - control.stack
        self.users: weakref.WeakSet[WrappedCode] = weakref.WeakSet()
        """Code whose arguments are these buffers."""

    def _buffer(self, begin: int, end: int) -> Any:
        size = end - begin
        self._session.check_size(size)
        bytes_ = np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(begin))
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        return cl.Buffer(self._session.context, flags, hostbuf=bytes_)

    def close(self) -> None:
        """Give the buffers back; nobody uses them any more."""
        for user in self.users:
            user.forget()
        for buffer in self._buffers:
            buffer.release()


class Memories:
    """The machines whose memory is wrapped for a device, the one that was used last at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: OrderedDict[tuple[int, ...], Wrapped] = OrderedDict()

    def wrapped(self, control: ControlBlock) -> Wrapped:
        """Raises BackendError, or cl.Error."""
        key = tuple(n for segment in _segments(control) for n in segment)
        found = self._kept.get(key)
        if found is None:
            # The same machine with a smaller heap, or one that had this memory before.
            for other in [k for k in self._kept if k[0] == key[0] or k[6] == key[6]]:
                self._kept.pop(other).close()
            found = self._kept[key] = Wrapped(self._session, control)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)[1].close()
        self._kept.move_to_end(key)
        return found


@functools.cache
def memories(session: Session) -> Memories:
    """Of a session."""
    return Memories(session)


@functools.cache
def _library() -> ctypes.CDLL:
    """The loader that pyopencl uses: its functions dispatch to the drivers."""
    return ctypes.CDLL(cl._cl.__file__)


_numbers = itertools.count(1)
_codes: weakref.WeakValueDictionary[int, WrappedCode] = weakref.WeakValueDictionary()


def _bind(key: int, address: int) -> int:
    """Set the arguments of a kernel for another machine; native code calls it."""
    code = _codes[key]
    try:
        code.bind(ControlBlock.from_address(address))
    except BackendError as error:
        code.why_unbound = str(error)
    except cl.Error as error:
        code.why_unbound = f"opencl: the program's memory cannot be wrapped: {one_line(str(error))}"
    except BaseException as error:  # noqa: BLE001 - ctypes would print it and return 0
        code.why_unbound = described(error)
    else:
        return int(Status.RUNNING)
    return int(Status.LOST)


_BIND = BIND(_bind)


class WrappedCode(Code):
    """A kernel behind a door."""

    def __init__(
        self,
        session: Session,
        kernel: Kernel,
        guards: tuple[int, ...],
        options: Options,
        is_from_cache: bool,
        notes: Mapping[str, float],
    ) -> None:
        """Raises BackendError where native code cannot be had."""
        self._session, self._kernel, self._guards = session, kernel, guards
        self.is_from_cache, self.notes = is_from_cache, notes
        self._failures = (ctypes.c_uint64 * max(len(guards), 1))()
        self._wrapped: Wrapped | None = None
        self.why_unbound = ""
        self._door = door()
        key = next(_numbers)
        _codes[key] = self
        record, library = self._door.record, _library()
        record.key = key
        record.queue, record.kernel = session.queue.int_ptr, kernel.handle.int_ptr
        record.enqueue = _address(library.clEnqueueNDRangeKernel)
        record.finish = _address(library.clFinish)
        record.clock, record.bind = _address(_clock()), _address(_BIND)
        record.guard_limit = options.guard_limit
        record.failures = ctypes.addressof(self._failures)
        record.observed = options.observe
        self.address = self._door.address
        weakref.finalize(self, self._door.close)

    def bind(self, control: ControlBlock) -> None:
        """Set the kernel's arguments for a machine. Raises BackendError, or cl.Error."""
        wrapped = memories(self._session).wrapped(control)
        machine, statics, stack, heap = wrapped.places
        self._kernel.bind(machine, statics, stack, wrapped.stack_bytes, heap)
        wrapped.users.add(self)
        record, self._wrapped = self._door.record, wrapped
        record.control = ctypes.addressof(control)
        record.heap, record.capacity = control.heap, control.heap_capacity
        record.stack_end = control.stack_end

    def forget(self) -> None:
        """Be bound to no machine."""
        self._door.record.control = 0

    @property
    def lost(self) -> str:
        """Why it cannot be run any more, if it left with LOST."""
        error = ctypes.c_int64(self._door.record.error).value
        if error:
            return f"opencl: {self._session.device} failed: {error_name(error)}"
        return self.why_unbound

    def activity(self) -> Activity:
        record = self._door.record
        return Activity(
            record.entries,
            record.nanoseconds * 1e-9,
            record.instructions,
            dict(zip(self._guards, self._failures, strict=False)),
        )


def error_name(code: int) -> str:
    """What OpenCL calls an error."""
    name = next((n for n in dir(cl.status_code) if getattr(cl.status_code, n) == code), None)
    return name or f"error {code}"


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def _clock() -> Any:
    return ctypes.CDLL(None).clock_gettime
