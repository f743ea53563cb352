# SPDX-License-Identifier: Apache-2.0
"""The memory that a machine's objects have on a device: one buffer, and its tables.

    │ dirty marks │ object space │ arena: copies of elements outside of the space │

It grows when more is needed, with what it has; `ferryvm_backends.opencl.object_copy` says what that
is.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.machine.object_layout import first_fit
from ferryvm.machine.object_memory import OutsideArray
from ferryvm_backends.opencl.array_copy import ArrayCopy, in_chunks
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import CHUNK, zeros
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.pool import Area
from ferryvm_backends.opencl.segment import Segment, area_of_zeros, fill_zeros, view

ADDRESSES = (1 << 64) - 1
"""Places are differences of addresses, modulo one more."""


class ObjectArena:
    """The object space and copies of arrays on a device."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numbers = itertools.count(1)
        self._area: Area | None = None
        self._tables: Area | None = None
        self.rows = b""
        """The content of the tables; the same object while nothing else is written there."""
        self.layout = 0
        """Changes when a copy gets or loses its place."""
        self.version = 0
        """Changes with each buffer: a later one may have the handle of an earlier one."""
        self._space_bytes = self._arena_bytes = 0
        self._space: Segment | None = None
        self._base = 0
        """The host's address of the space."""
        self._copies: dict[int, ArrayCopy] = {}
        """By the host's address of the elements."""

    def has(self, address: int) -> bool:
        """True if the device has a copy of the elements at this address of the host."""
        is_inside = self._space is not None and 0 <= address - self._base < self._space_bytes
        return is_inside or address in self._copies

    @property
    def space(self) -> Segment:
        """The object space, once something has been pushed."""
        assert self._space is not None
        return self._space

    def copy_of(self, address: int) -> ArrayCopy | None:
        """The copy of the elements at this address of the host that is their own, if they have
        one."""
        return self._copies.get(address)

    def is_apart(self, address: int) -> bool:
        """True if the elements at this address of the host have a copy of their own."""
        return address in self._copies

    @property
    def places(self) -> tuple[BufferOffset, BufferOffset]:
        """The start of the space, and of the tables."""
        return (
            BufferOffset(self._buffer, self._marks),
            BufferOffset(None if self._tables is None else self._tables.buffer),
        )

    @property
    def _buffer(self) -> Any:
        """The buffer of the area; None if there is none."""
        return None if self._area is None else self._area.buffer

    @property
    def _marks(self) -> int:
        """Bytes of the dirty marks, a byte for each chunk."""
        return in_chunks((self._space_bytes + self._arena_bytes) // CHUNK)

    def device_place(self, place: int) -> int:
        """The device's place for one that a header has on the host; 0 if nothing is there."""
        if place < self._space_bytes:
            return place
        copy = self._copies.get((place + self._base) & ADDRESSES)
        return 0 if copy is None else self._space_bytes + copy.start

    # --- growth -------------------------------------------------------------------------------

    def _free(self, arrays: Sequence[OutsideArray]) -> list[int] | None:
        """Starts in the arena for copies of these; None if there is no memory for all."""
        taken = ((copy.start, copy.start + in_chunks(copy.size)) for copy in self._copies.values())
        sizes = (in_chunks(one.size) for one in arrays)
        return first_fit(taken, sizes, 0, self._arena_bytes)

    def _add(self, arrays: Sequence[OutsideArray], starts: list[int], *, is_pinned: bool) -> None:
        """Make copies of zeros. `is_pinned`: they are expected to come to the host."""
        self.layout += 1
        for one, start in zip(arrays, starts, strict=True):
            place = self._in_arena(start)
            number = next(self._numbers)
            copy = ArrayCopy(self._session, number, one.address, one.size, place, is_pinned)
            copy.start = start
            fill_zeros(self._session, self._buffer, place.offset, in_chunks(one.size))
            self._copies[one.address] = copy

    def _in_arena(self, start: int) -> BufferOffset:
        return BufferOffset(self._buffer, self._marks + self._space_bytes + start)

    def _move(self, space: int, arena: int) -> None:
        """Take a larger buffer, and what the present one has. Raises BackendError, cl.Error."""
        before = self._area, self._marks, self._space_bytes
        sizes = self._space_bytes, self._arena_bytes
        self._space_bytes, self._arena_bytes = space, arena
        try:
            self._area = area_of_zeros(self._session, self._marks + space + arena)
            self.version += 1
        except (BackendError, cl.Error):
            self._space_bytes, self._arena_bytes = sizes
            raise
        old, marks, old_space = before
        if old is not None:
            for size, start, to in (
                (old_space, marks, self._marks),
                (sizes[1], marks + old_space, self._marks + space),
            ):
                if size:
                    cl.enqueue_copy(
                        self._session.queue,
                        self._buffer,
                        old.buffer,
                        byte_count=size,
                        src_offset=start,
                        dst_offset=to,
                    )
            self._session.queue.finish()
            old.release()
        mirror = zeros(self._session, space)
        if self._space is not None:
            mirror[:old_space] = self._space.mirror
        place = BufferOffset(self._buffer, self._marks)
        self._space = Segment(
            self._session, view(self._base, space), place, lambda: mirror, ctypes.c_uint64()
        )
        for copy in self._copies.values():
            copy.place = self._in_arena(copy.start)
        self.layout += 1
