# SPDX-License-Identifier: Apache-2.0
"""Comparisons and copies of large parts of the host's memory, by several threads.

One core reads some 10 GB/s, and memory delivers several times that. The caller takes one piece
after another, as do threads of the process' pool; so a pool that is busy delays nothing.
"""

from __future__ import annotations

import ctypes
import itertools
import queue
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ferryvm.engine.thread_pool import pool
from ferryvm.ir.c.opencl_object import DIRTY_SHIFT
from ferryvm.policy.machine import cpus
from ferryvm.thread import ThreadError
from ferryvm_backends.opencl.build import Session

Bytes = npt.NDArray[np.uint8]
_T = TypeVar("_T")

CHUNK = 1 << DIRTY_SHIFT
"""Bytes that are compared, noted and copied together."""

_PIECE = 512 * CHUNK
"""Bytes that a thread takes at once."""

_LEAST_PINNED = 1 << 20
"""Bytes of the smallest memory that is pinned."""

_memcmp, _memmove = ctypes.CDLL(None).memcmp, ctypes.CDLL(None).memmove
for _function in (_memcmp, _memmove):
    _function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memmove.restype = ctypes.c_void_p


def runs(chunks: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Begin and end of each run of chunks that are set."""
    around = np.zeros(len(chunks) + 2, np.bool_)
    around[1:-1] = chunks
    edges = np.flatnonzero(around[1:] != around[:-1])
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def in_pieces(start: int, end: int, act: Callable[[int, int], _T]) -> list[tuple[int, _T]]:
    """The results of an action on pieces of a range of bytes, with the start of each, in order; the
    action must let go of Python's lock to run on several cores. Raises what it raises."""
    count = -(-(end - start) // _PIECE)
    threads = min(cpus(), count) - 1 if count > 1 else 0
    if threads > 0:
        try:
            pool().start(threads)
        except ThreadError:
            threads = 0
    if threads <= 0:
        pieces = ((at, min(at + _PIECE, end)) for at in range(start, end, _PIECE))
        return [(first, act(first, last)) for first, last in pieces]
    numbers, done = itertools.count(), queue.SimpleQueue[tuple[int, Any, BaseException | None]]()

    def work() -> None:
        while (number := next(numbers)) < count:
            first = start + number * _PIECE
            try:
                done.put((first, act(first, min(first + _PIECE, end)), None))
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                done.put((first, None, error))

    pool().submit([work] * threads)
    work()
    found = [done.get() for _ in range(count)]
    for _, _, error in found:
        if error is not None:
            raise error
    return sorted(((first, result) for first, result, _ in found), key=lambda each: each[0])


def is_equal(host: Bytes, mirror: Bytes, start: int, end: int) -> bool:
    """True if a range is so small that one thread compares it, and is equal on both sides."""
    if end - start > _PIECE:
        return False
    return not _memcmp(host.ctypes.data + start, mirror.ctypes.data + start, end - start)


def changed(host: Bytes, mirror: Bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges of chunks that differ, in ascending order; `start` is the start of a chunk."""
    one, two = host.ctypes.data, mirror.ctypes.data

    def compare(first: int, last: int) -> list[tuple[int, int]]:
        if not _memcmp(one + first, two + first, last - first):
            return []
        whole = first + (last - first) // CHUNK * CHUNK
        differs = _words(host[first:whole]) != _words(mirror[first:whole])
        found = [(first + a * CHUNK, first + b * CHUNK) for a, b in runs(differs.any(axis=1))]
        if whole < last and _memcmp(one + whole, two + whole, last - whole):
            found.append((whole, last))
        return found

    for _, ranges in in_pieces(start, end, compare):
        yield from ranges


def _words(bytes_: Bytes) -> npt.NDArray[np.uint64]:
    """The words of whole chunks, a row for each chunk."""
    return bytes_.view(np.uint64).reshape(-1, CHUNK // 8)


def copy(to: Bytes, source: Bytes, start: int, end: int) -> None:
    """Copy a range of bytes from one to the same place of the other."""
    one, two = to.ctypes.data, source.ctypes.data
    if end - start <= _PIECE:
        _memmove(one + start, two + start, end - start)
        return
    in_pieces(start, end, lambda first, last: _memmove(one + first, two + first, last - first))


def zeros(session: Session, size: int) -> Bytes:
    """Memory of zeros that a device of the session copies fast: pinned, if it is large and the
    device has memory of its own."""
    if session.device.is_cpu or size < _LEAST_PINNED:
        return np.zeros(size, np.uint8)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    use: Any = cl.map_flags.READ | cl.map_flags.WRITE
    try:
        buffer = cl.Buffer(session.context, flags, size)
        mapped: Any = cl.enqueue_map_buffer(
            session.queue, buffer, use, 0, (size,), np.dtype(np.uint8)
        )
    except cl.Error:  # the system limits pinned memory
        return np.zeros(size, np.uint8)
    found: Bytes = mapped[0]
    found[:] = 0
    return found
