# SPDX-License-Identifier: Apache-2.0
"""The resident pages of this process: those that were ever accessed.

A page of private memory that was never accessed is zero and costs nothing until it is read. Linux
lists pages in /proc/self/pagemap (its documentation: admin-guide/mm/pagemap), 8 bytes for each: bit
63 is set for a page in memory, bit 62 for one that is swapped out or being migrated. `mincore` does
not suffice: it does not report swapped pages.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator

import numpy as np

_MAP = "/proc/self/pagemap"
_ENTRY_BYTES = 8
_THERE = np.uint64(0b11 << 62)
_AT_ONCE = 1 << 17
"""Entries that are read at a time: 1 MiB, which covers 512 MiB with pages of 4 KiB."""

_accessed = ctypes.create_string_buffer(b"accessed")


def resident_ranges(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges of addresses from `start` to `end` that cover every nonzero byte there.

    They are in ascending order and not adjacent. If the system has no page map, the result is one
    range, everything. The memory must be mapped, private and anonymous. Raises OSError if a call
    fails.
    """
    descriptor = _open()
    if descriptor is None:
        yield from [(start, end)] if start < end else []
        return
    try:
        yield from _ranges(descriptor, start, end)
    finally:
        os.close(descriptor)


def _open() -> int | None:
    """A descriptor of the page map; None if there is none, or it is not reliable."""
    try:
        descriptor = os.open(_MAP, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        page = ctypes.addressof(_accessed) // mmap.PAGESIZE
        if _entries(descriptor, page, 1).any():
            return descriptor
    except OSError:  # a sandbox emulates the file, but not its content
        pass
    os.close(descriptor)
    return None


def _entries(descriptor: int, first: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A boolean for each page: True if it is resident."""
    content = os.pread(descriptor, _ENTRY_BYTES * count, _ENTRY_BYTES * first)
    if len(content) != _ENTRY_BYTES * count:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    found: np.ndarray[tuple[int], np.dtype[np.bool_]]
    found = (np.frombuffer(content, np.uint64) & _THERE) != 0
    return found


def _ranges(descriptor: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    range_start: int | None = None
    last = -(-end // mmap.PAGESIZE)
    for first in range(start // mmap.PAGESIZE, last, _AT_ONCE):
        is_there = _entries(descriptor, first, min(_AT_ONCE, last - first))
        edges = np.flatnonzero(np.diff(is_there, prepend=range_start is not None))
        for edge in edges.tolist():
            address = (first + edge) * mmap.PAGESIZE
            if range_start is None:
                range_start = max(address, start)
            else:
                yield range_start, address
                range_start = None
    if range_start is not None:
        yield range_start, end
