# SPDX-License-Identifier: Apache-2.0
"""The built kernel of a launch's items, and its arguments."""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.ir.c.opencl import DRY
from ferryvm.ir.c.opencl_item import ENTRY
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.kernel import BufferOffset, error_name, finish, library

HEAD = np.dtype(
    [(name, np.uint32) for name in ("count", "stop", "skipped", "lost", "interrupt", "a", "b", "c")]
)
"""The head of the buffer of slots."""

_FIELDS = (
    *("first", "limit", "block", "most", "enough"),
    *("sp", "fp", "stack_at", "stack_end", "hp", "objects", "types", "forced", "polls", "marks"),
)
"""Words of `struct ferry_launch` before the arguments."""
_PLACES = {name: place for place, name in enumerate(_FIELDS)}

LAUNCH, _OBJECTS = 6, 7
"""Numbers of arguments of the kernel: of the launch, and of the first one behind it."""


@functools.cache
def kernel_queue(session: Session) -> Any:
    """A queue for kernels beside which the session's queue copies; its commands are timed."""
    properties = cl.command_queue_properties.PROFILING_ENABLE
    return cl.CommandQueue(session.context, properties=properties)


def seconds_of(event: Any) -> float:
    """The seconds that a command of `kernel_queue` has taken by the device's clock. Raises
    cl.Error."""
    profile: Any = event.profile
    return float(1e-9 * (profile.end - profile.start))


class ItemKernel:
    """A kernel whose work-items are items of a launch; its arguments remain set."""

    def __init__(
        self, context: Any, program: Any, arguments: int, lanes: int = 1, name: str = ENTRY
    ) -> None:
        """`arguments`: number of those that the items share; `lanes`: work-items for each item;
        `name`: the kernel's."""
        self._context, self._program, self._lanes = context, program, lanes
        self.handle = cl.Kernel(program, name)
        info, device = cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, context.devices[0]
        declared: Any = self.handle.get_work_group_info(info, device)
        self._axes = tuple(int(size) for size in declared)
        """The same along each axis."""
        self.group = math.prod(self._axes)
        """Work-items that each group has; 0: any number."""
        self.bound: list[Any] = []
        """The arguments but for the launch, as they are set; another list for others."""
        self._words = (ctypes.c_uint64 * (len(_FIELDS) + max(arguments, 1)))()
        self.has_objects = self.handle.num_args > _OBJECTS
        """True if the places of copied objects are arguments."""

    def bind(self, places: Sequence[BufferOffset], suspended: Any, skipped: Any) -> None:
        """Set all arguments but the launch. `places`: of statics and heap, and of copied objects
        and their tables."""
        statics, heap, *copied = places
        arguments = [statics.buffer, statics.offset, heap.buffer, heap.offset, suspended, skipped]
        if self.has_objects:
            space, tables = copied
            arguments += [space.buffer, space.offset, tables.buffer]
        # Equal buffers may be others: a later one may have the handle of an earlier one.
        if self.bound and all(
            a is b or (isinstance(a, int) and a == b)
            for a, b in zip(arguments, self.bound, strict=True)
        ):
            return
        self.bound = []
        for number, argument in enumerate(arguments):
            given = np.uint64(argument) if isinstance(argument, int) else argument
            self.handle.set_arg(number + (number >= LAUNCH), given)
        self.bound = arguments

    def give(self, arguments: Sequence[int], **fields: int) -> None:
        """Set fields of the launch, and the arguments that items share."""
        for name, value in fields.items():
            self._words[_PLACES[name]] = value
        for number, word in enumerate(arguments, len(_FIELDS)):
            self._words[number] = word

    @property
    def launch(self) -> Any:
        """A copy of the launch as it is given, for `enqueue_again`."""
        return type(self._words).from_buffer_copy(self._words)

    def machine_state(self) -> tuple[int, ...]:
        """The fields of the launch that tell of the machine."""
        return tuple(self._words[_PLACES["sp"] : _PLACES["forced"]])

    def given(self, first: int, end: int) -> Any:
        """The launch that is given, of these items, one by each work-item: the argument itself, which
        later ones change."""
        self._words[0], self._words[1], self._words[2] = first, end, 1
        return self._words

    def most_local(self, device: Any) -> int:
        """The largest number of work-items that a group can have."""
        info = cl.kernel_work_group_info.WORK_GROUP_SIZE
        most: Any = self.handle.get_work_group_info(info, device)
        return int(most)

    def enqueue(
        self,
        queue: Any,
        first: int,
        end: int,
        block: int,
        local: int,
        event: Any = None,
        after: Any = None,
    ) -> None:
        """Start the items from one up to another, so many by each work-item; `event`: a pointer for
        the event of that; `after`: the event of what comes before. Raises BackendError.

        PoCL runs them in the thread that enqueues. pyopencl would hold Python's lock meanwhile, and
        then no thread could set the interrupt flag.
        """
        self._words[0], self._words[1], self._words[2] = first, end, block
        self._set_launch(self._words)
        self._start(queue, self._sizes(end - first, block, local), event, after)

    def enqueue_again(
        self, queue: Any, launch: Any, first: int, end: int, block: int, local: int
    ) -> None:
        """As `enqueue`, of a launch that has been enqueued before. Raises BackendError."""
        self._set_launch(launch)
        self._start(queue, self._sizes(end - first, block, local))

    def _start(
        self, queue: Any, sizes: tuple[Any, ...], event: Any = None, after: Any = None
    ) -> None:
        events = (ctypes.c_void_p * 1)(None if after is None else after.int_ptr)
        awaited = (0, None) if after is None else (1, events)
        commands, kernel = ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(self.handle.int_ptr)
        error = library().clEnqueueNDRangeKernel(commands, kernel, *sizes, *awaited, event)
        if error:
            raise BackendError(f"opencl: a launch failed: {error_name(error)}")

    def _sizes(self, items: int, block: int, local: int) -> tuple[Any, ...]:
        """Dimensions, offset, sizes of all and of a group."""
        count, every, group = self.sizes(items, block, local)
        return count, ctypes.c_void_p(), every, group

    def sizes(self, items: int, block: int, local: int) -> tuple[int, Any, Any]:
        """Dimensions, sizes of all work-items and of a group; groups follow each other along the
        first axis."""
        local = self.group or local
        groups = -(-items * self._lanes // (local * block))
        axes = self._axes if self.group else (local, 1, 1)
        count = 1 if axes[1:] == (1, 1) else 3
        every = (ctypes.c_size_t * 3)(groups * axes[0], *axes[1:])
        return count, every, (ctypes.c_size_t * 3)(*axes)

    def _set_launch(self, words: Any) -> None:
        size, kernel = ctypes.sizeof(words), ctypes.c_void_p(self.handle.int_ptr)
        error = library().clSetKernelArg(kernel, LAUNCH, ctypes.c_size_t(size), words)
        if error:
            raise BackendError(f"opencl: a launch failed: {error_name(error)}")

    def run_timed(self, session: Session, first: int, end: int, block: int, local: int) -> float:
        """Run these items; the seconds that they took by the device's clock. Raises BackendError,
        cl.Error."""
        event = self.start_apart(session, first, end, block, local)
        finish(kernel_queue(session))
        return seconds_of(event)

    def start_apart(self, session: Session, first: int, end: int, block: int, local: int) -> Any:
        """Start these items behind what the session's queue has so far, and beside what comes to it
        later; their event. Raises BackendError, cl.Error."""
        queue, handle = kernel_queue(session), ctypes.c_void_p()
        before = cl.enqueue_marker(session.queue)
        session.queue.flush()
        self.enqueue(queue, first, end, block, local, ctypes.byref(handle), before)
        queue.flush()
        return cl.Event.from_int_ptr(handle.value or 0, retain=False)

    def run_dry(self, queue: Any) -> bool:
        """Run it for nothing, see `ferryvm_backends.opencl.kernel.Kernel.run_dry`."""
        memory, word = mmap.mmap(-1, mmap.PAGESIZE), ctypes.c_uint64()
        head = np.frombuffer(memory, HEAD, 1)[0]
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        buffer = cl.Buffer(self._context, flags, hostbuf=np.frombuffer(memory, np.uint8))
        self.bind([BufferOffset(buffer)] * (4 if self.has_objects else 2), buffer, buffer)
        self.give((), first=DRY, objects=ctypes.addressof(word))
        seen = []
        for number in (40, 70):
            head["count"] = head["interrupt"] = word.value = number
            self.handle.set_arg(LAUNCH, self._words)
            size = self._axes if self.group else (1,)
            cl.enqueue_nd_range_kernel(queue, self.handle, size, size)
            queue.finish()
            seen.append(head["count"] == 2 * number + 1 and word.value == number + head["lost"])
        buffer.release()
        return all(seen)
