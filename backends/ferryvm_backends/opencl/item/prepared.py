# SPDX-License-Identifier: Apache-2.0
"""A range of a launch that runs again on a device with memory of its own, with nothing looked up.

    all as before? ─┬─ yes: changes ─> kernel ─> head of the slots, results ─> one wait ─> the host
                    └─ no: `ItemRanges` finds out what it needs, and prepares the range again

What has been found for a range holds for another one with the same stack, headers and copies. So
what remains is to compare the elements, and four or five commands.

Invariant: a range is prepared if all that its items access is known (`ItemShape.arrays`), none sets
dirty marks, and it was one slice of which nothing was left.
"""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ferryvm.backend import BackendError
from ferryvm.isa.object import ARRAY_HEADER_BYTES
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.launch_operands import LaunchOperands
from ferryvm.machine.state import Machine
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.array_copy import AccessedArrays
from ferryvm_backends.opencl.item.kernel import HEAD, ItemKernel
from ferryvm_backends.opencl.item.native_range import NO_HEAD, NativeRange, Read, staged
from ferryvm_backends.opencl.item.suspension import Suspended
from ferryvm_backends.opencl.kernel import BufferOffset, error_name, finish, library
from ferryvm_backends.opencl.launch import ItemRecord, RangeStatus
from ferryvm_backends.opencl.object_copy import ObjectCopy
from ferryvm_backends.opencl.resident import Copied

State = tuple[Any, ...]

_FIELDS = ("sp", "fp", "hp", "objects", "object_end", "types", "stack", "stack_end")
"""Fields of the control block in a state, in this order."""
_MEMORY = ("statics", "static_count", "heap", "heap_capacity")
"""Other fields by which the memory of a machine is known, see `copied`."""

SHORT = 1e-3
"""Seconds of a range that runs as one native call, at most: signal handlers wait for it."""


def range_state(machine: Machine, start: int, first: int, limit: int) -> State:
    """The state of a machine that a range of a launch depends on, but for objects; `start`: the word
    of the launch's frame."""
    control = machine.control
    return (
        *(ctypes.addressof(control), first, limit, start),
        *(getattr(control, name) for name in _FIELDS),
        bytes(machine.memory.stack[start : control.sp]),
    )


def header(control: ControlBlock, reference: int) -> bytes:
    """The header of an array."""
    return ctypes.string_at(control.objects + reference, ARRAY_HEADER_BYTES)


@dataclasses.dataclass(frozen=True)
class WholeRange:
    """A range that was one slice, of which nothing was left."""

    kernel: ItemKernel
    given: tuple[int, int, int, int]
    """Of `ItemKernel.enqueue`: the first item and the end, items of a work-item, the local size."""
    can_leave: bool = True
    """False if no item can leave it."""


class PreparedRange:
    """A range that has just run, and may run again."""

    def __init__(
        self,
        state: State,
        control: ControlBlock,
        whole: WholeRange,
        arrays: AccessedArrays,
        copied: Copied,
        buffers: Suspended,
        written: Mapping[int, int],
        traffic: Traffic,
    ) -> None:
        """`buffers`: whose slots begin with the head; `written`: see `ItemMemory.push`; `traffic`:
        receives the copies of runs by native calls, see `count`."""
        objects = copied.objects
        self.state, self.whole, self.copied, self.written = state, whole, copied, written
        self._headers = [(one, header(control, one)) for one in arrays.objects]
        self._layout, self._rows = objects.layout, objects.rows
        self._sent, self._unsent = [*objects.sent], [*objects.unsent]
        self._results = [*copied.brought]
        self._buffers, self._slots, self._bound = buffers, buffers.slots, whole.kernel.bound
        self._launch, self._traffic = whole.kernel.launch, traffic
        self._head = np.zeros(1, HEAD)
        self._reads = [_read_of(BufferOffset(self._slots), self._head.nbytes, _data(self._head))]
        """The buffer, the offset in it, bytes, the address on the host."""
        for segment, start, end, _ in self._results:
            place = BufferOffset(segment.place.buffer, segment.place.offset + start)
            self._reads.append(_read_of(place, end - start, _data(segment.mirror) + start))
        self.seconds = 1.0
        """Seconds of the last run, but for those of `enter_by`."""
        self._native: NativeRange | None = None
        copied.users.add(self)

    def forget(self) -> None:
        """Fit no range, and refer to no memory."""
        self.copied.session.gate.shut()
        self.count()
        self.state, self._native = (), None
        self._sent, self._results, self._reads = [], [], []

    @property
    def address(self) -> int:
        """The address of the machine's control block; 0 for none."""
        return int(self.state[0]) if self.state else 0

    @staticmethod
    def can_be(objects: ObjectCopy) -> bool:
        """True if a range that has just run with these objects can run again so."""
        return not (objects.is_ahead or objects.may_be_marked or objects.has_pending)

    def fits(self, control: ControlBlock, state: State) -> bool:
        """True if a range is as this one was."""
        return (
            self.state == state
            and self._is_there()
            and all(header(control, one) == found for one, found in self._headers)
        )

    def _is_there(self) -> bool:
        """True if the device's memory and the kernel are as they were."""
        objects = self.copied.objects
        return (
            self._slots is self._buffers.slots
            and self._layout == objects.layout
            and self._rows is objects.rows
            and self.whole.kernel.bound is self._bound
            and self.can_be(objects)
        )

    def is_short(self, control: ControlBlock, first: int, limit: int) -> bool:
        """True if it may be as this one, and takes so short that `run_at_once` may run it."""
        state = self.state
        if self.seconds > SHORT or not state or (first, limit) != state[1:3]:
            return False
        return bool(state[0] == ctypes.addressof(control)) and self._is_there()

    # --- one native call ----------------------------------------------------------------------

    def run_at_once(self) -> RangeStatus:
        """Run it by one native call, if it is as this one; what is unknown says so behind it."""
        native = self._native
        if native is None:
            native = self._native = self._planned()
        native.arm()
        status = native.run()
        if status is RangeStatus.DONE:
            self.seconds = native.seconds
        return status

    def enter_by(self, entry: ItemRecord) -> None:
        """Let native code run it so that comes to its launch."""
        native = self._native
        if native is not None:
            entry.control = 0
            entry.plan, entry.epoch, entry.longest = native.address, native.arm(), int(1e9 * SHORT)
            entry.control = self.address

    def count(self) -> None:
        """Count the copies of native calls since the last call."""
        if self._native is not None:
            self._native.count(self._sent, self._results, self._traffic)

    def _planned(self) -> NativeRange:
        """The native call."""
        copied, (address, _, limit, start, *fields, words) = self.copied, self.state
        native, control = NativeRange(copied.session), ControlBlock.from_address(address)
        of_memory = {name: getattr(control, name) for name in _MEMORY}
        native.expect_control(address, dict(zip(_FIELDS, fields, strict=True)) | of_memory)
        stack = control.stack + WORD_BYTES * start
        native.expect(stack, words)
        for one, found in self._headers:
            native.expect(control.objects + one, found)
        for segment, ranges, _ in self._sent:
            native.send_part(segment, ranges)
        can_leave = self.whole.can_leave
        reads = self._reads if can_leave else self._reads[1:]  # the head is zero then
        reads, copies = staged(reads, copied.residence.staging)
        head = (reads[0][-1], self._head.nbytes) if can_leave else NO_HEAD
        for segment, first, end, _ in self._results:
            host, mirror = segment.addresses
            copies.append((host + first, mirror + first, end - first))
        next_ = (
            stack + len(words) - ctypes.sizeof(LaunchOperands) + vars(LaunchOperands)["next"].offset
        )
        copies.append((next_, native.word(limit), WORD_BYTES))
        first, end, block, local = self.whole.given
        native.complete(
            address + vars(ControlBlock)["host_stack"].offset,
            self.whole.kernel,
            self._launch,
            self.whole.kernel.sizes(end - first, block, local),
            reads,
            head,
            copies,
            [self._buffers.unknown, copied.unknown],
        )
        return native

    # --- commands from Python -----------------------------------------------------------------

    def run(self, queue: Any) -> Any:
        """Run it; the head of the slots. Raises BackendError, cl.Error."""
        began = time.perf_counter()
        self.copied.objects.send_again(self._sent, self._unsent, self._traffic)
        self._traffic.seconds_to_device += time.perf_counter() - began
        self.whole.kernel.enqueue_again(queue, self._launch, *self.whole.given)
        self._read(queue)
        self.seconds = time.perf_counter() - began
        return self._head[0]

    def _read(self, queue: Any) -> None:
        """Bring head and results, once the kernel has ended, and wait for them."""
        read, commands = library().clEnqueueReadBuffer, ctypes.c_void_p(queue.int_ptr)
        for number, (buffer, place, size, to) in enumerate(self._reads, 1):
            is_last = ctypes.c_uint32(number == len(self._reads))
            where = ctypes.c_size_t(place), ctypes.c_size_t(size), ctypes.c_void_p(to)
            error = read(commands, ctypes.c_void_p(buffer), is_last, *where, 0, None, None)
            if error:
                finish(queue)  # nothing is written into mirrors that may be released
                raise BackendError(f"opencl: a copy failed: {error_name(error)}")

    def accept(self) -> None:
        """Let the machine see the results."""
        began = time.perf_counter()
        self.copied.accept(self._results, self._traffic, began)


def _data(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def _read_of(place: BufferOffset, size: int, to: int) -> Read:
    return place.buffer.int_ptr, place.offset, size, to
