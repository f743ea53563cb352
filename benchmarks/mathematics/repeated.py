# SPDX-License-Identifier: Apache-2.0
"""Long arrays that stay in the second-level cache: one chunk of memory, mapped again and again.

    array    │ chunk │ chunk │ chunk │ …        addresses
                 └───────┴───────┴──> 128 KiB of memory

So one call goes through a long array, as a launch should, and memory is no part of its time.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref

import numpy

from benchmarks.benchmark import BenchmarkError

Array = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.generic]]

CHUNK_BYTES = 1 << 17
"""Of the memory of one array: operands and results are in a cache of 512 KiB."""

_FIXED = 0x10
"""MAP_FIXED of Linux."""


def repeated(chunk: Array, times: int) -> Array:
    """An array whose elements are those of a chunk of `CHUNK_BYTES`, so many times. They share
    their memory."""
    if chunk.nbytes != CHUNK_BYTES:
        raise BenchmarkError(f"a chunk has {CHUNK_BYTES} bytes, this one {chunk.nbytes}")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    whole, protection = CHUNK_BYTES * times, mmap.PROT_READ | mmap.PROT_WRITE

    def map_(address: int | None, length: int, flags: int, file: int) -> int:
        where, nothing = ctypes.c_void_p(address), ctypes.c_long(0)
        found = libc.mmap(where, ctypes.c_size_t(length), protection, flags, file, nothing)
        if found == ctypes.c_void_p(-1).value:
            raise BenchmarkError(f"mmap: {os.strerror(ctypes.get_errno())}")
        return int(found)

    start = map_(None, whole, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
    file = os.memfd_create("chunk")
    try:
        os.ftruncate(file, CHUNK_BYTES)
        for offset in range(0, whole, CHUNK_BYTES):
            map_(start + offset, CHUNK_BYTES, mmap.MAP_SHARED | _FIXED, file)
    finally:
        os.close(file)
    memory = (ctypes.c_byte * whole).from_address(start)
    array: Array = numpy.frombuffer(memoryview(memory), chunk.dtype)
    weakref.finalize(memory, libc.munmap, ctypes.c_void_p(start), ctypes.c_size_t(whole))
    array[: chunk.size] = chunk
    return array
