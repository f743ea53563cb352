# SPDX-License-Identifier: Apache-2.0
"""A part of the host's memory with a copy on a device, and a mirror of that copy on the host.

The mirror shows which of the host's bytes have changed since they were copied, by stores of any
engine, of host functions or of Python. The comparison takes as long as reading the memory twice.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ferryvm.ir.c.opencl_object import DIRTY_SHIFT
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.kernel import BufferOffset

Bytes = npt.NDArray[np.uint8]

CHUNK = 1 << DIRTY_SHIFT
"""Bytes that are compared, noted and copied together."""
_BLOCK = 256 * CHUNK
"""Bytes that are compared at once."""
ZERO = np.zeros(1, np.uint8)
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def view(address: int, size: int) -> Bytes:
    """Bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def runs(chunks: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of chunks that are set."""
    edges = np.flatnonzero(np.diff(chunks.astype(np.int8), prepend=0, append=0))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges in ascending order, adjacent ones as one: a copy takes time of its own."""
    first = last = 0
    for start, end in ranges:
        if start != last:
            if first < last:
                yield first, last
            first = start
        last = end
    if first < last:
        yield first, last


class Segment:
    """A part of a machine's memory, and its copy on the device."""

    def __init__(
        self,
        session: Session,
        host: Bytes,
        place: BufferOffset,
        mirror: Bytes,
        valid: ctypes.c_uint64,
    ) -> None:
        """The device and `mirror` have zeros. `valid`: bytes for which the mirror equals the
        device's memory."""
        self._session, self.host, self.place, self.mirror = session, host, place, mirror
        self._valid = valid
        valid.value = len(host)

    def push(self, start: int, end: int) -> int:
        """Copy changed bytes of this range to the device; the number of copied bytes."""
        pushed = 0
        known = min(max(self._valid.value, start), end)
        ranges = joined([*self._changed(start, known), *([(known, end)] if known < end else ())])
        if start <= self._valid.value:
            self._valid.value = max(self._valid.value, end)
        for first, last in ranges:
            piece = self.mirror[first:last]
            piece[:] = self.host[first:last]
            cl.enqueue_copy(
                self._session.queue,
                self.place.buffer,
                piece,
                dst_offset=self.place.offset + first,
                is_blocking=False,
            )
            pushed += last - first
        return pushed

    def _changed(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for first in range(start, end, _BLOCK):
            last = min(first + _BLOCK, end)
            mine, known = self.host[first:last], self.mirror[first:last]
            if not _memcmp(mine.ctypes.data, known.ctypes.data, last - first):
                continue
            starts = np.arange(0, last - first, CHUNK)
            differs = np.logical_or.reduceat(mine != known, starts)
            for one, two in runs(differs):
                yield first + one * CHUNK, min(first + two * CHUNK, last)

    def forget(self, start: int) -> None:
        """Mark bytes from here on as unknown: a kernel may have changed them without a copy
        back."""
        self._valid.value = min(self._valid.value, start)

    def fetch(self, start: int, end: int) -> Bytes:
        """These bytes as the device has them. Raises cl.Error."""
        found = np.empty(end - start, np.uint8)
        if end > start:
            cl.enqueue_copy(
                self._session.queue, found, self.place.buffer, src_offset=self.place.offset + start
            )
        return found

    def accept(self, start: int, found: Bytes) -> None:
        """Bring the machine and the mirror to the device's state."""
        end = start + len(found)
        self.mirror[start:end] = self.host[start:end] = found

    def give_to(self, new: Segment) -> None:
        """Initialise a larger part with this one. Raises cl.Error."""
        size = len(self.mirror)
        new.mirror[:size] = self.mirror
        if size:
            cl.enqueue_copy(
                self._session.queue,
                new.place.buffer,
                self.place.buffer,
                byte_count=size,
                src_offset=self.place.offset,
                dst_offset=new.place.offset,
            )


def buffer_of_zeros(session: Session, size: int) -> Any:
    """A buffer of zeros. Raises BackendError, cl.Error."""
    session.check_size(size)
    buffer = cl.Buffer(session.context, cl.mem_flags.READ_WRITE, size)
    cl.enqueue_fill_buffer(session.queue, buffer, ZERO, 0, size)
    return buffer
