# SPDX-License-Identifier: Apache-2.0
"""A built kernel and its arguments: where it finds a machine."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyopencl as cl

_ONE = (1,)
_DRY_BYTES = 4096


@dataclasses.dataclass(frozen=True)
class Place:
    """Where something begins: a buffer, and an offset in it in bytes."""

    buffer: Any
    offset: int = 0


class Kernel:
    """A kernel of one work-item; its arguments stay set until they are set anew."""

    def __init__(self, context: Any, program: Any, name: str) -> None:
        self._context, self._program = context, program
        self.handle = cl.Kernel(program, name)

    def bind(
        self, control: Place, statics: Place, stack: Place, stack_bytes: int, heap: Place
    ) -> None:
        """Set all arguments."""
        word = np.uint64
        self.handle.set_args(
            control.buffer,
            word(control.offset),
            statics.buffer,
            word(statics.offset),
            stack.buffer,
            word(stack.offset),
            word(stack_bytes),
            heap.buffer,
            word(heap.offset),
        )

    def enqueue(self, queue: Any) -> Any:
        """Start it; an event."""
        return cl.enqueue_nd_range_kernel(queue, self.handle, _ONE, _ONE)

    def run_dry(self, queue: Any) -> None:
        """Run it without doing anything, which has drivers finish the code."""
        # All bytes 0xff: a pc with which it returns at once.
        dry = np.full(_DRY_BYTES, 0xFF, np.uint8)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        place = Place(cl.Buffer(self._context, flags, hostbuf=dry))
        self.bind(place, place, place, 0, place)
        self.enqueue(queue).wait()
