# SPDX-License-Identifier: Apache-2.0
"""The elements of one array on a device with memory of its own, and their mirror on the host."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ferryvm.isa.object import ARRAY_HEADER_BYTES, LENGTH_OFFSET, PLACE_OFFSET
from ferryvm.isa.type import WORD_BYTES
from ferryvm.residency import DeviceElements
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import CHUNK, zeros
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.left_elements import LeftElements
from ferryvm_backends.opencl.segment import Segment, view


def in_chunks(size: int) -> int:
    """Bytes of the whole chunks that so many bytes are in."""
    return -(-size // CHUNK) * CHUNK


class AccessedArrays(NamedTuple):
    """All arrays that a kernel accesses, which refer to no other objects."""

    elements: frozenset[int]
    """The host's addresses of their elements."""
    objects: frozenset[int]
    """References to them."""


def object_ranges(base: int, space: int, references: Iterable[int]) -> list[tuple[int, int]]:
    """Ranges of the object space, in whole chunks, with these arrays: headers, and elements that
    are not outside. `base`: the host's address of the space; `space`: bytes of it."""
    found, last = [], 0
    for reference in sorted(references):
        place, length = (
            ctypes.c_uint64.from_address(base + reference + offset).value
            for offset in (PLACE_OFFSET, LENGTH_OFFSET)
        )
        size = ARRAY_HEADER_BYTES + WORD_BYTES * length * (place < space)
        first = max(reference // CHUNK * CHUNK, last)
        last = min(in_chunks(reference + size), space)
        found.append((first, last))
    return found


class ArrayCopy(Segment):
    """The elements of one array on the device."""

    def __init__(
        self,
        session: Session,
        number: int,
        address: int,
        size: int,
        place: BufferOffset,
        is_pinned: bool,
    ) -> None:
        """`number`: of the copy. The device has zeros there. `is_pinned`: the mirror is, where that
        serves."""
        length = in_chunks(size)
        mirror = functools.partial(zeros, session, length)
        if not is_pinned:
            mirror = functools.partial(np.zeros, length, np.uint8)
        super().__init__(session, view(address, size), place, mirror, ctypes.c_uint64())
        self.number, self.address, self.size = number, address, size
        self.start = 0
        """Bytes from the start of the arena."""
        self._taken: weakref.ref[DeviceElements] | None = None
        """The elements that it has got on the device."""

    @property
    def is_of_host(self) -> bool:
        """False while the elements there are those of a `DeviceElements`, not of the host."""
        return self._taken is None or self._taken() is None

    def push(self, start: int, end: int) -> int:
        self._taken = None
        return super().push(start, end)

    def overwrite(self) -> None:
        """Expect a kernel that stores all elements."""
        self._taken = None

    def has_taken(self, elements: DeviceElements) -> None:
        """Note the elements that the device has there, of which the mirror knows nothing."""
        self.forget(0)
        self._taken = weakref.ref(elements)

    def take(self, elements: DeviceElements) -> None:
        """Copy elements on the device. Raises cl.Error."""
        assert isinstance(elements, LeftElements)
        if self._taken is None or self._taken() is not elements:
            elements.copy_to(self.place)
            self.has_taken(elements)

    def fits(self, size: int) -> bool:
        """True if it can be that of elements of this size, which are at its address now: an array
        that Python gets loses its padding."""
        if not size or in_chunks(size) != in_chunks(self.size):
            return False
        if size != self.size:
            self.host, self.size = view(self.address, size), size
        return True
