# SPDX-License-Identifier: Apache-2.0
"""A built kernel and its arguments: where it finds a machine."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import mmap
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.ir.c.opencl import DRY
from ferryvm.machine.control import ControlBlock
from ferryvm_backends.opencl.packet import ARGUMENT, Packet

_ONE = (1,)


@functools.cache
def library() -> ctypes.CDLL:
    """The loader that pyopencl uses: its functions dispatch to the drivers."""
    return ctypes.CDLL(cl._cl.__file__)


def finish(queue: Any) -> None:
    """Wait for all commands of a queue, without Python's lock. Raises BackendError."""
    error = library().clFinish(ctypes.c_void_p(queue.int_ptr))
    if error:
        raise BackendError(f"opencl: commands failed: {error_name(error)}")


def error_name(code: int) -> str:
    """OpenCL's name of an error."""
    name = next((n for n in dir(cl.status_code) if getattr(cl.status_code, n) == code), None)
    return name or f"error {code}"


@dataclasses.dataclass(frozen=True)
class BufferOffset:
    """The start of something: a buffer, and an offset in it in bytes."""

    buffer: Any
    offset: int = 0


class Kernel:
    """A kernel of one work-item; its arguments remain set until they are changed."""

    def __init__(self, context: Any, program: Any, name: str) -> None:
        self._context, self._program = context, program
        self.handle = cl.Kernel(program, name)
        self._packet = Packet() if self.handle.num_args > ARGUMENT else None
        self.has_objects = self.handle.num_args > ARGUMENT + 1
        """True if the places of copied objects are arguments."""

    def bind(
        self,
        control: BufferOffset,
        statics: BufferOffset,
        stack: BufferOffset,
        stack_bytes: int,
        heap: BufferOffset,
    ) -> None:
        """Set all arguments."""
        word = np.uint64
        arguments = [
            control.buffer,
            word(control.offset),
            statics.buffer,
            word(statics.offset),
            stack.buffer,
            word(stack.offset),
            word(stack_bytes),
            heap.buffer,
            word(heap.offset),
        ]
        for number, argument in enumerate(arguments):
            self.handle.set_arg(number, argument)

    def bind_objects(self, space: BufferOffset, tables: BufferOffset) -> None:
        """Set the arguments about copied objects."""
        arguments = [space.buffer, np.uint64(space.offset), tables.buffer]
        for number, argument in enumerate(arguments, ARGUMENT + 1):
            self.handle.set_arg(number, argument)

    def give(self, packet: Packet) -> None:
        """Set the argument that is not a place; it may be changed as soon as that is done."""
        self.handle.set_arg(ARGUMENT, packet)

    def enqueue(self, queue: Any) -> Any:
        """Start it; an event."""
        return cl.enqueue_nd_range_kernel(queue, self.handle, _ONE, _ONE)

    def run_dry(self, queue: Any) -> bool:
        """Run it for nothing, which has drivers finish the code; whether device and host see each
        other's changes of memory that a buffer wraps, without mapping it. A kernel for the host's
        memory that uses objects changes a word at an address outside of all buffers, too."""
        memory = mmap.mmap(-1, mmap.PAGESIZE)  # the host's memory begins at a page, too
        control = ControlBlock.from_buffer(memory)
        control.pc = DRY
        word = ctypes.c_uint64()
        control.objects = ctypes.addressof(word)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        bytes_ = np.frombuffer(memory, np.uint8)
        place = BufferOffset(cl.Buffer(self._context, flags, hostbuf=bytes_))
        self.bind(place, place, place, 0, place)
        if self.has_objects:
            self.bind_objects(place, place)
        seen = []
        for number in (40, 70):
            control.scratch[0] = word.value = number
            if self._packet is not None:
                self._packet.control = control
                self.give(self._packet)
            self.enqueue(queue).wait()
            seen.append(control.scratch[0] == number + 1)
            seen.append(word.value == number + control.scratch[1])
        place.buffer.release()
        return all(seen)
