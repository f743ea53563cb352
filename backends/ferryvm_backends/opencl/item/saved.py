# SPDX-License-Identifier: Apache-2.0
"""Elements of an array as they were before items changed them, for items whose changes may have to
be undone."""

from __future__ import annotations

import abc

import pyopencl as cl

from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import Bytes
from ferryvm_backends.opencl.kernel import BufferOffset


class Saved(abc.ABC):
    """The elements of one array."""

    @abc.abstractmethod
    def restore(self) -> None:
        """Let the array have them again. Raises cl.Error."""

    @abc.abstractmethod
    def release(self) -> None:
        """Give their memory back."""


class SavedOnHost(Saved):
    """Elements in the host's memory."""

    def __init__(self, elements: Bytes) -> None:
        self._elements, self._copy = elements, elements.copy()

    def restore(self) -> None:
        self._elements[:] = self._copy

    def release(self) -> None:
        """The collector does."""


class SavedOnDevice(Saved):
    """Elements in a device's memory."""

    def __init__(self, session: Session, place: BufferOffset, size: int) -> None:
        """Raises BackendError, cl.Error."""
        self._queue, self._place, self._size = session.queue, place, size
        self._area = session.pool.take(size) if size else None
        if self._area is not None:
            cl.enqueue_copy(
                self._queue,
                self._area.buffer,
                place.buffer,
                byte_count=size,
                src_offset=place.offset,
            )

    def restore(self) -> None:
        if self._area is not None:
            cl.enqueue_copy(
                self._queue,
                self._place.buffer,
                self._area.buffer,
                byte_count=self._size,
                dst_offset=self._place.offset,
            )

    def release(self) -> None:
        if self._area is not None:
            self._area.release()
