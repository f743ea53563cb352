# SPDX-License-Identifier: Apache-2.0
"""Code behind an entry stub: the base of kernels in wrapped and in copied memory."""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from typing import Any

import pyopencl as cl

from ferryvm.backend import Activity, BackendError, Code, Options
from ferryvm.failure import described, one_line
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.kernel import Kernel, error_name, library
from ferryvm_backends.opencl.launch import BACK, STACK, entry_stub

_numbers = itertools.count(1)
_codes: weakref.WeakValueDictionary[int, KernelCode] = weakref.WeakValueDictionary()


class KernelCode(Code):
    """A kernel that native code enters, and Python where that does not suffice."""

    launch: str
    """The native function."""

    def __init__(
        self,
        session: Session,
        kernel: Kernel,
        guards: tuple[int, ...],
        options: Options,
    ) -> None:
        """Raises BackendError where native code cannot be had."""
        self.session, self.kernel, self._guards = session, kernel, guards
        self.failures = (ctypes.c_uint64 * max(len(guards), 1))()
        self._why_lost = ""
        self._stub = entry_stub(self.launch)
        self.record = record = self._stub.record
        key = next(_numbers)
        _codes[key] = self
        functions = library()
        record.key, record.back = key, _address(_BACK)
        record.queue, record.kernel = session.queue.int_ptr, kernel.handle.int_ptr
        record.enqueue = _address(functions.clEnqueueNDRangeKernel)
        record.finish = _address(functions.clFinish)
        record.set_argument = _address(functions.clSetKernelArg)
        record.read = _address(functions.clEnqueueReadBuffer)
        record.clock, record.compare = _address(_host().clock_gettime), _address(_host().memcmp)
        record.guard_limit = options.guard_limit
        record.failures = ctypes.addressof(self.failures)
        record.observed = options.observe
        self.address = self._stub.address
        weakref.finalize(self, self._stub.close)

    def back(self, control: ControlBlock, why: int) -> Status:
        """Do the work that native code has left. Raises BackendError, or cl.Error."""
        raise NotImplementedError

    def forget(self) -> None:
        """Mark the kernel's arguments as set for no machine."""
        self.record.control = self.record.residence = 0

    def answer(self, control: ControlBlock, why: int) -> int:
        """The answer to native code: a status."""
        try:
            return int(self.back(control, why))
        except BackendError as error:
            self._why_lost = str(error)
        except cl.Error as error:
            self._why_lost = f"opencl: {self.session.device} failed: {one_line(str(error))}"
        except BaseException as error:  # noqa: BLE001 - ctypes would print it and return 0
            self._why_lost = described(error)
        control.status = Status.LOST
        return int(Status.LOST)

    @property
    def lost(self) -> str:
        """The reason that it cannot be run any more, if it left with LOST."""
        error = ctypes.c_int64(self.record.error).value
        if error:
            return f"opencl: {self.session.device} failed: {error_name(error)}"
        return self._why_lost

    def activity(self) -> Activity:
        record = self.record
        return Activity(
            record.entries,
            record.nanoseconds * 1e-9,
            record.instructions,
            dict(zip(self._guards, self.failures, strict=False)),
            record.to_device,
            record.to_host,
            crowded=record.crowded,
            stack=STACK,
        )


def _back(key: int, address: int, why: int) -> int:
    return _codes[key].answer(ControlBlock.from_address(address), why)


_BACK = BACK(_back)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@functools.cache
def _host() -> ctypes.CDLL:
    return ctypes.CDLL(None)
