# SPDX-License-Identifier: Apache-2.0
"""The machine's own memory, and the transfer of its segments from and to the host's memory.

    host ── differing pieces ──> machine ── program ──> machine ── differing pieces ──> host

Pieces have 4 KiB. Changes are found by comparison, whatever made them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np

from ferryvm.backend import BackendError
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.state import descriptors
from ferryvm.verify import Verified
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.simulate.memory import Bytes, Memory

PIECE = 4096
"""Bytes that are compared and sent together."""


class LocalMemory:
    """The segments of a program."""

    def __init__(self, program: Program, verified: Verified) -> None:
        self._machine = program.machine
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
                Segment.CALLS: np.zeros(program.call_bytes, np.uint8),
                Segment.SPILL: np.zeros(WORD_BYTES * program.spill_words, np.uint8),
            }
        )

    @property
    def control(self) -> ControlBlock:
        """The machine's control block."""
        return ControlBlock.from_buffer(self.memory.segments[Segment.CONTROL].data)

    def send(self, control: ControlBlock) -> Iterator[int]:
        """Copy changed pages of the host's memory in use to the machine's memory; bytes of each
        transfer. Raises BackendError where the machine has not so much memory."""
        segments = self.memory.segments
        self._check_size(control)
        for segment, (_, size) in _host(control).items():
            if segment not in segments or len(segments[segment]) != size:
                segments[segment] = np.zeros(size, np.uint8)
                self._used = 0 if segment is Segment.HEAP else self._used
        for segment, end in self._in_use(control).items():
            # What is free of the heap is zero, for a machine that had the same memory before, too.
            end = max(end, self._used) if segment is Segment.HEAP else end
            address = _host(control)[segment][0]
            yield copy(_view(address, end), segments[segment][:end])
        block = segments[Segment.CONTROL]
        block[:] = _view(ctypes.addressof(control), len(block))
        yield len(block)

    def fetch(self, control: ControlBlock) -> Iterator[int]:
        """Copy changed pages of the machine's memory to the host's, except the control block; bytes
        of each transfer."""
        for segment, end in self._in_use(self.control).items():
            address = _host(control)[segment][0]
            yield copy(self.memory.segments[segment][:end], _view(address, end))
        self._used = self.control.hp
        yield len(self.memory.segments[Segment.CONTROL])

    def _in_use(self, control: ControlBlock) -> dict[Segment, int]:
        return {
            Segment.STATICS: WORD_BYTES * control.static_count,
            Segment.STACK: WORD_BYTES * control.sp,
            Segment.HEAP: control.hp,
        }

    def _check_size(self, control: ControlBlock) -> None:
        own = (Segment.FUNCTIONS, Segment.TABLE, Segment.CALLS, Segment.SPILL)
        size = sum(len(self.memory.segments[each]) for each in own)
        size += sum(self._in_use(control).values())
        if size > self._machine.memory:
            raise BackendError(
                f"vliw: the program and its memory take {size} bytes, and the machine "
                f"{self._machine.name} has {self._machine.memory}"
            )


def _view(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _host(control: ControlBlock) -> dict[Segment, tuple[int, int]]:
    """Address and size of the host's memory, by segment."""
    return {
        Segment.STATICS: (control.statics, WORD_BYTES * control.static_count),
        Segment.STACK: (control.stack, control.stack_end - control.stack),
        Segment.HEAP: (control.heap, control.heap_capacity),
    }


def copy(source: Bytes, to: Bytes) -> int:
    """Copy bytes that differ; the number of bytes sent."""
    if np.array_equal(source, to):
        return 0
    sent = 0
    starts = np.arange(0, len(source), PIECE)
    for start in starts[np.logical_or.reduceat(source != to, starts)].tolist():
        end = min(start + PIECE, len(source))
        to[start:end] = source[start:end]
        sent += end - start
    return sent
