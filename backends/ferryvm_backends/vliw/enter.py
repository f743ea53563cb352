# SPDX-License-Identifier: Apache-2.0
"""Entering a program of the machine: memory there, control, memory back.

    host's memory ── pieces that differ ──> the machine's ── program ──> the machine's ── pieces ──> host's

The machine has memory of its own. Before it runs, what differs in the host's is sent, and afterwards
what it has changed is fetched, in pieces of 4 KiB; both are counted in cycles of the machine.
"""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections import Counter
from collections.abc import Mapping

import numpy as np

from ferryvm.backend import Activity, Code, Options
from ferryvm.failure import described
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm.machine.state import descriptors
from ferryvm.verify import Verified
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.simulate.memory import Bytes, Memory
from ferryvm_backends.vliw.simulate.native import NativeProgram

PIECE = 4096
"""Bytes that are compared and sent together."""
SLICE = 2_000_000
"""Cycles after which a program gives control back, if it looks."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)


@dataclasses.dataclass
class Totals:
    """What all entries took."""

    entries: int = 0
    cycles: int = 0
    transfer_cycles: int = 0
    to_device: int = 0
    to_host: int = 0
    instructions: int = 0
    seconds: float = 0.0
    issued: Counter[int] = dataclasses.field(default_factory=Counter)
    """Operations by unit."""


def _view(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


class VliwCode(Code):
    """A program of the machine, entered by way of Python."""

    def __init__(
        self,
        program: Program,
        entry: int,
        verified: Verified,
        options: Options,
        notes: Mapping[str, float],
    ) -> None:
        """`entry`: a pc."""
        self.program, self.notes, self.is_from_cache = program, notes, False
        self.totals = Totals()
        self._native = NativeProgram(program)
        self._entry, self._limit = entry, options.guard_limit
        self._failures = dict.fromkeys(program.guards, 0)
        table = np.array([*verified.program.table, 0], np.uint64)
        self._segments: dict[Segment, Bytes] = {
            Segment.CONTROL: np.zeros(ctypes.sizeof(ControlBlock), np.uint8),
            Segment.FUNCTIONS: descriptors(verified).ravel().view(np.uint8),
            Segment.TABLE: table.view(np.uint8),
            Segment.CALLS: np.zeros(program.call_bytes, np.uint8),
            Segment.SPILL: np.zeros(WORD_BYTES * program.spill_words, np.uint8),
        }
        self._lost = ""
        self._function = _FUNCTION(self._enter)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    @property
    def lost(self) -> str:
        return self._lost

    def _enter(self, address: int) -> int:
        control = ControlBlock.from_address(address)
        try:
            status = self._run(control)
        except BaseException as error:  # noqa: BLE001 - ctypes would print it and return 0
            self._lost = described(error)
            status = Status.LOST
        control.status = status
        return int(status)

    def _run(self, control: ControlBlock) -> Status:
        totals = self.totals
        totals.entries += 1
        began = time.perf_counter()
        host = _host(control)
        for segment, bytes_ in host.items():
            mine = self._segments.get(segment)
            if mine is None or len(mine) != len(bytes_):
                mine = self._segments[segment] = np.zeros(len(bytes_), np.uint8)
            totals.to_device += self._count(_send(bytes_, mine))
        block = self._segments[Segment.CONTROL]
        block[:] = _view(ctypes.addressof(control), len(block))
        left = ControlBlock.from_buffer(block.data)
        while True:
            counts = self._native.run(Memory(self._segments), SLICE)
            totals.cycles += counts.cycles
            totals.issued += counts.issued
            is_over = left.status == Status.INTERRUPTED
            if not is_over or left.pc != self._entry or control.interrupt:
                break
        for segment, bytes_ in host.items():
            totals.to_host += self._count(_send(self._segments[segment], bytes_))
        totals.instructions += control.fuel - left.fuel
        ctypes.memmove(ctypes.addressof(control), ctypes.addressof(left), REGISTER_BYTES)
        control.wanted = left.wanted
        totals.seconds += time.perf_counter() - began
        if is_over and not control.interrupt:
            return Status.SLICED
        status = Status(left.status)
        return self._guard_failed(left.exit_id) if status is Status.GUARD else status

    def _count(self, size: int) -> int:
        if size:
            transfer = self.program.machine.transfer
            self.totals.transfer_cycles += transfer.setup + int(
                -(-size // transfer.bytes_per_cycle)
            )
        return size

    def _guard_failed(self, number: int) -> Status:
        pc = self.program.guards[number]
        self._failures[pc] += 1
        return Status.GUARD if self._failures[pc] >= self._limit else Status.LEAVE

    def activity(self) -> Activity:
        totals = self.totals
        return Activity(
            totals.entries,
            totals.seconds,
            totals.instructions,
            dict(self._failures),
            totals.to_device,
            totals.to_host,
        )


def _host(control: ControlBlock) -> dict[Segment, Bytes]:
    """The host's memory, by segment."""
    return {
        Segment.STATICS: _view(control.statics, WORD_BYTES * control.static_count),
        Segment.STACK: _view(control.stack, control.stack_end - control.stack),
        Segment.HEAP: _view(control.heap, control.heap_capacity),
    }


def _send(source: Bytes, to: Bytes) -> int:
    """Have bytes as others are; how many were sent."""
    if np.array_equal(source, to):
        return 0
    starts = np.arange(0, len(source), PIECE)
    sent = 0
    for number in np.flatnonzero(np.logical_or.reduceat(source != to, starts)):
        begin, end = int(starts[number]), min(int(starts[number]) + PIECE, len(source))
        to[begin:end] = source[begin:end]
        sent += end - begin
    return sent
