# SPDX-License-Identifier: Apache-2.0
"""Arrays are copied to a device when they have changed there or here, and only then."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ferryvm
from ferryvm import Instance
from ferryvm.backend import ArrayActivity
from ferryvm.engine import Engine
from ferryvm.engine.journal import Outcome
from ferryvm.engine.observer import Observer
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm_backends.opencl import OpenClBackend, object_copy
from ferryvm_backends.opencl.build import Session, session
from ferryvm_backends.opencl.device import find
from ferryvm_backends.opencl.host_memory import CHUNK
from ferryvm_backends.opencl.pool import MEMORY

from .entering import NAME, named

LOOP = """
.local index i64
.local total f64
:next
    local.get index
    local.get 0
    array.length
    i64.ge_u
    jump_if done
    {body}
    local.get index
    i64.const {step}
    i64.add
    local.set index
    jump next
:done
    local.get total
    return
"""
ADD = """
    local.get total
    {value}
    f64.add
    local.set total
"""
DOT = ADD.format(
    value="local.get 0\nlocal.get index\narray.get_f64\n"
    "local.get 1\nlocal.get index\narray.get_f64\nf64.mul"
)
COUNT = ADD.format(value="local.get 0\nlocal.get index\narray.get_u8\nf64.convert_i32_u")
MARK = "local.get 0\nlocal.get index\nf64.const 2\narray.set_f64"
TEXT = f"""
.export dot
.export count
.export mark
.function main
    halt
.function dot (f64[] f64[]) -> (f64) {LOOP.format(body=DOT, step=1)}
.function count (u8[]) -> (f64) {LOOP.format(body=COUNT, step=1)}
.function mark (f64[]) -> (f64) {LOOP.format(body=MARK, step=4096)}
"""
LENGTH = 16 * CHUNK // 8


class Called:
    """An instance whose functions are kernels in copied memory."""

    def __init__(self) -> None:
        options = Options(optimize=1, background=False)
        rules = (Rule(backends=(Choice(NAME, options),)),)
        policy = Policy(rules=rules, profile=Profile(loop_threshold=1, function_threshold=1))
        engine = Engine(policy=policy, registry=named(OpenClBackend(wraps=False)))
        self.observer = Observer()
        self.observer.watch(engine)
        self.instance: Instance = engine.instantiate(ferryvm.assemble(TEXT))

    def rows(self) -> Iterator[ArrayActivity]:
        """The metrics of all arrays, by the kernels that used them."""
        for attempt in (a for placement in self.observer.placements for a in placement.attempts):
            if attempt.code is not None:
                yield from (one for one in attempt.code.activity().arrays if one.name != "objects")

    @property
    def copied(self) -> tuple[int, int]:
        """Bytes of arrays copied to the device, and back."""
        rows = [*self.rows()]
        return sum(one.to_device for one in rows), sum(one.to_host for one in rows)

    def more(self, before: tuple[int, int]) -> tuple[int, int]:
        """These bytes since then."""
        after = self.copied
        return after[0] - before[0], after[1] - before[1]


@pytest.fixture
def called() -> Called:
    return Called()


def numbers() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.arange(1, LENGTH + 1, dtype=np.float64)


def test_a_second_call_with_the_same_arrays_copies_what_python_has_changed(called: Called) -> None:
    one, other = numbers(), numbers()
    assert called.instance.dot(one, other) == one @ other
    assert called.copied == (16 * CHUNK * 2, 0)
    before = called.copied
    assert called.instance.dot(one, other) == one @ other
    assert called.more(before) == (0, 0)
    other[5] = 0.5
    assert called.instance.dot(one, other) == one @ other
    assert called.more(before) == (CHUNK, 0)


def test_chunks_that_a_kernel_stores_into_come_back_and_remain(called: Called) -> None:
    one = numbers()
    expected = one.copy()
    expected[::4096] = 2
    called.instance.mark(one)
    assert (one == expected).all()
    assert called.more((16 * CHUNK, 0)) == (0, 2 * CHUNK)
    before = called.copied
    assert called.instance.dot(one, one) == expected @ expected
    assert called.more(before) == (0, 0)


def test_a_kernel_needs_arrays_of_its_types_only(called: Called) -> None:
    one, small = numbers(), np.ones(2 * CHUNK, np.uint8)
    called.instance.dot(one, one)
    one[:] = 7
    before = called.copied
    assert called.instance.count(small) == 2 * CHUNK
    assert called.more(before) == (2 * CHUNK, 0)
    assert {row.name for row in called.rows()} == {f"f64[{LENGTH}]", f"u8[{2 * CHUNK}]"}


@pytest.mark.nightly
def test_arrays_that_are_collected_leave_their_memory_to_others(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    move = object_copy.ObjectCopy._move

    def noted(self: object_copy.ObjectCopy, space: int, arena: int) -> None:
        sizes.append(arena)
        move(self, space, arena)

    monkeypatch.setattr(object_copy.ObjectCopy, "_move", noted)
    limit = 1 << 20
    for value in range(12):
        one = np.full(limit, value, np.float64)  # eight times as many bytes
        assert called.instance.mark(one) == 0
        assert one[4096] == 2
    assert max(sizes) <= 2 * (64 << 20) + 2 * 8 * limit  # as many as live between collections


def test_a_program_continues_elsewhere_where_the_device_has_no_memory_for_its_arrays(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Session.check_size

    def checked(self: Session, size: int) -> None:
        check(self, size if size < (32 << 20) else 1 << 60)

    monkeypatch.setattr(Session, "check_size", checked)
    one = np.ones(4 << 20, np.float64)
    assert called.instance.dot(one, one) == len(one)
    attempts = [a for placement in called.observer.placements for a in placement.attempts]
    (reason,) = {a.code.lost for a in attempts if a.code is not None and a.code.lost}
    assert "has a part of" in reason
    assert "no buffers of more than" in reason


def test_programs_that_do_not_run_give_up_memory_for_another_one(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, one = session(find("")).pool, numbers()
    while pool.give_up():
        pass
    pool._release(0)
    before = pool.metrics().bytes_held
    assert called.instance.dot(one, one) == one @ one
    monkeypatch.setenv(MEMORY, str(before + (pool.metrics().bytes_held - before) * 3 // 2))
    others = [Called(), Called()]
    for _ in range(2):
        for each in (*others, called):
            assert each.instance.dot(one, one) == one @ one
    for each in (*others, called):
        lost = [
            a for p in each.observer.placements for a in p.attempts if a.outcome is Outcome.LOST
        ]
        assert not lost
    assert called.copied[0] == 3 * 16 * CHUNK  # it was sent anew each time


def test_a_program_that_is_too_large_alone_goes_on_without_the_device(
    called: Called, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = numbers()
    monkeypatch.setenv(MEMORY, "100000")
    assert called.instance.dot(one, one) == one @ one
    assert f"and {MEMORY} allows 100000; the program goes on without it" in caplog.text
