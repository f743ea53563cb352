# SPDX-License-Identifier: Apache-2.0
"""A program's memory: one reservation of address space, three segments, guard pages around.

    control block │ guard │ statics │ guard │ stack (grows up) │ guard │ heap: in use │ usable
                                                                    │ reserved │ guard

The control block comes first, so that a device can map all of it as one buffer. The heap's limit is
reserved at once, so growth moves nothing; pages cost nothing until they are accessed, and those
past the usable part are inaccessible. Verifier and bounds checks keep accesses inside a segment;
the guard pages catch faults of either.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.errors import FerryError
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock

if TYPE_CHECKING:
    from ferryvm.machine.sparse import Run

__all__ = ["AddressSpaceError", "Limits", "Memory"]

PAGE = max(mmap.PAGESIZE, mmap.ALLOCATIONGRANULARITY)
_READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""Python 3.13 is the first that has the constant. On Linux its value is the same for x86 and
ARM."""

RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
"""Flags of address space that takes memory where it is touched. Without the last one Linux counts
reservations that are side by side as one, and refuses to fork a process that has reserved more than
its memory."""

_SMALL_HEAP = 1 << 16
"""Bytes of a heap that takes less time to read than its resident pages take to look up."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


class AddressSpaceError(FerryError):
    """The address space cannot be reserved, or is too small for the program."""


def why_refused(error: Exception) -> str:
    """The reason for which `mmap` refuses a size: of the system, or that no address is so large."""
    text = error.strerror if isinstance(error, OSError) else None
    return text or "more than there are addresses"


SMALLEST_STACK = 1024
"""Smallest stack in bytes: it must hold the initial frame."""


@record.dataclass(frozen=True)
class Limits:
    """Sizes of a program's memory, in bytes."""

    stack: int = 64 << 20
    """The whole stack; a call that would exceed it traps."""
    heap: int = 4 << 30
    """The limit of the heap's growth; an allocation past it traps."""
    first_heap: int = 1 << 20
    """Usable size of the heap at the start."""
    objects: int = 4 << 30
    """Bytes that live objects may take, elements of arrays included; an allocation past it
    traps."""
    is_tight: bool = False
    """For tests: each segment ends directly before its guard page, to 8 bytes, and all of the heap
    is usable from the start. Otherwise each segment begins directly after a guard page."""

    def __post_init__(self) -> None:
        if self.stack < SMALLEST_STACK or min(self.heap, self.first_heap, self.objects) < 0:
            message = f"a stack of {self.stack}, a heap of {self.heap}, objects of {self.objects}"
            raise AddressSpaceError(
                f"{message} bytes: a stack has at least {SMALLEST_STACK}, the others at least 0"
            )


def _pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


class Memory:
    """The three segments: addresses for native code, and views for Python."""

    def __init__(self, statics: int, data_end: int, limits: Limits) -> None:
        """`statics` in words; `data_end`: bytes of the heap that the program's data needs.

        Raises AddressSpaceError if the operating system refuses, or the data does not fit.
        """
        self.limits = limits
        self.heap_limit = limits.heap
        if data_end > self.heap_limit:
            message = f"the program's data needs {data_end} bytes of heap"
            raise AddressSpaceError(f"{message}, the limit is {self.heap_limit}; raise the limit")
        sizes = [_pages(WORD_BYTES * statics), _pages(limits.stack), _pages(limits.heap)]
        first = _pages(ctypes.sizeof(ControlBlock))
        total = first + sum(sizes) + PAGE * (len(sizes) + 1)
        try:
            self._map = mmap.mmap(-1, total, flags=RESERVED, prot=_READ_WRITE)
        except (OSError, OverflowError, ValueError) as error:
            message = f"cannot reserve {total >> 20} MiB of address space ({why_refused(error)})"
            mend = "lower the heap or stack limit (--heap-limit, --stack-limit; Limits)"
            raise AddressSpaceError(f"{message}; {mend}") from None
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.control = ControlBlock.from_buffer(self._map)
        offsets = []
        offset = first
        for size in sizes:
            self._protect(offset, PAGE, 0)
            offsets.append(offset + PAGE)
            offset += PAGE + size
        self._protect(offset, PAGE, 0)
        pages_of_heap = offsets[2]
        if limits.is_tight:
            used = (WORD_BYTES * statics, limits.stack, limits.heap)
            offsets = [
                offset + (size - end) // WORD_BYTES * WORD_BYTES
                for offset, size, end in zip(offsets, sizes, used, strict=True)
            ]
        view = memoryview(self._map)
        block = view[: ctypes.sizeof(ControlBlock)]
        self.control_bytes = block
        """The control block as bytes."""
        self.control_words = block.cast("Q")
        """The control block as words: reading one takes a third of the time of reading a field."""
        self.control_halves = block.cast("I")
        """The control block as half words."""
        statics_at, stack_at, heap_at = offsets
        self._heap_at = heap_at
        self.statics_address = self._base + statics_at
        self.stack_address = self._base + stack_at
        self.heap_address = self._base + heap_at
        self.stack_words = limits.stack // WORD_BYTES
        self.statics = view[statics_at : statics_at + WORD_BYTES * statics].cast("Q")
        """Words of the statics."""
        self.stack = view[stack_at : stack_at + WORD_BYTES * self.stack_words].cast("Q")
        """Words of the whole stack."""
        self.heap = view[heap_at : heap_at + self.heap_limit]
        """Bytes of the heap up to its limit; only the first `heap_capacity` are accessible."""
        if limits.is_tight:
            self.heap_capacity = limits.heap
            return
        self.heap_capacity = 0
        self._protect(pages_of_heap, sizes[2], 0)
        self.grow(max(min(limits.first_heap, limits.heap), data_end))

    def _protect(self, offset: int, size: int, protection: int) -> None:
        if size and _libc.mprotect(self._base + offset, size, protection):
            raise AddressSpaceError(f"cannot protect memory: errno {ctypes.get_errno()}")

    def heap_runs(self, end: int) -> Iterator[Run]:
        """The nonzero runs of the heap up to `end`, at most `heap_capacity`.

        The cost is proportional to the resident pages, not to `end`.
        """
        # This module imports NumPy, which few runs need.
        from ferryvm.machine.resident import resident_ranges
        from ferryvm.machine.sparse import runs

        base = self.heap_address
        ranges = [(base, base + end)] if end <= _SMALL_HEAP else resident_ranges(base, base + end)
        return runs(self.heap[:end], ((start - base, stop - base) for start, stop in ranges))

    def take_heap(self, other: Memory, end: int) -> None:
        """Copy the heap of another memory up to `end`, and zero the rest.

        Both have at least `end` usable bytes.
        """
        self.clear_heap()
        for start, stop in other.heap_runs(end):
            self.heap[start:stop] = other.heap[start:stop]

    def clear_heap(self) -> None:
        """Zero the usable heap."""
        if sys.platform == "linux" and self.heap_capacity and not self.limits.is_tight:
            # Private pages are released, and are zero at their next access.
            self._map.madvise(mmap.MADV_DONTNEED, self._heap_at, _pages(self.heap_capacity))
            return
        for start, end in self.heap_runs(self.heap_capacity):
            ctypes.memset(self.heap_address + start, 0, end - start)

    def grow(self, wanted: int) -> bool:
        """Make at least `wanted` bytes of the heap usable, and at least twice the old number, up to
        the limit; False if `wanted` exceeds the limit."""
        if wanted > self.heap_limit:
            return False
        # Protection has a granularity of pages; the limit is still exact to the byte.
        pages = _pages(max(wanted, 2 * self.heap_capacity))
        capacity = min(pages, self.heap_limit)
        if capacity > self.heap_capacity:
            self._protect(self._heap_at, _pages(capacity), _READ_WRITE)
            self.heap_capacity = capacity
        return True
