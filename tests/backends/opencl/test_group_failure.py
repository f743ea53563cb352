# SPDX-License-Identifier: Apache-2.0
"""Groups in which a member fails in the middle: they are undone, and run in order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.item_range import RangeOutcome
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.group.slice import GroupSlices
from ferryvm_backends.opencl.item import saved

from .test_groups import MEMBER, outcomes, text_of
from .test_items import make_small, on

__all__ = ["outcomes"]

Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]

SIZE, GROUPS = 8, 12

PERMUTED = """
(define (member l g tile places counts x out sums)
  (define i (+ (* g 8) l))
  (array-set! out i -1)                                  ; a store in front of what fails
  (atomic-add! sums (& g 3) 1)
  (array-set! tile l (array-ref x i))
  (barrier)
  (define to (array-ref tile (- 7 l)))
  (atomic-add! counts 0 to)
  (array-set! places (% to 8) i)                         ; it fails here if `to` is negative
  (barrier)
  (array-set! out i (+ (array-ref counts 0) (array-ref places l))))
(define (group g x out sums)
  (for-each-item 8 (member g (make-array i64 8) (make-array i64 8) (make-array i64 1) x out sums)))
(define (work (x (array i64)) (out (array i64)) (sums (array i64)))
  (for-each-item 12 (group x out sums)))
"""
"""The members of a group permute its elements; a negative one traps in the second phase."""

FAILING = [(group, member) for group in (1, 5, 11) for member in (0, 3, 7)] + [(-1, 0)]
"""Elements of which one is negative: of the first group that is not run in order before the launch
is hot, of a middle, the last one, likewise in it; of none."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


def arrays(group: int, member: int) -> list[Numbers]:
    """The arguments, with a negative element."""
    x = np.tile(np.arange(SIZE) * 3 % 8, GROUPS)
    if group >= 0:
        x[SIZE * group + member] = -5
    return [x, np.zeros(len(x), np.int64), np.zeros(4, np.int64)]


def ran(engine: Engine, text: str, given: list[Numbers]) -> str:
    """Run `work`; the message of its trap, if any."""
    try:
        engine.instantiate(ferryvm.compile(text)).exports["work"](*given)
    except ferryvm.TrapError as error:
        return str(error)
    return ""


@pytest.mark.rotate("failing", "backend", most=2)
@pytest.mark.parametrize("failing", FAILING, ids=str)
def test_a_group_that_fails_in_the_middle_is_as_in_order(
    failing: tuple[int, int], backend: OpenClBackend, outcomes: list[RangeOutcome]
) -> None:
    found, expected = arrays(*failing), arrays(*failing)
    said = ran(on(backend), PERMUTED, found)
    assert said == ran(Engine("threaded"), PERMUTED, expected)
    assert [each.completed for each in outcomes] == [GROUPS - 1 - (failing[0] >= 0)]
    assert sum(each.suspended for each in outcomes) == (failing[0] >= 0)
    assert bool(said) == (failing[0] >= 0)
    assert is_as_in_order(failing[0], found, expected)


def is_as_in_order(group: int, found: list[Numbers], expected: list[Numbers]) -> bool:
    """True if arrays are as after groups in order up to one that fails; those behind it are done,
    or have not begun."""
    if group < 0:
        return all((one == two).all() for one, two in zip(found, expected, strict=True))
    end = SIZE * (group + 1)
    whole = arrays(-1, 0)
    ran(Engine("threaded"), PERMUTED, whole)
    later = found[1][end:].reshape(-1, SIZE)
    is_done = (later == whole[1][end:].reshape(-1, SIZE)).all(axis=1)
    are_whole = bool((is_done | (later == 0).all(axis=1)).all())
    begun = int((expected[1][end - SIZE : end] != 0).sum())
    counted = SIZE * (group + int(is_done.sum())) + begun
    same = bool((found[1][:end] == expected[1][:end]).all())
    return same and are_whole and int(found[2].sum()) == counted


def test_a_loop_of_members_is_left_where_it_takes_long(device: Device) -> None:
    source = text_of(
        MEMBER.format(
            member="(define a l) (while (!= (array-ref x a) 1) (set! a (array-ref x a)))"
            " (barrier) (array-set! out l a)",
            count=8,
            length=8,
        ),
        device,
    ).kernel.source
    assert "failed |= interrupted(control);" in source
    assert "!failed ? object_load_8" in source


FAULTS = {
    "changes are not undone": (saved.SavedOnHost, "restore", lambda self: None),
    "marks are not seen": (
        GroupSlices,
        "_work",
        lambda self, *given, work=GroupSlices._work: work(self, *given)[:0],
    ),
    "others do not run again": (
        GroupSlices,
        "_work",
        lambda self, kernel, buffers, wanted, left_out, work=GroupSlices._work: (
            [] if left_out else work(self, kernel, buffers, wanted, left_out)
        ),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_code_of_failures_is_found(
    name: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, method, planted = FAULTS[name]
    monkeypatch.setattr(where, method, planted)
    found, expected = arrays(5, 3), arrays(5, 3)
    said = ran(on(OpenClBackend(device=str(device))), PERMUTED, found)
    other = ran(Engine("threaded"), PERMUTED, expected)
    assert not (said == other and is_as_in_order(5, found, expected))


BORDER = """
(define (member l g tile x out n)
  (define i (+ (* g 8) l))
  (array-set! tile l (if (< i n) (array-ref x i) 0))
  (barrier)
  (if (< (+ i 1) n) (array-set! out (+ i 1) (array-ref tile (- 7 l))))
  (if (< i n) (while (< l (array-ref x i)) (set! l (+ l 1)) (array-set! out i (array-ref x (& l 63))))))
(define (group g x out n) (for-each-item 8 (member g (make-array i64 8) x out n)))
(define (work (x (array i64)) (out (array i64)) (n (array i64)))
  (for-each-item 12 (group x out (array-length x))))
"""
"""The last group has members behind the end of the arrays."""


@pytest.mark.nightly
def test_groups_that_only_seem_to_fail_run_by_exact_code(
    device: Device, outcomes: list[RangeOutcome]
) -> None:
    given = [np.arange(90) % 9, np.zeros(90, np.int64), np.zeros(1, np.int64)]
    expected = [each.copy() for each in given]
    assert not ran(on(OpenClBackend(device=str(device))), BORDER, given)
    ran(Engine("threaded"), BORDER, expected)
    assert (given[1] == expected[1]).all()
    assert [each.completed for each in outcomes] == [GROUPS - 1]
