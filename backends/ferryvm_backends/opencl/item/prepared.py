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
from ferryvm_backends.opencl.item.native_range import NativeRange
from ferryvm_backends.opencl.kernel import BufferOffset, error_name, finish, library
from ferryvm_backends.opencl.launch import RangeStatus
from ferryvm_backends.opencl.object_copy import ObjectCopy
from ferryvm_backends.opencl.resident import Copied

State = tuple[Any, ...]

_FIELDS = ("sp", "fp", "hp", "objects", "object_end", "types", "stack", "stack_end")
"""Fields of the control block in a state, in this order."""

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


def _read_of(place: BufferOffset, size: int, to: int) -> tuple[Any, ...]:
    buffer, at = ctypes.c_void_p(place.buffer.int_ptr), ctypes.c_size_t(place.offset)
    return buffer, at, ctypes.c_size_t(size), ctypes.c_void_p(to)


class PreparedRange:
    """A range that has just run, and may run again."""

    def __init__(
        self,
        state: State,
        control: ControlBlock,
        whole: WholeRange,
        arrays: AccessedArrays,
        copied: Copied,
        slots: Any,
        written: Mapping[int, int],
    ) -> None:
        """`slots`: the buffer that begins with the head; `written`: see `ItemMemory.push`."""
        objects = copied.objects
        self.state, self.whole, self.copied, self.written = state, whole, copied, written
        self._headers = [(one, header(control, one)) for one in arrays.objects]
        self._layout, self._rows = objects.layout, objects.rows
        self._sent, self._unsent = [*objects.sent], [*objects.unsent]
        self._results = [*copied.brought]
        self._slots, self._bound = slots, whole.kernel.bound
        self._launch = whole.kernel.launch
        self._head = np.zeros(1, HEAD)
        self._reads = [_read_of(BufferOffset(slots), self._head.nbytes, self._head.ctypes.data)]
        """Arguments of commands: the buffer, the offset in it, bytes, the address on the host."""
        for segment, start, end, _ in self._results:
            place = BufferOffset(segment.place.buffer, segment.place.offset + start)
            to = segment.mirror.ctypes.data + start
            self._reads.append(_read_of(place, end - start, to))
        self.seconds = 1.0
        """Seconds of the last run."""
        self._native: NativeRange | None = None
        copied.users.add(self)

    def forget(self) -> None:
        """Fit no range, and refer to no memory."""
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

    def fits(self, control: ControlBlock, state: State, slots: Any) -> bool:
        """True if a range is as this one was."""
        return (
            self.state == state
            and self._is_there(slots)
            and all(header(control, one) == found for one, found in self._headers)
        )

    def _is_there(self, slots: Any) -> bool:
        """True if the device's memory and the kernel are as they were."""
        objects = self.copied.objects
        return (
            self._slots is slots
            and self._layout == objects.layout
            and self._rows is objects.rows
            and self.whole.kernel.bound is self._bound
            and self.can_be(objects)
        )

    def is_short(self, control: ControlBlock, first: int, limit: int, slots: Any) -> bool:
        """True if it may be as this one, and takes so short that `run_at_once` may run it."""
        state = self.state
        if self.seconds > SHORT or not state or (first, limit) != state[1:3]:
            return False
        return bool(state[0] == ctypes.addressof(control)) and self._is_there(slots)

    def run_at_once(self, queue: Any, traffic: Traffic) -> RangeStatus:
        """Run it by one native call, if it is as this one. Raises BackendError, cl.Error."""
        began = time.perf_counter()
        native, kernel = self._native, self.whole.kernel
        if native is None:
            native = self._native = self._planned(queue)
        kernel.give_again(self._launch)
        status = RangeStatus(native.run())
        if status is RangeStatus.DONE:
            self.seconds = time.perf_counter() - began
            native.count_sent(self._sent, traffic)
            for _, start, end, of_array in self._results:
                traffic.to_host += end - start
                if of_array is not None:
                    of_array.to_host += end - start
        return status

    def _planned(self, queue: Any) -> NativeRange:
        """The native call."""
        native, (address, _, limit, start, *fields, words) = NativeRange(), self.state
        native.expect_control(address, dict(zip(_FIELDS, fields, strict=True)))
        control = ControlBlock.from_address(address)
        stack = control.stack + WORD_BYTES * start
        native.expect(stack, words)
        for one, found in self._headers:
            native.expect(control.objects + one, found)
        for segment, ranges, _ in self._sent:
            native.send_part(segment, ranges)
        copies = []
        for segment, first, end, _ in self._results:
            host, mirror = segment.addresses
            copies.append((host + first, mirror + first, end - first))
        next_ = (
            stack + len(words) - ctypes.sizeof(LaunchOperands) + vars(LaunchOperands)["next"].offset
        )
        copies.append((next_, native.word(limit), WORD_BYTES))
        head = self._head.ctypes.data, self._head.nbytes
        kernel = self.whole.kernel
        first, end, block, local = self.whole.given
        sizes = kernel.sizes(end - first, block, local)
        reads = [
            (buffer.value, place.value, size.value, to.value)
            for buffer, place, size, to in self._reads
        ]
        stack_at = address + vars(ControlBlock)["host_stack"].offset
        native.complete(stack_at, queue, kernel.handle, sizes, reads, head, copies)
        return native

    def run(self, queue: Any, traffic: Traffic) -> Any:
        """Run it; the head of the slots. Raises BackendError, cl.Error."""
        began = time.perf_counter()
        self.copied.objects.send_again(self._sent, self._unsent, traffic)
        traffic.seconds_to_device += time.perf_counter() - began
        self.whole.kernel.enqueue_again(queue, self._launch, *self.whole.given)
        self._read(queue)
        self.seconds = time.perf_counter() - began
        return self._head[0]

    def _read(self, queue: Any) -> None:
        """Bring head and results, once the kernel has ended, and wait for them."""
        read, commands = library().clEnqueueReadBuffer, ctypes.c_void_p(queue.int_ptr)
        for number, (buffer, *place) in enumerate(self._reads, 1):
            is_last = ctypes.c_uint32(number == len(self._reads))
            error = read(commands, buffer, is_last, *place, 0, None, None)
            if error:
                finish(queue)  # nothing is written into mirrors that may be released
                raise BackendError(f"opencl: a copy failed: {error_name(error)}")

    def accept(self, traffic: Traffic) -> None:
        """Let the machine see the results."""
        began = time.perf_counter()
        self.copied.accept(self._results, traffic, began)
