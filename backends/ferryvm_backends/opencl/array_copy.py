# SPDX-License-Identifier: Apache-2.0
"""The elements of one array on a device with memory of its own, and their mirror on the host."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
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
        self._taken: weakref.ref[LeftElements] | None = None
        """The elements that it has got on the device."""
        self._taken_version = 0
        """Their version then."""

    @property
    def is_of_host(self) -> bool:
        """False while the elements there are those of a `DeviceElements`, not of the host."""
        return self._taken is None or self._taken() is None

    def push(self, start: int, end: int) -> int:
        self.make_free()
        return super().push(start, end)

    def make_free(self) -> None:
        """Expect other elements: those that have their home here go elsewhere. Raises BackendError,
        cl.Error."""
        taken = self.taken
        if taken is not None and taken.home is self:
            taken.leave_home()
        self._taken = None

    @property
    def taken(self) -> LeftElements | None:
        """The elements that it has got on the device, if somebody has them still."""
        return None if self._taken is None else self._taken()

    def has_taken(self, elements: LeftElements) -> None:
        """Note the elements that the device has there, of which the mirror knows nothing."""
        self.forget(0)
        self._taken, self._taken_version = weakref.ref(elements), elements.version

    def has(self, elements: LeftElements) -> bool:
        """True if the device has these elements there, as they are now."""
        if elements.home is self:
            return True
        return self.taken is elements and self._taken_version == elements.version

    def take(self, elements: DeviceElements) -> None:
        """Copy elements on the device, if it does not have them. Raises BackendError, cl.Error."""
        assert isinstance(elements, LeftElements)
        if not self.has(elements):
            self.make_free()
            elements.copy_to(self.place)
            self.has_taken(elements)

    def takes(self, elements: DeviceElements | None) -> bool:
        """As `take`, for a kernel that may fail: the elements do not have their home here. False if
        they are on the host alone. Raises BackendError, cl.Error."""
        if elements is None:
            return False
        assert isinstance(elements, LeftElements)
        if elements.home is self:
            elements.leave_home()
        if not elements.is_there:  # given up for other memory
            elements.fetch()
            return False
        self.take(elements)
        return True

    def close(self) -> None:
        """Let elements that have their home here go elsewhere: the copy is there no longer."""
        taken = self.taken
        try:
            self.make_free()
        except (BackendError, cl.Error):  # the device has failed
            if taken is not None:
                taken.lose()

    def fits(self, size: int) -> bool:
        """True if it can be that of elements of this size, which are at its address now: an array
        that Python gets loses its padding."""
        if not size or in_chunks(size) != in_chunks(self.size):
            return False
        if size != self.size:
            self.host, self.size = view(self.address, size), size
        return True
