# SPDX-License-Identifier: Apache-2.0
"""Memory of the spaces that objects are copied between."""

from __future__ import annotations

import mmap
import os

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine import object_space
from ferryvm.machine.object_space import FIRST_BUDGET, ObjectSpace
from ferryvm.machine.resident import resident_ranges

linux = pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="Linux tells pages")

LISTS = """
.struct cell next cell
.export work
.function start
    halt
.function list (n i64) -> cell
.local all cell
:next
    local.get all
    struct.new cell
    local.set all
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.ne
    jump_if next
    local.get all
    return
.function work (n i64 times i64)
.local kept cell
    local.get n
    call list
    local.set kept
:again
    i64.const 1000
    call list
    drop
    local.get times
    i64.const 1
    i64.sub
    local.set times
    local.get times
    i64.const 0
    i64.ne
    jump_if again
    local.get kept
    drop
    return
"""
"""Makes a list that stays, and `times` lists of 16 KB."""


def _resident(half: object_space._Half) -> int:
    return sum(
        end - start for start, end in resident_ranges(half.base, half.base + len(half.bytes))
    )


@linux
def test_a_cleared_space_is_zero_and_gives_back_what_it_need_not_hold() -> None:
    half, size = ObjectSpace(64 << 20)._half, 40 << 20
    half._map.madvise(mmap.MADV_NOHUGEPAGE)
    for at in range(0, size, mmap.PAGESIZE):
        half.bytes[at] = 1
    half.clear(8 << 20, 1 << 30)  # what follows has been cleared before
    assert not any(half.bytes[: 8 << 20 : mmap.PAGESIZE])
    for at in range(0, size, mmap.PAGESIZE):
        half.bytes[at] = 1
    half.clear(size, (3 << 20) - 1)
    assert _resident(half) == 3 << 20
    half.clear(0, 0)
    assert _resident(half) == 0
    assert not any(half.bytes[: size : mmap.PAGESIZE])


@linux
def test_both_spaces_hold_less_than_three_times_what_is_alive() -> None:
    instance = Engine("threaded").instantiate(ferryvm.assemble(LISTS))
    space = instance.idle_execution().machine.objects.space
    cells = 500_000
    live = 16 * cells
    instance.exports["work"](cells, 1)
    most = 0
    for _ in range(8):
        instance.exports["work"](cells, 700)
        most = max(most, sum(map(_resident, (space._half, space._other))))
    assert space.metrics.count > 8
    assert 2 * live < most < 3 * live


def test_a_small_space_is_not_collected_before_its_first_budget() -> None:
    instance = Engine("threaded").instantiate(ferryvm.assemble(LISTS))
    space = instance.idle_execution().machine.objects.space
    instance.exports["work"](1, FIRST_BUDGET // 16_000 - 1)
    assert space.metrics.count == 0
    instance.exports["work"](1, 2)
    assert space.metrics.count == 1


@linux
def test_elements_of_a_large_array_have_huge_pages() -> None:
    space, flags = ObjectSpace(1 << 24), dict[int, list[str]]()
    place = space.make_block(1 << 23)
    assert place is not None
    middle, start = (place + space.base + (1 << 22)) % (1 << 64), 0
    with open("/proc/self/smaps", encoding="ascii") as lines:
        for line in lines:
            if line[0] in "0123456789abcdef" and "-" in line.split()[0]:
                start, end = (int(one, 16) for one in line.split()[0].split("-"))
            if line.startswith("VmFlags:") and start <= middle < end:
                flags[start] = line.split()
    space.free_block(place)
    assert ["hg" in found for found in flags.values()] == [True]
