# SPDX-License-Identifier: Apache-2.0
"""The memory that programs take on a device, and memory that can be given up for other.

    FERRYVM_OPENCL_MEMORY      the largest number of bytes that copies of programs' memory may take

    pool ── chunk, a buffer of the device:  │ area │ area │ gap │ area │ gap     │
        └── chunk of one area that is larger

Areas are taken from chunks of some size, which a device provides seldom: to allocate and to release
takes a driver longer than a kernel of a million items does. A chunk without areas is released, but
for some that are likely to be wanted again.

Where there is no memory for an area, chunks without areas are released first. Then the copies of
programs that do not run are given up, the one that was used longest ago first, until there is
memory. Their content is on the host, so it is only sent again.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm_backends.opencl.chunk import Chunk
from ferryvm_backends.opencl.report import MemoryMetrics

MEMORY = "FERRYVM_OPENCL_MEMORY"

CHUNK_BYTES = 64 << 20
"""Bytes of a chunk, where the device has them and no larger area is wanted."""
_SHARE = 64
"""Chunks have at most one part in so many of the device's memory, and so have all that are
spare."""


class Area:
    """A range of a device's memory that is nobody else's."""

    def __init__(self, pool: MemoryPool, buffer: Any, chunk: _Chunk, start: int, size: int) -> None:
        self.size = size
        """Bytes."""
        self.buffer = buffer
        """It as a buffer of OpenCL."""
        self._pool: MemoryPool | None = pool
        self._place = chunk, start, size

    def release(self) -> None:
        """Give it back. Commands that were enqueued before may still use it."""
        pool, self._pool = self._pool, None
        if pool is not None:
            self.buffer.release()
            pool.returned.append(self._place)
            pool.settle()

    def __del__(self) -> None:
        # Perhaps while this thread changes the pool: it settles this later.
        if getattr(self, "_pool", None) is not None:
            assert self._pool is not None
            self._pool.returned.append(self._place)


class _Chunk(Chunk):
    """A chunk with its memory."""

    def __init__(self, queue: Any, size: int, alignment: int) -> None:
        """Raises cl.Error."""
        super().__init__(size, alignment)
        self.buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size)
        # NVIDIA's driver (580) allocates at the first use. If that is one of an area, each copy to
        # an area takes as long as one from the host.
        cl.enqueue_fill_buffer(queue, self.buffer, np.zeros(1, np.uint8), 0, 1)


class MemoryPool:
    """The memory of a device, in bytes."""

    def __init__(self, queue: Any, memory: int, alignment: int) -> None:
        """`queue`: that all commands go to; `memory`: bytes of the device; `alignment`: bytes of
        which starts of buffers within a buffer are multiples."""
        self._queue, self._alignment = queue, max(alignment, 256)
        self._share = memory // _SHARE
        self._chunks: list[_Chunk] = []
        self._lock = threading.Lock()
        self._used = 0
        self.returned: deque[tuple[_Chunk, int, int]] = deque()
        """Areas that nobody has any more, and that are not yet free."""
        self.give_up: Callable[[], bool] = bool
        """Gives up the memory of a program that does not run; False if there is none."""

    def metrics(self) -> MemoryMetrics:
        """The memory that there is now. Of free memory the fragmentation is 0 if one area could
        have all of it, and near 1 if it is in many small pieces."""
        self.settle()
        with self._lock:
            used, held = self._used, self._bytes
            largest = max((each.largest_gap for each in self._chunks), default=0)
        return MemoryMetrics(used, held, 1 - largest / (held - used) if held > used else 0.0)

    def take(self, size: int) -> Area:
        """An area of so many bytes, for reading and writing; its content is not known. Raises
        BackendError, cl.Error if there is no memory for it when all that can be given up is."""
        while True:
            self.settle()
            with self._lock:
                found = self._found(size)
            if found is not None:
                return found
            try:
                with self._lock:
                    return self._added(size)
            except (BackendError, cl.Error):
                if not self.give_up():
                    raise

    def settle(self) -> None:
        """Free the areas that nobody has any more, if no other thread changes the pool now."""
        while self.returned and self._lock.acquire(blocking=False):
            try:
                while self.returned:
                    chunk, start, size = self.returned.popleft()
                    chunk.give_back(start, size)
                    self._used -= size
                self._release(self._share)
            finally:
                self._lock.release()

    # --- with the lock ------------------------------------------------------------------------

    def _found(self, size: int) -> Area | None:
        """An area of a chunk that there is."""
        limit = _limit()
        if limit is not None and self._bytes > limit:
            return None
        for chunk in self._chunks:
            start = chunk.take(size)
            if start is not None:
                return self._area(chunk, start, size)
        return None

    def _added(self, size: int) -> Area:
        """An area of a new chunk. Raises BackendError, cl.Error."""
        try:
            chunk = self._chunk(max(min(CHUNK_BYTES, self._share), size))
        except (BackendError, cl.Error):
            self._release(0)
            chunk = self._chunk(size)
        self._chunks.append(chunk)
        start = chunk.take(size)
        assert start is not None
        return self._area(chunk, start, size)

    def _chunk(self, size: int) -> _Chunk:
        limit = _limit()
        if limit is not None and self._bytes + size > limit:
            raise BackendError(
                f"opencl: {size} bytes more than the {self._bytes} in use are needed, and {MEMORY} "
                f"allows {limit}"
            )
        return _Chunk(self._queue, size, self._alignment)

    def _area(self, chunk: _Chunk, start: int, size: int) -> Area:
        try:
            buffer = chunk.buffer.get_sub_region(start, size)
        except cl.Error:
            chunk.give_back(start, size)
            raise
        self._used += size
        return Area(self, buffer, chunk, start, size)

    @property
    def _bytes(self) -> int:
        return sum(each.size for each in self._chunks)

    def _release(self, spare: int) -> None:
        """Release chunks without areas, the last ones first, until they have at most `spare`
        bytes."""
        empty = [each for each in self._chunks if each.is_empty]
        over = sum(each.size for each in empty) - spare
        for chunk in reversed(empty):
            if over <= 0:
                return
            over -= chunk.size
            self._chunks.remove(chunk)
            chunk.buffer.release()


def _limit() -> int | None:
    """The bytes that the environment allows; None for no limit. Raises BackendError."""
    text = os.environ.get(MEMORY, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise BackendError(f"opencl: {MEMORY} is a number of bytes, found {text!r}")
    return int(text)
