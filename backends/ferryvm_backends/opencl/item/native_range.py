# SPDX-License-Identifier: Apache-2.0
"""A prepared range as one native call, for ranges that are short."""

from __future__ import annotations

import ctypes
import functools
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.traffic import Traffic
from ferryvm_backends.opencl.kernel import BufferOffset, library
from ferryvm_backends.opencl.launch import RangePlan, native_function
from ferryvm_backends.opencl.object_copy import Sent
from ferryvm_backends.opencl.segment import Segment

Pair = tuple[int, int, int]
"""Two addresses, and a number of bytes."""

_MOST_SENT = 1 << 16
"""Bytes of a range of which all are sent if one has changed; behind them none may have changed."""

_SIZE, _SENT, _SEND_WORDS = 2, 5, 6
"""Words of an entry of the table of what is sent."""


@functools.cache
def _run() -> Callable[[int], int]:
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)(native_function("run_range"))


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@functools.cache
def _functions() -> dict[str, int]:
    """The addresses of functions that native code calls."""
    opencl, host = library(), ctypes.CDLL(None)
    found = {
        "enqueue": opencl.clEnqueueNDRangeKernel,
        "read": opencl.clEnqueueReadBuffer,
        "write": opencl.clEnqueueWriteBuffer,
        "finish": opencl.clFinish,
        "compare": host.memcmp,
        "move": host.memmove,
    }
    return {name: _address(function) for name, function in found.items()}


class NativeRange:
    """A plan, and all memory that it refers to and that nothing else retains."""

    def __init__(self) -> None:
        self._plan = RangePlan(**_functions())
        self._memory: list[object] = []
        self._checks: list[Pair] = []
        self._sends: list[tuple[int, ...]] = []
        self._sent = array("Q")
        """The table of these."""

    def expect(self, address: int, content: bytes) -> None:
        """Add a comparison of memory with bytes."""
        expected = ctypes.create_string_buffer(content, len(content))
        self._memory.append(expected)
        self._checks.append((address, ctypes.addressof(expected), len(content)))

    def expect_word(self, address: int, value: int) -> None:
        """Add a comparison of a word."""
        self.expect(address, value.to_bytes(WORD_BYTES, "little"))

    def word(self, value: int) -> int:
        """The address of a word with this value."""
        found = ctypes.c_uint64(value)
        self._memory.append(found)
        return ctypes.addressof(found)

    def expect_equal(self, one: int, other: int, size: int) -> None:
        """Add a comparison of two parts of memory."""
        self._checks.append((one, other, size))

    def send(self, place: BufferOffset, first: int, end: int, addresses: tuple[int, int]) -> None:
        """Add a range of bytes that is sent if it differs from its mirror; `addresses`: of both, as
        `place`, where they begin."""
        host, mirror = addresses
        self._sends.append(
            (
                place.buffer.int_ptr,
                place.offset + first,
                end - first,
                host + first,
                mirror + first,
                0,
            )
        )

    def expect_control(self, address: int, fields: Mapping[str, int]) -> None:
        """Add comparisons of fields of a control block."""
        for name, value in fields.items():
            self.expect_word(address + getattr(ControlBlock, name).offset, value)

    def send_part(self, segment: Segment, ranges: Sequence[tuple[int, int]]) -> None:
        """Add ranges of a part that are sent if they differ from the mirror, each as a whole: behind
        their first 64 KiB they may not."""
        if ranges:
            most = max(end for _, end in ranges)
            self.expect_word(segment.valid_at, max(segment.valid, most))
        for first, end in ranges:
            host, mirror = segment.addresses
            known = min(end, first + _MOST_SENT)
            self.send(segment.place, first, known, segment.addresses)
            if known < end:
                self.expect_equal(host + known, mirror + known, end - known)

    def count_sent(self, parts: Iterable[Sent], traffic: Traffic) -> None:
        """Count what the last run has sent of such parts, which are all."""
        is_sent = any(self._sent[_SENT::_SEND_WORDS])
        sent = self.sent() if is_sent else None
        for _, ranges, row in parts:
            pushed = 0 if sent is None else sum(next(sent) for _ in ranges)
            row.entries += 1
            row.unchanged += not pushed
            row.to_device += pushed
            traffic.to_device += pushed

    def sent(self) -> Iterator[int]:
        """The bytes of each range that the last run has sent, 0 if none; they are noted no more."""
        for row in range(0, len(self._sent), _SEND_WORDS):
            yield self._sent[row + _SENT] * self._sent[row + _SIZE]
            self._sent[row + _SENT] = 0

    def complete(
        self,
        host_stack: int,
        queue: Any,
        kernel: Any,
        sizes: tuple[int, ctypes.Array[ctypes.c_size_t], ctypes.Array[ctypes.c_size_t]],
        reads: Sequence[tuple[int, int, int, int]],
        head: tuple[int, int],
        copies: Sequence[Pair],
    ) -> None:
        """Complete the plan. `host_stack`: the address of the lowest address of the thread's stack;
        `sizes`: dimensions, items and group; `reads`: buffer, offset, bytes, address; `head`: address
        and bytes."""
        plan, (dimensions, every, group) = self._plan, sizes
        zeros = ctypes.create_string_buffer(head[1])
        self._memory += [zeros, every, group]
        plan.host_stack, plan.queue, plan.kernel = host_stack, queue.int_ptr, kernel.int_ptr
        plan.dimensions = dimensions
        plan.sizes, plan.group = ctypes.addressof(every), ctypes.addressof(group)
        plan.head, plan.head_bytes = head
        plan.zeros = ctypes.addressof(zeros)
        plan.checks, plan.checks_count = self._table(self._checks)
        self._sent = array("Q", itertools.chain(*self._sends))
        plan.sends, plan.sends_count = self._sent.buffer_info()[0], len(self._sends)
        plan.reads, plan.reads_count = self._table(reads)
        plan.copies, plan.copies_count = self._table(copies)
        self._run = functools.partial(_run(), ctypes.addressof(plan))

    def _table(self, rows: Sequence[Iterable[int]]) -> tuple[int, int]:
        words = array("Q", itertools.chain(*rows))
        self._memory.append(words)
        return words.buffer_info()[0], len(rows)

    def run(self, is_awaited: bool = True) -> int:
        """Run the range, once the plan is complete; a `RangeStatus`. `is_awaited`:
        return when it has ended."""
        self._plan.is_awaited = is_awaited
        return self._run()
