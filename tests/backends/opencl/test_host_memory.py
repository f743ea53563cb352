# SPDX-License-Identifier: Apache-2.0
"""Comparisons and copies by several threads are those of one."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest

from ferryvm_backends.opencl import build, host_memory, segment
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.host_memory import CHUNK, changed, copy, in_pieces

SIZE = 9 * CHUNK + 100


@pytest.fixture(autouse=True, params=[1, 3])
def _small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces, by one thread and by three."""
    monkeypatch.setattr(host_memory, "_PIECE", 2 * CHUNK)
    monkeypatch.setattr(host_memory, "cpus", lambda: request.param)


def test_each_changed_chunk_is_found_and_no_other() -> None:
    host, mirror = np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    assert list(changed(host, mirror, 0, SIZE)) == []
    for at in (0, CHUNK - 1, 4 * CHUNK, 5 * CHUNK + 7, SIZE - 1):
        host[at] = 1
    found = [chunk for a, b in changed(host, mirror, 0, SIZE) for chunk in range(a, b, CHUNK)]
    assert found == [0, 4 * CHUNK, 5 * CHUNK, 9 * CHUNK]
    assert [*changed(host, mirror, CHUNK, 4 * CHUNK)] == []


def test_a_copy_has_its_range_and_nothing_else() -> None:
    source, to = np.arange(SIZE, dtype=np.uint8) | 1, np.zeros(SIZE, np.uint8)
    copy(to, source, 5, SIZE - 3)
    assert (to[5:-3] == source[5:-3]).all()
    assert not to[:5].any()
    assert not to[-3:].any()


def test_zeros_are_filled_in_pieces_of_any_alignment(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "_MOST_FILLED", 100)
    opened = build.session(device)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(opened.context, flags, hostbuf=np.ones(1000, np.uint8))
    segment.fill_zeros(opened, buffer, 16, 500)
    segment.fill_zeros(opened, buffer, 701, 150)
    found = np.empty(1000, np.uint8)
    cl.enqueue_copy(opened.queue, found, buffer)
    assert np.flatnonzero(found == 0).tolist() == [*range(16, 516), *range(701, 851)]


def test_an_error_in_a_piece_reaches_the_caller() -> None:
    def fail(first: int, last: int) -> None:
        raise MemoryError(f"{first} {last}")

    with pytest.raises(MemoryError):
        in_pieces(0, SIZE, fail)
