# SPDX-License-Identifier: Apache-2.0
"""A range of groups that runs again in the thread that launches, on the machine's own memory.

    same place, short, checked before? ─┬─ yes: arguments ─> kernel, next item ─> the launch goes on
                                        └─ no: a thread of the pool, see `pooled`

The kernel and the change of the launch's operands are one native call: an exception of a signal
handler comes in front of it, where nothing is done, or behind it, where all is.

Invariant: no group of such a range can leave. All have been checked, and no member fails later.
"""

from __future__ import annotations

import ctypes

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.launch_operands import LaunchOperands
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.native_range import NO_HEAD, NativeRange
from ferryvm_backends.opencl.launch import RangeStatus

SHORT = 0.05
"""Seconds of a range that runs so, at most: signal handlers wait for it."""

Place = tuple[int, ...]


def place_of(control: ControlBlock, first: int, limit: int) -> Place:
    """The range, the machine, and where on its stack the launch is."""
    machine = ctypes.addressof(control)
    return first, limit, machine, control.stack, control.stack_end, control.sp, control.fp


class DirectRange:
    """A range whose kernel has just run in one slice."""

    def __init__(
        self, control: ControlBlock, kernel: ItemKernel, session: Session, first: int, limit: int
    ) -> None:
        self.place, self.kernel = place_of(control, first, limit), kernel
        self._items = first, limit
        self._native = native = NativeRange(session)
        operands = control.stack + WORD_BYTES * control.sp - ctypes.sizeof(LaunchOperands)
        end = native.word(limit)
        changed = (operands + vars(LaunchOperands)[name].offset for name in ("limit", "next"))
        host_stack = ctypes.addressof(control) + vars(ControlBlock)["host_stack"].offset
        native.complete(
            host_stack,
            kernel,
            kernel.given(first, limit),
            kernel.sizes(limit - first, 1, 1),
            (),
            NO_HEAD,
            [(address, end, WORD_BYTES) for address in changed],
        )

    def run(self) -> RangeStatus:
        """Run it, with the arguments that the kernel is given: DONE, UNLIKE where the thread's stack
        has no room, FAILED or LOST."""
        self.kernel.given(*self._items)
        self._native.arm()
        return self._native.run()
