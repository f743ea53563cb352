# SPDX-License-Identifier: Apache-2.0
"""Launches whose last group has fewer members than the others, as work-groups."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.ir.member.size import members_of
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.group import range as group_range
from ferryvm_backends.opencl.group.range import GroupRanges
from ferryvm_backends.opencl.group.slice import GroupSlices

from ...tier import nightly
from .test_items import make_small, on, outcome

PROGRAM = """
(define (reverse! item local tile to xs)
  (array-set! tile local (array-ref xs item))
  (barrier)
  (array-set! to item (array-ref tile (- (array-length tile) 1 local))))
(define (fill i x) (array-set! x i (* i i)))
(define (turn n to xs) (for-each-group (n 4) (reverse! (group-array i64) to xs)))
(define xs (make-array i64 {length}))
(define to (make-array i64 {length}))
(for-each-item {length} (fill xs))
(turn 43 to xs)
(turn 43 xs to)
(turn 40 to xs)
(define sum 0)
(define i 0)
(while (< i 43) (set! sum (+ (* sum 31) (array-ref to i))) (set! i (+ i 1)))
sum
"""
"""The first launch has ten groups of four items, and one of three."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int, int]]:
    """Receives the first and the last group of each range, and the numbers of those that were done
    and suspended."""
    found: list[tuple[int, int, int, int]] = []

    def note(name: str) -> None:
        run = vars(GroupRanges)[name]

        def noted(self: GroupRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
            outcome: RangeOutcome = run(self, machine, first, limit)
            found.append((first, limit, outcome.completed, outcome.suspended))
            return outcome

        monkeypatch.setattr(GroupRanges, name, noted)

    note("run")
    note("run_deferred")
    return found


@pytest.mark.rotate("backend", most=1)
def test_a_last_group_of_fewer_members_is_a_range_of_its_own(
    backend: OpenClBackend, ran: list[tuple[int, int, int, int]]
) -> None:
    program = ferryvm.compile(PROGRAM.format(length=43))
    assert outcome(on(backend).start(program)) == outcome(Engine("threaded").start(program))
    assert (10, 11, 1, 0) in ran
    assert ran[-1] == (0, 10, 10, 0)
    assert all(suspended == 0 for _, _, _, suspended in ran)


@pytest.mark.rotate("backend", most=1)
def test_the_last_group_runs_in_order_after_too_many_sizes(
    backend: OpenClBackend,
    ran: list[tuple[int, int, int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_range, "_MOST_SIZES", 1)
    program = ferryvm.compile(PROGRAM.format(length=43))
    assert outcome(on(backend).start(program)) == outcome(Engine("threaded").start(program))
    assert ran[-1] == (0, 10, 10, 0)
    assert [(limit, suspended) for _, limit, _, suspended in ran[:-1]] == 2 * [(11, 1)]


@pytest.mark.rotate("backend", most=1)
def test_a_trap_in_the_last_group_is_that_of_the_reference(backend: OpenClBackend) -> None:
    program = ferryvm.compile(PROGRAM.format(length=42))
    found = outcome(on(backend).start(program))[:2]
    assert found == outcome(Engine("threaded").start(program))[:2]
    assert "index 42, and the length is 42, in item 2" in str(found[0])


@pytest.mark.parametrize(
    ("where", "name", "faulty"),
    [
        nightly((group_range, "members_of", lambda group, count, size: size)),
        (group_range, "put_off", lambda machine, first, limit: None),
        nightly((GroupSlices, "up_to", lambda self, group: vars(self).update(_even=99) or self)),
    ],
)
def test_a_lost_last_group_is_found(
    where: object, name: str, faulty: object, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, faulty)
    monkeypatch.setattr(group_range, "_MOST_SIZES", 1 if name == "up_to" else 8)
    program = ferryvm.compile(PROGRAM.format(length=50))
    found = outcome(on(OpenClBackend(device=str(device))).start(program))
    assert found[:2] != outcome(Engine("threaded").start(program))[:2]


def test_members_are_what_the_count_leaves_and_the_size_at_most() -> None:
    assert [members_of(group, 43, 4) for group in (0, 9, 10, 11)] == [4, 4, 3, -1]
