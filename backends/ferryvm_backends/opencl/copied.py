# SPDX-License-Identifier: Apache-2.0
"""Kernels on devices with memory of their own.

If little has changed native code enters them (`launch/copied.py`); this module handles all other
cases.

A kernel runs in slices of about 20 ms, since such a device does not see the host's interrupt flag,
and a display may hang on it. If a slice ends at the kernel's entry, only the control block is
copied before the next one.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import time
import weakref
from collections import OrderedDict

from ferryvm.backend import Activity, Options
from ferryvm.ir.c.context import FORCED_WORD, LOWEST_WORD, SLICE_WORD
from ferryvm.ir.c.opencl import LOOK
from ferryvm.ir.c.opencl_launch import packed
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region
from ferryvm.residency import DeviceMemory, memories
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.code import KernelCode
from ferryvm_backends.opencl.kernel import BufferOffset, Kernel
from ferryvm_backends.opencl.launch import ENTER, FAILED
from ferryvm_backends.opencl.left_elements import LeftElements
from ferryvm_backends.opencl.packet import Packet
from ferryvm_backends.opencl.report import KernelMetrics
from ferryvm_backends.opencl.resident import Copied, Needs

SLICE = 0.02
"""Seconds that a slice is to take."""
_FIRST = 16 * LOOK
_MOST = 1 << 48
_OBJECT_FIELDS = ("object_top", "prepared", "wanted_type")
"""Fields of the control block that code with objects changes, besides registers."""
_MOST_CACHED = 4
"""The number of machines whose memory is retained on a device."""


class Residents(DeviceMemory):
    """The machines that a device has memory of, the one that was used last at the end."""

    def __init__(self, session: Session) -> None:
        self.where = str(session.device)
        self._session = session
        self._cached: OrderedDict[tuple[int, ...], tuple[int, Copied]] = OrderedDict()
        self._running: tuple[int, ...] = ()
        """The machine that has its memory there to run."""
        session.pool.give_up = self._give_up
        self._left: weakref.WeakSet[LeftElements] = weakref.WeakSet()
        """Results that remain on the device."""
        self.seconds_ahead = 0.0
        """Seconds of what has been started since somebody has waited for all, as expected."""

    def copied(self, control: ControlBlock) -> Copied:
        """Raises BackendError, cl.Error."""
        key = _key(control)
        if key != self._running:
            self._session.gate.shut()
        self._running = key
        capacity, found = self._cached.pop(key, (0, None))
        if found is not None and (found.unknown.value or capacity > control.heap_capacity):
            # The latter was another machine's.
            found.close()
            found = None
        if found is None:
            free = [key for key, (_, one) in self._cached.items() if not one.objects.is_ahead]
            for other in free[: len(self._cached) - _MOST_CACHED + 1]:
                self._cached.pop(other)[1].close()
            found = Copied(self._session, control)
        elif capacity != control.heap_capacity:
            found.grow(control)
        found.residence.control = ctypes.addressof(control)
        self._cached[key] = control.heap_capacity, found
        return found

    def leave(
        self, control: ControlBlock, address: int, *, is_changed: bool = True
    ) -> LeftElements:
        """The elements at an address of the host, which remain on the device as they are there.
        `is_changed`: the host lacks them. Raises BackendError, cl.Error."""
        found = self.copied(control).objects.leave(address, is_changed=is_changed)
        found.memory = self
        self._left.add(found)
        return found

    def _give_up(self) -> bool:
        """Release the memory of the machine that was used longest ago, but for the one that runs
        and those whose results are only there, or bring results that remain there to the host;
        False if there is nothing."""
        for key, (_, one) in self._cached.items():
            if key != self._running and not one.objects.is_ahead:
                del self._cached[key]
                one.close()
                return True
        for elements in [*self._left]:
            if elements.is_there:
                elements.give_up()
                return True
        return False

    def has(self, machine: Machine, address: int) -> bool:
        _, found = self._cached.get(_key(machine.control), (0, None))
        return found is not None and found.objects.has(address)

    def is_ahead(self, control: ControlBlock) -> bool:
        """True if the device has results that the host lacks."""
        _, found = self._cached.get(_key(control), (0, None))
        return found is not None and found.objects.is_ahead

    def drop(self, control: ControlBlock) -> None:
        """Release the memory of a machine."""
        _, found = self._cached.pop(_key(control), (0, None))
        if found is not None:
            found.close()


def _key(control: ControlBlock) -> tuple[int, ...]:
    memory = control.statics, control.static_count, control.stack, control.stack_end
    return (*memory, control.heap)


@functools.cache
def residents(session: Session) -> Residents:
    """Of a session."""
    found = Residents(session)
    memories.append(found)
    return found


class CopiedCode(KernelCode):
    """A kernel on a device with memory of its own."""

    launch = "launch_copied"

    def __init__(
        self,
        session: Session,
        kernel: Kernel,
        guards: tuple[int, ...],
        options: Options,
        region: Region,
        needs: Needs,
    ) -> None:
        """Raises BackendError where native code cannot be had."""
        super().__init__(session, kernel, guards, options)
        self._region = region.name
        self._needs, self._traffic, self._packet = needs, Traffic(), Packet()
        self._memory: Copied | None = None
        self._places: tuple[BufferOffset, ...] = ()
        """The buffers that the kernel's arguments are set to."""
        self._version = 0
        """`ObjectCopy.version` of those with objects."""
        record = self.record
        record.entry, record.slice = region.entry, _FIRST
        record.parameters, record.callers = needs.parameters, needs.callers
        record.statics = needs.statics
        record.writes_statics = needs.writes_statics
        record.reads_heap, record.writes_heap = needs.heap, needs.writes_heap
        self._launches = [number for _, number in options.launches]
        record.objects = needs.objects is not None or bool(self._launches)

    def back(self, control: ControlBlock, why: int) -> Status:
        status = Status.LOST
        try:
            if why != FAILED:
                self.record.entries += why == ENTER
                status = self._run(control)
                control.status = status
        finally:
            if status is Status.LOST:  # the content of the device's memory is unknown now
                control.status = status
                residents(self.session).drop(control)
        return status

    def _run(self, control: ControlBlock) -> Status:
        """Run until it leaves; the machine is as it was until all has come back."""
        record, queue = self.record, self.session.queue
        began = time.perf_counter()
        memory = residents(self.session).copied(control)
        self._traffic.seconds_to_device += time.perf_counter() - began
        memory.push(control, self._needs, self._traffic)
        self._bind(memory)
        packet = self._packet
        packet.control = control
        given = packet.control
        given.scratch[FORCED_WORD] = record.entries % 7 + 1  # where forced code gives up next
        given.scratch[LOWEST_WORD] = control.fp - self._needs.parameters
        given.interrupt = 0
        given.launches = self._launch_words(control)
        returned = ControlBlock()
        while True:
            given.scratch[SLICE_WORD] = record.slice
            self.kernel.give(packet)
            self._traffic.to_device += ctypes.sizeof(packet)
            began = time.perf_counter()
            self.kernel.enqueue(queue)
            memory.get_control(returned, self._traffic)
            taken = time.perf_counter() - began
            record.nanoseconds += int(1e9 * taken)
            is_over = returned.status == Status.INTERRUPTED
            if is_over:
                self._adapt(taken)
            if not is_over or returned.pc != record.entry or control.interrupt:
                break
            packet.control = returned
        memory.pull(returned, returned.scratch[LOWEST_WORD], self._needs, self._traffic)
        record.instructions += control.fuel - returned.fuel
        ctypes.memmove(ctypes.addressof(control), ctypes.addressof(returned), REGISTER_BYTES)
        control.wanted = returned.wanted
        if self._needs.objects is not None:
            for name in _OBJECT_FIELDS:
                setattr(control, name, getattr(returned, name))
        if is_over and not control.interrupt:
            return Status.SLICED
        status = Status(returned.status)
        return self._guard_failed(returned.exit_id) if status is Status.GUARD else status

    def _launch_words(self, control: ControlBlock) -> int:
        """The words of the launches that the kernel may leave for, as it reads them."""
        if not control.launches:
            return packed({})
        words = (ctypes.c_uint64 * (max(self._launches, default=0) + 1)).from_address(
            control.launches
        )
        return packed({number: words[number] for number in self._launches})

    def _bind(self, memory: Copied) -> None:
        """Set the kernel's arguments, which takes several times as long as a kernel."""
        own = memory.control, memory.statics.place, memory.stack.place, memory.heap.place
        of_objects = memory.objects.places if self.kernel.has_objects else ()
        places, version = (*own, *of_objects), memory.objects.version
        is_bound = self._memory is memory and self._places == places
        if is_bound and (not of_objects or self._version == version):
            return
        self.forget()
        control, statics, stack, heap = own
        self.kernel.bind(control, statics, stack, memory.stack_bytes, heap)
        if of_objects:
            self.kernel.bind_objects(*of_objects)
        self._memory, self._places, self._version = memory, places, version
        memory.users.add(self)
        self.record.residence = ctypes.addressof(memory.residence)

    def _adapt(self, taken: float) -> None:
        """Adapt the length of slices to their intended time."""
        wanted = int(self.record.slice * min(max(SLICE / max(taken, 1e-6), 0.25), 4.0))
        self.record.slice = min(max(wanted, 1), _MOST)

    def _guard_failed(self, number: int) -> Status:
        self.failures[number] += 1
        is_often = self.failures[number] >= self.record.guard_limit
        return Status.GUARD if is_often else Status.LEAVE

    def activity(self) -> Activity:
        found, more = super().activity(), self._traffic
        return dataclasses.replace(
            found,
            to_device=found.to_device + more.to_device,
            to_host=found.to_host + more.to_host,
            transfer_seconds=more.seconds,
            arrays=tuple(map(dataclasses.replace, more.arrays.values())),
        )

    def metrics(self) -> KernelMetrics:
        traffic, device = self._traffic, str(self.session.device)
        seconds = traffic.seconds_to_device, traffic.seconds_to_host
        memory = self.session.pool.metrics()
        return KernelMetrics(self._region, device, self.activity(), *seconds, memory)
