# SPDX-License-Identifier: Apache-2.0
"""Memory of a device: areas of chunks, first fit in the order of addresses."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.backend import BackendError
from ferryvm_backends.opencl import pool as pool_module
from ferryvm_backends.opencl.build import session
from ferryvm_backends.opencl.chunk import Chunk
from ferryvm_backends.opencl.device import find
from ferryvm_backends.opencl.pool import MEMORY, Area, MemoryPool
from ferryvm_backends.opencl.report import MemoryMetrics

from ...tier import examples

SIZES = st.integers(1, 300)


@examples(100)
@given(st.lists(st.tuples(st.booleans(), SIZES), max_size=60), st.integers(1, 1024))
def test_an_area_is_at_the_lowest_start_at_which_nothing_is_taken(
    steps: list[tuple[bool, int]], end: int
) -> None:
    chunk, is_taken, areas = Chunk(end, 8), np.zeros(end, bool), list[tuple[int, int]]()
    for takes, size in steps:
        if takes:
            fits = [at for at in range(0, end - size + 1, 8) if not is_taken[at : at + size].any()]
            start = chunk.take(size)
            assert start == (fits[0] if fits else None)
            if start is not None:
                is_taken[start : start + -(-size // 8) * 8] = True
                areas.append((start, size))
        elif areas:
            start, size = areas.pop(size % len(areas))
            chunk.give_back(start, size)
            is_taken[start : start + -(-size // 8) * 8] = False
        assert chunk.is_empty == (not areas)
        gaps = "".join("x" if each else "." for each in is_taken).split("x")
        assert chunk.largest_gap == max(map(len, gaps))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> MemoryPool:
    """A pool with chunks of 4 KiB and as much to spare."""
    monkeypatch.setattr(pool_module, "_SHARE", 1)
    return MemoryPool(session(find("")).queue, 4096, find("").handle.mem_base_addr_align // 8)


def _fill(area: Area, value: int) -> None:
    cl.enqueue_fill_buffer(session(find("")).queue, area.buffer, np.uint8([value]), 0, area.size)


def _bytes(area: Area) -> set[int]:
    found = np.empty(area.size, np.uint8)
    cl.enqueue_copy(session(find("")).queue, found, area.buffer)
    return set(found.tolist())


def test_areas_of_one_chunk_are_apart(small: MemoryPool) -> None:
    areas = [small.take(size) for size in (100, 1000, 256, 1)]
    assert small.metrics().bytes_held == 4096
    for value, area in enumerate(areas):
        _fill(area, value)
    areas[1].release()
    areas[1] = small.take(500)
    _fill(areas[1], 9)
    assert [_bytes(area) for area in areas] == [{0}, {9}, {2}, {3}]
    assert small.metrics().bytes_used == 857


def test_chunks_without_areas_are_given_back_but_for_some(small: MemoryPool) -> None:
    areas = [small.take(3000) for _ in range(5)] + [small.take(9000)]
    assert small.metrics().bytes_held == 5 * 4096 + 9000
    for area in areas:
        area.release()
    assert small.metrics() == MemoryMetrics(0, 4096, 0.0)


def test_an_area_that_nobody_holds_is_free_again(small: MemoryPool) -> None:
    first = small.take(4096)
    del first
    assert small.metrics().bytes_used == 0
    second = small.take(4096)
    assert small.metrics().bytes_held == second.size


def test_free_memory_in_pieces_is_measured(small: MemoryPool) -> None:
    areas = [small.take(512) for _ in range(8)]
    assert small.metrics().fragmentation == 0.0
    for area in areas[::2]:
        area.release()
    assert small.metrics().fragmentation == 0.75
    areas[1].release()
    assert small.metrics().fragmentation == 0.4


def test_what_is_not_in_use_is_given_up_until_there_is_memory(
    small: MemoryPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEMORY, "10000")
    held = [small.take(4096), small.take(4096)]

    def give_up() -> bool:
        if not held:
            return False
        held.pop(0).release()
        return True

    small.give_up = give_up
    area = small.take(5000)
    assert (len(held), small.metrics().bytes_held) == (1, 4096 + 5000)
    with pytest.raises(BackendError, match=f"9000 bytes more than the 5000 .* {MEMORY} allows"):
        small.take(9000)
    assert (held, small.metrics().bytes_used) == ([], area.size)
