# SPDX-License-Identifier: Apache-2.0
"""Runs of bytes that are not zero: whole, canonical, and found without touching what is
untouched."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferryvm.machine import resident
from ferryvm.machine.memory import Limits, Memory
from ferryvm.machine.sparse import GRANULE, Sparse, runs

SIZE = 5 * GRANULE + 100
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a loaded machine nothing is wrong if data or a test takes long."""

PLACES = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, 255)), max_size=6)


def spread(places: list[tuple[int, int]], size: int = SIZE) -> bytes:
    content = bytearray(size)
    for at, value in places:
        content[at] = value
    return bytes(content)


def dense(sparse: Sparse) -> bytes:
    content = bytearray(sparse.size)
    for at, part in sparse.parts:
        content[at : at + len(part)] = part
    return bytes(content)


@UNTIMED
@given(PLACES, st.integers(0, SIZE), st.integers(0, SIZE))
def test_runs_hold_every_byte_that_is_not_zero(
    places: list[tuple[int, int]], start: int, end: int
) -> None:
    content = spread(places)
    sparse = Sparse.of(content)
    assert dense(sparse) == content
    assert sparse.cut(start, end) == content[start : max(start, end)]


@UNTIMED
@given(PLACES, PLACES)
def test_words_that_differ_are_those_of_the_bytes(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    a, b = spread(left), spread(right)
    expected = [at // 8 for at in range(0, SIZE, 8) if a[at : at + 8] != b[at : at + 8]]
    assert list(Sparse.of(a).unequal(Sparse.of(b))) == expected
    assert (Sparse.of(a) == Sparse.of(b)) is (a == b)


@UNTIMED
@given(PLACES, st.sets(st.integers(0, SIZE), max_size=6))
def test_runs_do_not_depend_on_how_memory_was_touched(
    places: list[tuple[int, int]], cuts: set[int]
) -> None:
    content = memoryview(spread(places))
    edges = sorted({0, SIZE, *cuts})
    # All that is not zero lies in the ranges; some of them may be zero, and they may meet.
    ranges = [(a, b) for a, b in itertools.pairwise(edges) if any(content[a:b])]
    assert list(runs(content, ranges)) == list(runs(content, [(0, SIZE)]))


def test_run_goes_on_over_the_parts_that_are_looked_at_at_a_time() -> None:
    size = (1 << 23) + 8
    assert list(runs(memoryview(b"\1" * size), [(0, size)])) == [(0, size)]


linux = pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="Linux tells pages")


@linux
def test_pages_that_nobody_touched_are_not_looked_at() -> None:
    memory = Memory(0, 1 << 30, Limits(heap=1 << 30))
    memory.heap[(1 << 29) + 5] = 1
    base = memory.heap_address
    (found,) = resident.resident_ranges(base, base + (1 << 30))
    assert found[0] <= base + (1 << 29) + 5 < found[1]
    assert found[1] - found[0] <= 1 << 21  # a page, be it a large one
    at = (1 << 29) // GRANULE * GRANULE
    assert list(memory.heap_runs(1 << 30)) == [(at, at + GRANULE)]


@linux
@pytest.mark.parametrize("touch", [(0, 1), (3, 2), (6, 2), (0, 8)])
def test_ranges_end_where_they_are_asked_to(touch: tuple[int, int]) -> None:
    memory = mmap.mmap(-1, 8 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    first, count = touch
    for page in range(first, first + count):
        memory[page * mmap.PAGESIZE] = 1
    wanted = (base + 3, base + 8 * mmap.PAGESIZE - 5)
    low = max(base + first * mmap.PAGESIZE, wanted[0])
    high = min(base + (first + count) * mmap.PAGESIZE, wanted[1])
    assert list(resident.resident_ranges(*wanted)) == [(low, high)]


@pytest.mark.parametrize("content", [None, bytes(1 << 16)])
def test_where_pages_are_not_told_everything_is_looked_at(
    content: bytes | None, tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.path.join(tmp_path, "pagemap")
    if content is not None:  # one that does not know this process
        with open(path, "wb") as file:
            file.write(content)
    monkeypatch.setattr(resident, "_MAP", path)
    memory = Memory(0, 1 << 18, Limits(heap=1 << 18))
    memory.heap[100_000] = 1
    at = 100_000 // GRANULE * GRANULE
    assert list(memory.heap_runs(1 << 18)) == [(at, at + GRANULE)]
