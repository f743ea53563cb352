# SPDX-License-Identifier: Apache-2.0
"""Programs that tests share: a small one that uses everything a state holds, and one to call."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Instance, Program
from ferryvm.engine import launching, slot_run
from ferryvm.engine.parallel import ThreadedRanges

from ..launching import ranges_of
from .calls_program import PROGRAM, ask

RICH = """
.host print_i64 (i64)
.host print_f32 (f32)
.static total i64 = 7
.static small i32 = 0xffffffff
.data 0 "ferry"
.table half twice nothing
.function main
.local v i64
.local x f32
    i64.const 20
    heap.alloc
    local.set v
    local.get v
    i64.const 8
    i64.add
    f32.const -1.5
    f32.store 8
    local.get v
    f32.load 16
    host print_f32
    i32.const 5
    i64.const 3
    call down
    i32.const 1
    call_indirect (i64) -> i64
    host print_i64
    static.get small
    i32.popcnt
    static.set small
    i64.const 9
    heap.alloc
    host print_i64
    call nothing
    static.get total
    halt
.function half (n i64) -> i64
    local.get n
    i64.const 1
    i64.shr_s
    return
.function twice (n i64) -> i64
    local.get n
    local.get n
    i64.add
    return
.function down (n i64) -> i64
    local.get n
    i64.eqz
    jump_if end
    local.get n
    local.get n
    i64.const 1
    i64.sub
    call down
    i64.add
    return
:end
    i64.const 100
    return
.function nothing
.local spare i64
    static.get total
    i64.const 2
    i64.mul
    static.set total
    return
"""


@pytest.fixture(scope="session")
def rich() -> Program:
    return ferryvm.assemble(RICH, "rich.fasm")


@pytest.fixture
def instance(backend: str) -> Instance:
    """An instance of the program of `calls_program`."""
    return ferryvm.Engine(backend).instantiate(PROGRAM, hosts=[ask])


@pytest.fixture
def threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are woken for any work."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    monkeypatch.setattr(slot_run, "LEAST", 1)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The ranges that several threads have run."""
    return ranges_of(ThreadedRanges, monkeypatch)
