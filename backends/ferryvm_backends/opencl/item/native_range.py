# SPDX-License-Identifier: Apache-2.0
"""A prepared range as one native call, for ranges that are short."""

from __future__ import annotations

import ctypes
import functools
import itertools
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ferryvm import float_environment
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.item.kernel import LAUNCH, ItemKernel
from ferryvm_backends.opencl.kernel import BufferOffset, library
from ferryvm_backends.opencl.launch import (
    STAGING_WORDS,
    STATUSES,
    PartWords,
    RangePlan,
    RangeStatus,
    native_function,
)
from ferryvm_backends.opencl.object_copy import Sent
from ferryvm_backends.opencl.segment import Part, Segment

Pair = tuple[int, int, int]
"""Two addresses, and a number of bytes."""

Read = tuple[int, int, int, int]
"""A buffer, an offset in it, a number of bytes, and an address of the host."""

_MOST_SENT = 1 << 16
"""Bytes of a range of which all are sent if one has changed; behind them none may have changed."""

NO_HEAD = 0, 0
"""Address and bytes of the head of the slots where it need not be looked at."""

_SIZE, _TIMES, _SEND_WORDS = 2, 5, 7
"""Words of an entry of the table of what is sent."""


@functools.cache
def _run(name: str) -> Callable[[int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)(native_function(name))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@functools.cache
def _functions() -> dict[str, int]:
    """The addresses of functions that native code calls."""
    opencl, host = library(), ctypes.CDLL(None)
    found = {
        "set_argument": opencl.clSetKernelArg,
        "enqueue": opencl.clEnqueueNDRangeKernel,
        "read": opencl.clEnqueueReadBuffer,
        "write": opencl.clEnqueueWriteBuffer,
        "finish": opencl.clFinish,
        "compare": host.memcmp,
        "move": host.memmove,
        "clock": host.clock_gettime,
    }
    addresses = {name: _address(function) for name, function in found.items()}
    return addresses | float_environment.native_addresses()


class NativeRange:
    """A plan, and all memory that it refers to and that nothing else retains."""

    def __init__(self, session: Session) -> None:
        self._gate, self._queue = session.gate, session.queue
        self._plan = RangePlan(gate=self._gate.address, is_awaited=True, **_functions())
        self.address = ctypes.addressof(self._plan)
        """Of the plan."""
        self._memory: list[object] = []
        self._checks: list[Pair] = []
        self._sends: list[tuple[int, ...]] = []
        self._sent = array("Q")
        """The table of these."""
        self._parts: list[PartWords] = []
        self._counted = 0
        """Runs that `count` has counted."""

    # --- what is to be as it was, and what is sent ----------------------------------------------

    def expect(self, address: int, content: bytes) -> None:
        """Add a comparison of memory with bytes."""
        expected = ctypes.create_string_buffer(content, len(content))
        self._memory.append(expected)
        self._checks.append((address, ctypes.addressof(expected), len(content)))

    def expect_word(self, address: int, value: int) -> None:
        """Add a comparison of a word."""
        self.expect(address, value.to_bytes(WORD_BYTES, "little"))

    def expect_equal(self, one: int, other: int, size: int) -> None:
        """Add a comparison of two parts of memory."""
        self._checks.append((one, other, size))

    def expect_control(self, address: int, fields: Mapping[str, int]) -> None:
        """Add comparisons of fields of a control block."""
        for name, value in fields.items():
            self.expect_word(address + getattr(ControlBlock, name).offset, value)

    def word(self, value: int) -> int:
        """The address of a word with this value."""
        found = ctypes.c_uint64(value)
        self._memory.append(found)
        return ctypes.addressof(found)

    def send(
        self,
        place: BufferOffset,
        first: int,
        end: int,
        addresses: tuple[int, int],
        part: PartWords,
    ) -> None:
        """Add a range of bytes that is sent if it differs from its mirror; `addresses`: of both, as
        `place`, where they begin."""
        host, mirror = addresses
        where = place.buffer.int_ptr, place.offset + first, end - first
        self._sends.append((*where, host + first, mirror + first, 0, ctypes.addressof(part)))

    def send_part(self, segment: Segment, ranges: Sequence[tuple[int, int]]) -> None:
        """Add ranges of a part that are sent if they differ from the mirror, each as a whole: behind
        their first 64 KiB they may not."""
        part = PartWords()
        self._parts.append(part)
        if ranges:
            most = max(end for _, end in ranges)
            self.expect_word(segment.valid_at, max(segment.valid, most))
        for first, end in ranges:
            host, mirror = segment.addresses
            known = min(end, first + _MOST_SENT)
            self.send(segment.place, first, known, segment.addresses, part)
            if known < end:
                self.expect_equal(host + known, mirror + known, end - known)

    # --- the run ------------------------------------------------------------------------------

    def complete(
        self,
        host_stack: int,
        kernel: ItemKernel,
        launch: Any,
        sizes: tuple[int, ctypes.Array[ctypes.c_size_t], ctypes.Array[ctypes.c_size_t]],
        reads: Sequence[Read],
        head: tuple[int, int],
        copies: Sequence[Pair],
        unknown: Sequence[ctypes.c_uint64] = (),
    ) -> None:
        """Complete the plan. `host_stack`: the address of the word with the lowest address of the
        thread's stack; `launch`: the kernel's argument; `sizes`: dimensions, items and group; `head`:
        address and bytes; `unknown`: words that are not 0 while and where nobody knows what the device
        has."""
        plan, (dimensions, every, group) = self._plan, sizes
        zeros = ctypes.create_string_buffer(head[1])
        self._memory += [zeros, every, group, launch]
        plan.host_stack, plan.queue, plan.kernel = (
            host_stack,
            self._queue.int_ptr,
            kernel.handle.int_ptr,
        )
        plan.argument, plan.launch = LAUNCH, ctypes.addressof(launch)
        plan.launch_bytes = ctypes.sizeof(launch)
        plan.dimensions = dimensions
        plan.sizes, plan.group = ctypes.addressof(every), ctypes.addressof(group)
        plan.head, plan.head_bytes = head
        plan.zeros = ctypes.addressof(zeros)
        self._memory += unknown
        for each in unknown:
            self.expect_word(ctypes.addressof(each), 0)
        plan.checks, plan.checks_count = self._table(self._checks)
        self._sent = array("Q", itertools.chain(*self._sends))
        plan.sends, plan.sends_count = self._sent.buffer_info()[0], len(self._sends)
        plan.reads, plan.reads_count = self._table(reads)
        plan.copies, plan.copies_count = self._table(copies)
        plan.unknown, plan.unknown_count = self._table(
            [(ctypes.addressof(each),) for each in unknown]
        )
        self._run, self._run_apart = (
            functools.partial(_run(name), self.address) for name in ("run_range", "run_range_apart")
        )

    def _table(self, rows: Sequence[Iterable[int]]) -> tuple[int, int]:
        words = array("Q", itertools.chain(*rows))
        self._memory.append(words)
        return words.buffer_info()[0], len(rows)

    @property
    def is_armed(self) -> bool:
        """True if nothing that it relies on has changed since `arm`."""
        return self._plan.epoch == self._gate.epoch

    def arm(self) -> int:
        """Let it run in this epoch, which is returned: all that it does not compare is as it was
        planned."""
        self._plan.epoch = found = self._gate.arm()
        return found

    def run(self) -> RangeStatus:
        """Run the range, once the plan is complete and armed."""
        return STATUSES[self._run()]

    def run_apart(self, is_awaited: bool) -> RangeStatus:
        """The same in a thread with the caller's floating-point environment. `is_awaited`: return
        when it has ended."""
        self._plan.is_awaited = is_awaited
        return STATUSES[self._run_apart()]

    @property
    def seconds(self) -> float:
        """Of the last run that was DONE."""
        return 1e-9 * self._plan.nanoseconds

    def count(self, parts: Iterable[Sent], results: Iterable[Part], traffic: Traffic) -> None:
        """Count the copies of the runs since the last call. `parts`: all that are sent, `results`:
        what comes to the host."""
        done, sizes = self._plan.done - self._counted, iter(range(0, len(self._sent), _SEND_WORDS))
        self._counted += done
        for (_, ranges, row), part in zip(parts, self._parts, strict=True):
            pushed = 0
            for at, _ in zip(sizes, ranges, strict=False):
                pushed += self._sent[at + _TIMES] * self._sent[at + _SIZE]
                self._sent[at + _TIMES] = 0
            row.entries += done
            row.unchanged += max(done - part.attempts, 0)
            part.attempts = 0
            row.to_device += pushed
            traffic.to_device += pushed
        for _, start, end, of_array in results:
            traffic.to_host += done * (end - start)
            if of_array is not None:
                of_array.to_host += done * (end - start)


def staged(reads: Sequence[Read], staging: int) -> tuple[list[Read], list[Pair]]:
    """The reads by way of memory that the device writes to directly, with the copies from there, if
    there is room: a driver takes an H200 3 to 20 us more to read into other memory."""
    if sum(size for _, _, size, _ in reads) > WORD_BYTES * STAGING_WORDS:
        return [*reads], []
    found, copies = [], []
    for buffer, place, size, to in reads:
        found.append((buffer, place, size, staging))
        copies.append((to, staging, size))
        staging += -(-size // WORD_BYTES) * WORD_BYTES
    return found, copies
