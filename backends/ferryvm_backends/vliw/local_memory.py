# SPDX-License-Identifier: Apache-2.0
"""The machine's own memory, and the transfer of its segments from and to the host's memory.

    host ── differing pieces ──> machine ── program ──> machine ── differing pieces ──> host

Changes are found by comparison, whatever made them.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Iterator

import numpy as np

from ferryvm.backend import ArrayActivity, BackendError
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.state import descriptors
from ferryvm.region.object_access import ObjectAccess
from ferryvm.verify import Verified
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.local_object import ObjectTransfer
from ferryvm_backends.vliw.piece import copy, view
from ferryvm_backends.vliw.simulate.memory import Memory


class LocalMemory:
    """The segments of a program."""

    def __init__(self, program: Program, verified: Verified, access: ObjectAccess) -> None:
        """`access`: the objects that the program may access."""
        self._machine = program.machine
        self.objects = ObjectTransfer(verified, access, program.machine)
        self._used = 0
        """Bytes of the heap from which on the machine's is zero."""
        table = np.array([*verified.program.table, 0], np.uint64)
        self.memory = Memory(
            {
                Segment.CONTROL: np.zeros(ctypes.sizeof(ControlBlock), np.uint8),
                Segment.FUNCTIONS: np.array(descriptors(verified), np.uint64)
                .ravel()
                .view(np.uint8),
                Segment.TABLE: table.view(np.uint8),
                Segment.OBJECTS: self.objects.content,
                Segment.TYPES: np.array(verified.types.rows(), np.uint64).view(np.uint8),
                Segment.CALLS: np.zeros(program.call_bytes, np.uint8),
                Segment.SPILL: np.zeros(WORD_BYTES * program.spill_words, np.uint8),
            }
        )

    @property
    def arrays(self) -> tuple[ArrayActivity, ...]:
        """The copies of arrays as they are now."""
        return tuple(map(dataclasses.replace, self.objects.traffic.arrays.values()))

    @property
    def control(self) -> ControlBlock:
        """The machine's control block."""
        return ControlBlock.from_buffer(self.memory.segments[Segment.CONTROL].data)

    def send(self, control: ControlBlock) -> Iterator[int]:
        """Copy changed pages of the host's memory in use to the machine's memory; bytes of each
        transfer. Raises BackendError where the machine has not so much memory."""
        segments = self.memory.segments
        self._check_size(control, self.objects.update(control))
        for segment, (_, size) in _host(control).items():
            if segment not in segments or len(segments[segment]) != size:
                segments[segment] = np.zeros(size, np.uint8)
                self._used = 0 if segment is Segment.HEAP else self._used
        for segment, end in self._in_use(control).items():
            # What is free of the heap is zero, for a machine that had the same memory before, too.
            end = max(end, self._used) if segment is Segment.HEAP else end
            address = _host(control)[segment][0]
            yield copy(view(address, end), segments[segment][:end])
        yield from self.objects.send(control)
        segments[Segment.OBJECTS] = self.objects.content
        block = segments[Segment.CONTROL]
        block[:] = view(ctypes.addressof(control), len(block))
        self.control.prepared = 0  # elements that the host has prepared are in no place here
        yield len(block)

    def fetch(self, control: ControlBlock) -> Iterator[int]:
        """Copy changed pages of the machine's memory to the host's, except the control block; bytes
        of each transfer."""
        for segment, end in self._in_use(self.control).items():
            address = _host(control)[segment][0]
            yield copy(self.memory.segments[segment][:end], view(address, end))
        self._used = self.control.hp
        yield from self.objects.fetch(control, self.control)
        yield len(self.memory.segments[Segment.CONTROL])

    def _in_use(self, control: ControlBlock) -> dict[Segment, int]:
        return {
            Segment.STATICS: WORD_BYTES * control.static_count,
            Segment.STACK: WORD_BYTES * control.sp,
            Segment.HEAP: control.hp,
        }

    def _check_size(self, control: ControlBlock, objects: int) -> None:
        own = (Segment.FUNCTIONS, Segment.TABLE, Segment.TYPES, Segment.CALLS, Segment.SPILL)
        size = objects + sum(len(self.memory.segments[each]) for each in own)
        size += sum(self._in_use(control).values())
        if size > self._machine.memory:
            raise BackendError(
                f"vliw: the program and its memory take {size} bytes, and the machine "
                f"{self._machine.name} has {self._machine.memory}"
            )


def _host(control: ControlBlock) -> dict[Segment, tuple[int, int]]:
    """Address and size of the host's memory, by segment."""
    return {
        Segment.STATICS: (control.statics, WORD_BYTES * control.static_count),
        Segment.STACK: (control.stack, control.stack_end - control.stack),
        Segment.HEAP: (control.heap, control.heap_capacity),
    }
