# SPDX-License-Identifier: Apache-2.0
"""Kernels on devices with memory of their own: only changes are copied.

              host                                    device
    memory ── differs from the mirror? ── push ──> buffers ── kernel ──┐ marks the chunks it stores to
    memory <── marked chunks, frames, statics ─── pull ─────────────────┘

The *mirror* is a copy of the device's memory on the host: changes of the host's memory by an
interpreter, native code or a host function are found by comparison. That takes as long as reading
the memory in use twice; a kernel that continues after a slice does not need it.

Results are written into the machine when all of them have arrived: if the device fails before, the
machine is as it was at the entry.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import time
import weakref
from collections.abc import Container, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_memory import ObjectMemory, objects_at
from ferryvm.region.fact import region_effects
from ferryvm.region.object_access import ObjectAccess
from ferryvm.region.region import Region
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.array_copy import AccessedArrays
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import CHUNK, Bytes, runs, zeros
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.launch import STAGING_WORDS, Residence
from ferryvm_backends.opencl.object_copy import ObjectCopy
from ferryvm_backends.opencl.pool import Area
from ferryvm_backends.opencl.segment import ZERO, Part, Segment, area_of_zeros, view


def _bytes(control: ControlBlock) -> Bytes:
    return view(ctypes.addressof(control), ctypes.sizeof(ControlBlock))


def _notes(capacity: int) -> int:
    """Bytes before a heap for the dirty marks of stores, a byte for each chunk, downwards."""
    return -(-(capacity // CHUNK + 1) // CHUNK) * CHUNK


@dataclasses.dataclass(frozen=True)
class Needs:
    """Memory that a region reads and changes, callees included."""

    statics: bool
    writes_statics: bool
    heap: bool
    """True if it is read or changed: bytes beside a change are copied with it."""
    writes_heap: bool
    parameters: int
    """Words of its function's frame below the header."""
    callers: bool
    """Frames of the callers of the function that it is entered in."""
    objects: ObjectAccess | None = None
    """None if it accesses no object."""
    frames: bool = True
    """False if it accesses no frame on the stack at all."""


def needs(region: Region, callers: bool, objects: ObjectAccess | None) -> Needs:
    """Memory of a machine that a region needs; `callers`: frames of callers, too; `objects`: its
    use of objects."""
    found = region_effects(region)
    writes = bool(found.statics_written)
    return Needs(
        statics=writes or bool(found.statics_read),
        writes_statics=writes,
        heap=found.reads_heap or found.writes_heap,
        writes_heap=found.writes_heap,
        parameters=region.verified.parameters(region.entry),
        callers=callers,
        objects=objects,
    )


class User(Protocol):
    """A holder of references to the memory of a machine on a device."""

    def forget(self) -> None:
        """Refer to it no more."""


class HostBuffer:
    """Host memory that a device writes to directly: an H200's driver takes 3 us more to copy
    through other memory (clEnqueueReadBuffer into the result of clEnqueueMapBuffer for a buffer
    made with CL_MEM_ALLOC_HOST_PTR)."""

    def __init__(self, session: Session) -> None:
        """Raises cl.Error."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._buffer = cl.Buffer(session.context, flags, WORD_BYTES * STAGING_WORDS)
        use: Any = cl.map_flags.READ | cl.map_flags.WRITE
        mapped: Any = cl.enqueue_map_buffer(
            session.queue, self._buffer, use, 0, (STAGING_WORDS,), np.dtype(np.uint64)
        )
        self._words = mapped[0]
        self.address: int = self._words.ctypes.data

    def close(self) -> None:
        """Give it back."""
        self._words.base.release()
        self._buffer.release()


class Copied:
    """A machine's memory on a device."""

    def __init__(self, session: Session, control: ControlBlock) -> None:
        """Raises BackendError, cl.Error."""
        self.session = session
        statics = WORD_BYTES * control.static_count
        self.stack_bytes: int = control.stack_end - control.stack
        below = ctypes.sizeof(ControlBlock) + statics
        size = below + self.stack_bytes
        self._area, self._mirror = area_of_zeros(session, size), np.zeros(size, np.uint8)
        buffer = self._area.buffer
        self.control = BufferOffset(buffer)
        self._staging = HostBuffer(session)
        self.residence = Residence(
            control=ctypes.addressof(control),
            buffer=buffer.int_ptr,
            mirror=self._mirror.ctypes.data,
            staging=self._staging.address,
        )
        """Its record for native code."""
        self.statics = Segment(
            session,
            view(control.statics, statics),
            BufferOffset(buffer, ctypes.sizeof(ControlBlock)),
            lambda: self._mirror[ctypes.sizeof(ControlBlock) : below],
            ctypes.c_uint64(),
        )
        self.stack = Segment(
            session,
            view(control.stack, self.stack_bytes),
            BufferOffset(buffer, below),
            lambda: self._mirror[below:],
            ctypes.c_uint64.from_buffer(self.residence, vars(Residence)["valid"].offset),
        )
        self.heap, self._heap_area = self._heap(control)
        self.objects = ObjectCopy(session)
        """Its objects, of which nothing is on the device until a kernel uses them."""
        self.unknown = ctypes.c_uint64()
        """Not 0 if nobody knows what the device and the mirrors have: they are not used any more."""
        self.brought: list[Part] = []
        """The ranges that the last `pull` has brought."""
        self.users: weakref.WeakSet[User] = weakref.WeakSet()
        """Code whose arguments are these buffers, and ranges that are prepared for them."""

    def _heap(self, control: ControlBlock) -> tuple[Segment, Area]:
        capacity = control.heap_capacity
        notes = _notes(capacity)
        area = area_of_zeros(self.session, notes + max(capacity, WORD_BYTES))
        heap = Segment(
            self.session,
            view(control.heap, capacity),
            BufferOffset(area.buffer, notes),
            functools.partial(zeros, self.session, capacity),
            ctypes.c_uint64(),
        )
        residence = self.residence
        residence.heap, residence.capacity = control.heap, capacity
        residence.stack_end, residence.heap_mirror = control.stack_end, heap.mirror.ctypes.data
        return heap, area

    def grow(self, control: ControlBlock) -> None:
        """Follow the host's heap. Raises BackendError, cl.Error."""
        self.session.gate.shut()
        before, area = self.heap, self._heap_area
        self.heap, self._heap_area = self._heap(control)
        before.give_to(self.heap)
        area.release()

    def push(
        self,
        control: ControlBlock,
        needs: Needs,
        traffic: Traffic,
        marks: bool = True,
        written: Container[int] = (),
        arrays: AccessedArrays | None = None,
    ) -> None:
        """Copy the words that a kernel may read to the device; `marks`, `written`, `arrays`: of
        objects, see `ObjectCopy.push`. Raises BackendError, cl.Error."""
        began = time.perf_counter()
        self.session.gate.shut()
        pushed = 0
        if needs.frames:
            first = 0 if needs.callers else control.fp - needs.parameters
            pushed += self.stack.push(WORD_BYTES * first, WORD_BYTES * control.sp)
        if needs.statics:
            pushed += self.statics.push(0, WORD_BYTES * control.static_count)
        if needs.heap:
            # An earlier machine with this memory may have used more: free memory must be zero.
            pushed += self.heap.push(0, max(control.hp, self.residence.used))
            self.residence.used = control.hp
        if needs.objects is not None:
            objects = self._objects()
            self.objects.push(control, objects, needs.objects, traffic, marks, written, arrays)
        traffic.to_device += pushed
        traffic.seconds_to_device += time.perf_counter() - began

    def _objects(self) -> ObjectMemory:
        found = objects_at(self.residence.control)
        if found is None:
            raise BackendError("opencl: a kernel for objects is entered by a machine without any")
        return found

    def get_control(self, control: ControlBlock, traffic: Traffic) -> None:
        """Read the device's control block, once the kernel has ended. Raises cl.Error."""
        cl.enqueue_copy(self.session.queue, _bytes(control), self._area.buffer)
        traffic.to_host += ctypes.sizeof(ControlBlock)

    def pull(self, returned: ControlBlock, lowest: int, needs: Needs, traffic: Traffic) -> None:
        """Copy a kernel's changes back; `returned`: the device's control block, `lowest`: the
        lowest frame that it was in. Raises BackendError, cl.Error; then the machine is as before,
        and this memory of no use."""
        began = time.perf_counter()
        self.session.gate.shut()
        found: list[Part] = []
        if needs.frames:
            found.append((self.stack, WORD_BYTES * lowest, WORD_BYTES * returned.sp, None))
        if needs.writes_statics:
            found.append((self.statics, 0, WORD_BYTES * returned.static_count, None))
        if needs.writes_heap:
            found += self._stored(returned.hp, traffic)
        if needs.objects is not None:
            found += self.objects.stored(returned.object_top, needs.objects, traffic)
        for segment, start, end, _ in found:
            segment.fetch(start, end)
        found += self.objects.brought(traffic)
        if found:
            self.session.settle()
        self.residence.used = max(self.residence.used, returned.hp)
        if needs.frames:
            self.stack.forget(WORD_BYTES * returned.sp)
        self.brought = found
        self.accept(found, traffic, began)

    @staticmethod
    def accept(found: Sequence[Part], traffic: Traffic, began: float) -> None:
        """Bring the machine to the state of mirrors; `began`: the time at which that began."""
        for segment, start, end, _ in found:
            segment.accept(start, end)
        seconds = time.perf_counter() - began
        total = sum(end - start for _, start, end, _ in found)
        for _, start, end, row in found:
            if row is not None:
                row.to_host += end - start
                row.seconds_to_host += seconds * (end - start) / total
        traffic.to_host += total
        traffic.seconds_to_host += seconds

    def _stored(self, hp: int, traffic: Traffic) -> Iterator[Part]:
        """The chunks of the heap that kernels have stored into; they are noted no more."""
        heap, count = self.heap, -(-hp // CHUNK)
        if not count:
            return
        noted = np.empty(count, np.uint8)
        notes = heap.place.offset - count
        buffer = heap.place.buffer
        cl.enqueue_copy(self.session.queue, noted, buffer, src_offset=notes)
        traffic.to_host += count
        if not noted.any():
            return
        for one, two in runs(noted[::-1] != 0):
            yield heap, one * CHUNK, min(two * CHUNK, hp), None
        cl.enqueue_fill_buffer(self.session.queue, buffer, ZERO, notes, count)

    def close(self) -> None:
        """Give the memory of the device back."""
        self.session.gate.shut()
        for user in self.users:
            user.forget()
        self._staging.close()
        self.objects.close()
        for area in (self._area, self._heap_area):
            area.release()
