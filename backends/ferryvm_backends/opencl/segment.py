# SPDX-License-Identifier: Apache-2.0
"""A part of the host's memory with a copy on a device, and a mirror of that copy on the host.

The mirror shows which of the host's bytes have changed since they were copied, by stores of any
engine, of host functions or of Python. The comparison takes as long as all cores need to read the
memory twice.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import ArrayActivity
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import Bytes, changed, copy, is_equal
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.pool import Area

ZERO, _ZEROS = np.zeros(1, np.uint8), np.zeros(16, np.uint8)

_MOST_FILLED = 1 << 30
"""Bytes that are filled by one command: NVIDIA's driver (580) does not come back from filling 3.5
GiB byte by byte."""

Part = tuple["Segment", int, int, ArrayActivity | None]
"""A range of bytes that the device has changed, and the metrics of its array."""


def view(address: int, size: int) -> Bytes:
    """Bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


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
        mirror: Callable[[], Bytes],
        valid: ctypes.c_uint64,
    ) -> None:
        """The device has zeros, and so has the memory that `mirror` makes, at its first use.
        `valid`: bytes for which the mirror equals the device's memory."""
        self._session, self.host, self.place = session, host, place
        self._make_mirror = mirror
        self._valid = valid
        valid.value = len(host)

    @functools.cached_property
    def mirror(self) -> Bytes:
        """The copy on the host of what the device has. What never comes to the host needs none."""
        return self._make_mirror()

    @property
    def addresses(self) -> tuple[int, int]:
        """Of the host's bytes, and of the mirror's."""
        return self.host.ctypes.data, self.mirror.ctypes.data

    @property
    def valid(self) -> int:
        """Bytes for which the mirror equals the device's memory."""
        return self._valid.value

    @property
    def valid_at(self) -> int:
        """The address of that word."""
        return ctypes.addressof(self._valid)

    def push(self, start: int, end: int) -> int:
        """Copy changed bytes of this range to the device; the number of copied bytes."""
        if start >= end:
            return 0
        if end <= self._valid.value and is_equal(self.host, self.mirror, start, end):
            return 0
        pushed = 0
        known = min(max(self._valid.value, start), end)
        ranges = joined(
            [
                *changed(self.host, self.mirror, start, known),
                *([(known, end)] if known < end else ()),
            ]
        )
        if start <= self._valid.value:
            self._valid.value = max(self._valid.value, end)
        for first, last in ranges:
            copy(self.mirror, self.host, first, last)
            event = cl.enqueue_copy(
                self._session.queue,
                self.place.buffer,
                self.mirror[first:last],
                dst_offset=self.place.offset + first,
                is_blocking=False,
            )
            self._session.copies.append(event)
            pushed += last - first
        return pushed

    def forget(self, start: int) -> None:
        """Mark bytes from here on as unknown: a kernel may have changed them without a copy
        back."""
        self._valid.value = min(self._valid.value, start)

    def fetch(self, start: int, end: int) -> None:
        """Begin to copy these bytes of the device to the mirror. Raises cl.Error."""
        if end > start:
            event = cl.enqueue_copy(
                self._session.queue,
                self.mirror[start:end],
                self.place.buffer,
                src_offset=self.place.offset + start,
                is_blocking=False,
            )
            self._session.copies.append(event)

    def accept(self, start: int, end: int) -> None:
        """Bring the machine to the state that the mirror has got."""
        copy(self.host, self.mirror, start, end)

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


def area_of_zeros(session: Session, size: int) -> Area:
    """An area of zeros, for which the memory of programs that do not run is given up if need be.
    Raises BackendError, cl.Error."""
    session.check_size(size)
    area = session.pool.take(size)
    fill_zeros(session, area.buffer, 0, size)
    return area


def fill_zeros(session: Session, buffer: Any, start: int, size: int) -> None:
    """Make a part of a buffer zero, which may be large. Raises cl.Error."""
    end = start + size
    while start < end:
        piece = min(end - start, _MOST_FILLED)
        is_aligned = start % len(_ZEROS) == 0 and piece >= len(_ZEROS)
        pattern = _ZEROS if is_aligned else ZERO
        piece -= piece % len(pattern)
        cl.enqueue_fill_buffer(session.queue, buffer, pattern, start, piece)
        start += piece
