# SPDX-License-Identifier: Apache-2.0
"""The size of groups that takes the least time is chosen, and cached."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferryvm import cache
from ferryvm_backends.opencl.item.local_size import DEFAULT, LEAST, LocalSize, slice_items


def measure(one: LocalSize, seconds: dict[int, float]) -> None:
    while not one.is_measured:
        one.begin()
        one.end(seconds[one.size])


def test_the_fastest_size_is_chosen_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path))
    entry = cache.Entry("local", cache.key(["a kernel"]), "opencl")
    one = LocalSize(1024, entry)
    assert one.size == DEFAULT
    measure(one, {64: 3.0, 128: 2.0, 256: 1.0, 512: 4.0})
    assert one.size == 256
    again = LocalSize(1024, entry)
    assert again.is_measured
    assert again.size == 256


def test_no_size_is_larger_than_the_kernel_can_have() -> None:
    one = LocalSize(64)
    assert (one.size, one.is_measured) == (64, True)
    other = LocalSize(200)
    measure(other, {64: 2.0, 128: 1.0})
    assert other.size == 128


def test_a_range_that_is_measured_is_so_as_a_whole() -> None:
    other, slices, left = LocalSize(1024), 0, LEAST + 5
    size = slice_items(left)
    while left > 0:
        other.begin()
        other.end(1.0)
        left, slices = left - size, slices + 1
    assert other.is_measured
    assert size * slices >= LEAST + 5
