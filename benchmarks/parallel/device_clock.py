# SPDX-License-Identifier: Apache-2.0
"""Seconds that OpenCL devices spend on kernels, by profiling events of their commands.

Every queue that is made within `profiled` is a profiling one, and every kernel that this process
starts has an event: those of the backend opencl, which calls clEnqueueNDRangeKernel through ctypes
or in native code, and those that pyopencl starts. Starting a kernel takes longer so, which the
device's clock does not see.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any
from unittest import mock

from benchmarks.peers.peer import MissingError

_ENQUEUE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p,
)  # fmt: skip
"""clEnqueueNDRangeKernel; its last parameter is where the event goes."""
_EVENT = 8

_callbacks: list[Any] = []
"""Native code has their addresses until the process ends."""


class DeviceClock:
    """A clock that runs while kernels do."""

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._seconds = 0.0

    def note(self, event: Any) -> None:
        """Add a kernel, by its event of pyopencl."""
        self._events.append(event)

    def seconds(self) -> float:
        """The seconds of all kernels so far, the sum of those that ran side by side; it waits for
        their ends."""
        for event in self._events:
            event.wait()
            self._seconds += 1e-9 * (event.profile.end - event.profile.start)
        self._events.clear()
        return self._seconds


@contextlib.contextmanager
def profiled() -> Iterator[DeviceClock]:
    """A clock of the kernels that start within; no session with a device may be open before.
    Raises MissingError without pyopencl or a device."""
    try:
        import pyopencl as cl

        from ferryvm_backends.opencl.build import session
        from ferryvm_backends.opencl.kernel import library
    except ImportError as error:
        raise MissingError(str(error)) from None
    if session.cache_info().currsize:
        raise MissingError("a session with the device is open, whose commands have no times")
    clock, made = DeviceClock(), cl.CommandQueue
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    functions: Any = library()
    started, retain = functions.clEnqueueNDRangeKernel, functions.clRetainEvent

    def queue(context: Any, device: Any = None, properties: Any = profiling) -> Any:
        return made(context, device, properties)

    def start(*arguments: Any) -> int:
        passed, own = arguments[_EVENT], ctypes.c_void_p()
        words = [ctypes.c_void_p(one) for one in arguments[:_EVENT]]
        words[2], words[6] = (ctypes.c_uint32(arguments[place]) for place in (2, 6))
        found = int(started(*words, ctypes.byref(own)))
        if found == 0:
            if passed:  # the caller releases it, too
                retain(own)
                ctypes.c_void_p.from_address(passed).value = own.value
            clock.note(cl.Event.from_int_ptr(own.value, retain=False))
        return found

    _callbacks.append(_ENQUEUE(start))
    replaced = mock.patch.object(functions, "clEnqueueNDRangeKernel", _callbacks[-1])
    with mock.patch.object(cl, "CommandQueue", queue), replaced:
        yield clock
    session.cache_clear()
