# SPDX-License-Identifier: Apache-2.0
"""Kernels on devices with memory of their own, entered by way of Python.

A kernel runs in slices of about 20 ms, since such a device does not see the host's interrupt flag,
and a display may hang on it. A slice that ends where the kernel begins is followed by the next one
with nothing but the control block copied.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections import OrderedDict
from collections.abc import Mapping

import pyopencl as cl

from ferryvm.backend import Activity, BackendError, Code, Options
from ferryvm.failure import described, one_line
from ferryvm.ir.c.opencl import LOOK
from ferryvm.ir.c.shared import FORCED_WORD, LOWEST_WORD, SLICE_WORD
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.kernel import Kernel, Place
from ferryvm_backends.opencl.resident import Copied, Needs, Traffic

SLICE = 0.02
"""Seconds that a slice is to take."""
_FIRST = 16 * LOOK
_MOST = 1 << 48
_MOST_KEPT = 4
"""Machines whose memory stays on a device."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)


class Residents:
    """The machines that a device has memory of, the one that was used last at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: OrderedDict[tuple[int, ...], tuple[int, Copied]] = OrderedDict()

    def copied(self, control: ControlBlock) -> Copied:
        """Raises cl.Error."""
        key = _key(control)
        capacity, found = self._kept.pop(key, (0, None))
        if found is not None and capacity > control.heap_capacity:  # another machine's
            found.close()
            found = None
        if found is None:
            while len(self._kept) >= _MOST_KEPT:
                self._kept.popitem(last=False)[1][1].close()
            found = Copied(self._session, control)
        elif capacity != control.heap_capacity:
            found.grow(control)
        self._kept[key] = control.heap_capacity, found
        return found

    def drop(self, control: ControlBlock) -> None:
        """Have no memory of a machine any more."""
        _, found = self._kept.pop(_key(control), (0, None))
        if found is not None:
            found.close()


def _key(control: ControlBlock) -> tuple[int, ...]:
    memory = control.statics, control.static_count, control.stack, control.stack_end
    return (*memory, control.heap)


@functools.cache
def residents(session: Session) -> Residents:
    """Of a session."""
    return Residents(session)


class CopiedCode(Code):
    """A kernel that is entered by way of Python."""

    def __init__(
        self,
        session: Session,
        kernel: Kernel,
        guards: tuple[int, ...],
        entry: int,
        needs: Needs,
        options: Options,
        is_from_cache: bool,
        notes: Mapping[str, float],
    ) -> None:
        """`entry`: pc."""
        self._session, self._kernel, self._guards = session, kernel, guards
        self._entry, self._needs, self._options = entry, needs, options
        self.is_from_cache, self.notes = is_from_cache, notes
        self._failures = dict.fromkeys(guards, 0)
        self._slice, self._entries, self._instructions, self._seconds = _FIRST, 0, 0, 0.0
        self._traffic = Traffic()
        self._bound: tuple[Place, ...] = ()
        """What the kernel's arguments are."""
        self._lost = ""
        self._function = _FUNCTION(self._enter)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    @property
    def lost(self) -> str:
        return self._lost

    def _enter(self, address: int) -> int:
        control = ControlBlock.from_address(address)
        status = Status.LOST
        try:
            status = self._run(control)
        except cl.Error as error:
            self._lost = f"opencl: {self._session.device} failed: {one_line(str(error))}"
        except BackendError as error:
            self._lost = str(error)
        except BaseException as error:  # noqa: BLE001 - ctypes would print it and return 0
            self._lost = described(error)
        if status is Status.LOST:  # what the device has is not known any more
            residents(self._session).drop(control)
        control.status = status
        return int(status)

    def _run(self, control: ControlBlock) -> Status:
        """Run until it leaves; the machine is as it was until all has come back."""
        self._entries += 1
        began = time.perf_counter()
        memory = residents(self._session).copied(control)
        self._traffic.seconds += time.perf_counter() - began
        memory.push(control, self._needs, self._traffic)
        given = ControlBlock.from_buffer_copy(control)
        given.scratch[FORCED_WORD] = self._entries % 7 + 1  # where forced code gives up next
        given.scratch[LOWEST_WORD] = control.fp
        given.interrupt = 0
        places = memory.control, memory.statics.place, memory.stack.place, memory.heap.place
        if self._bound != places:  # setting arguments takes several times as long as a kernel
            statics, stack, heap = places[1:]
            self._kernel.bind(memory.control, statics, stack, memory.stack_bytes, heap)
            self._bound = places
        left = ControlBlock()
        while True:
            given.scratch[SLICE_WORD] = self._slice
            memory.set_control(given, self._traffic)
            began = time.perf_counter()
            self._kernel.enqueue(self._session.queue)
            memory.get_control(left, self._traffic)
            taken = time.perf_counter() - began
            self._seconds += taken
            is_over = left.status == Status.INTERRUPTED
            if is_over:
                self._adapt(taken)
            if not is_over or left.pc != self._entry or control.interrupt:
                break
            given = ControlBlock.from_buffer_copy(left)
        memory.pull(left, left.scratch[LOWEST_WORD], self._needs, self._traffic)
        self._instructions += control.fuel - left.fuel
        ctypes.memmove(ctypes.addressof(control), ctypes.addressof(left), REGISTER_BYTES)
        control.wanted = left.wanted
        if is_over and not control.interrupt:
            return Status.SLICED
        status = Status(left.status)
        return self._guard_failed(left.exit_id) if status is Status.GUARD else status

    def _adapt(self, taken: float) -> None:
        """Have slices take about as long as they are to take."""
        wanted = int(self._slice * min(max(SLICE / max(taken, 1e-6), 0.25), 4.0))
        self._slice = min(max(wanted, 1), _MOST)

    def _guard_failed(self, number: int) -> Status:
        pc = self._guards[number]
        self._failures[pc] += 1
        is_often = self._failures[pc] >= self._options.guard_limit
        return Status.GUARD if is_often else Status.LEAVE

    def activity(self) -> Activity:
        return Activity(
            self._entries,
            self._seconds,
            self._instructions,
            dict(self._failures),
            self._traffic.to_device,
            self._traffic.to_host,
            self._traffic.seconds,
        )
