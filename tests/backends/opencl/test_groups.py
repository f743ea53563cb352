# SPDX-License-Identifier: Apache-2.0
"""Groups as work-groups: results, traps and refusals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Options, RefusalError
from ferryvm.ir.c.group import Groups
from ferryvm.ir.c.opencl_group import WORK
from ferryvm.ir.c.opencl_item import ENTRY
from ferryvm.ir.member import form
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm.region.launch import launch_numbers
from ferryvm.region.region import Region, RegionKind
from ferryvm.verify import verify
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.group import has_groups, slice
from ferryvm_backends.opencl.group.direct import DirectRange
from ferryvm_backends.opencl.group.range import GroupRanges
from ferryvm_backends.opencl.group.text import GroupText, group_leaves, group_text
from ferryvm_backends.opencl.item import item_region
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.launch import RangeStatus
from ferryvm_backends.opencl.text import WRAPPED

from .test_items import make_small, on, outcome

REVERSED = """
(define (member l g tile x out)
  (array-set! tile l (array-ref x (+ (* g 8) l)))
  (barrier)
  (array-set! out (+ (* g 8) l) (array-ref tile (- {last} l))))
(define (group g x out) (for-each-item 8 (member g (make-array i64 8) x out)))
"""
"""Members reverse a tile; `last` above 7 traps in the second phase."""

SUMS = """
(define (member l g tile x out)
  (array-set! tile l (array-ref x (+ (* g 8) l)))
  (define stride 4)
  (while (> stride 0)
    (barrier)
    (if (< l stride) (array-set! tile l (+ (array-ref tile l) (array-ref tile (+ l stride)))))
    (set! stride (>> stride 1))))
(define (group g x out)
  (define tile (make-array i64 8))
  (for-each-item 8 (member g tile x out))
  (array-set! out g (array-ref tile 0)))
"""
"""The first member stores the sum of a tile behind the launch."""

SWAPPED = """
(define (member row column g tile x out)
  (define at (+ (* row 2) column))
  (array-set! tile at (array-ref x (+ (* g 4) at)))
  (barrier)
  (array-set! out (+ (* g 4) at) (array-ref tile (+ (* column 2) row))))
(define (group g x out)
  (define tile (make-array i64 (* size size)))
  (for-each-item (size size) (member g tile x out)))
(define size 2)
"""
"""Two dimensions, whose sizes are in a static."""

EXCHANGED = """
(define (step l g now then x out)
  (array-set! now l (array-ref x (+ (* g 8) l)))
  (barrier)
  (define i 0)
  (while (< i {times})
    (array-set! then l (+ (array-ref now (% (+ l 3) 8)) (* 5 (array-ref now l))))
    (barrier)
    (let ((other now)) (set! now then) (set! then other))
    (set! i (+ i 1)))
  (array-set! out (+ (* g 8) l) (+ (array-ref now (- 7 l)) (* 3 (array-ref then l)))))
(define (group g x out)
  (for-each-item 8 (step g (make-array i64 8) (make-array i64 {length}) x out)))
"""
"""Members exchange two arrays after each step: an odd or an even number of times."""

MAIN = """
(define (fill i x) (array-set! x i (* i i)))
(define x (make-array i64 400))
(define out (make-array i64 400))
(for-each-item 400 (fill x))
(for-each-item 40 (group x out))
(define sum 0)
(define i 0)
(while (< i 400) (set! sum (+ (* sum 31) (array-ref out i))) (set! i (+ i 1)))
sum
"""

PROGRAMS = {
    "reversed tiles": REVERSED.format(last=7),
    "a trap in the second phase": REVERSED.format(last="(+ 7 (>> g 5))"),
    "sums": SUMS,
    "two dimensions": SWAPPED,
    "exchanged arrays": EXCHANGED.format(times="(+ 2 (% (array-length x) 3))", length=8),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    make_small(monkeypatch)
    return


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[RangeOutcome]:
    """Receives the outcomes of ranges of groups."""
    found: list[RangeOutcome] = []

    def note(name: str) -> None:
        run = vars(GroupRanges)[name]

        def noted(self: GroupRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
            found.append(run(self, machine, first, limit))
            return found[-1]

        monkeypatch.setattr(GroupRanges, name, noted)

    note("run")
    note("run_deferred")
    return found


@pytest.mark.rotate("name", "backend", most=2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_end_as_they_do_in_order(
    name: str, backend: OpenClBackend, outcomes: list[RangeOutcome]
) -> None:
    program = ferryvm.compile(PROGRAMS[name] + MAIN)
    found = outcome(on(backend).start(program))
    expected = outcome(Engine("threaded").start(program))
    has_trap = isinstance(expected[0], str)
    assert has_trap == ("trap" in name)
    assert found[: 2 if has_trap else 3] == expected[: 2 if has_trap else 3]
    (ran,) = outcomes
    assert ran.completed >= 25
    assert bool(ran.suspended) == has_trap


def text_of(text: str, device: Device) -> GroupText:
    """The kernel of the groups of a program whose sizes are constants."""
    verified = verify(ferryvm.compile(text + MAIN))
    for pc in launch_numbers(verified):
        region = Region(verified, RegionKind.LAUNCH, verified.owner(pc), pc)
        items = item_region(region, Options())
        if items is not None and has_groups(items):
            assert group_leaves(items, Options()) == ()
            return group_text(items, Options(check=True), device, WRAPPED, {})
    raise AssertionError("no groups")


MEMBER = """
(define (member l g tile x out) {member})
(define (group g x out) (for-each-item {count} (member g (make-array i64 {length}) x out)))
"""

REFUSED = {
    "(if (< l 3) (barrier))": "some members may come to the barrier at .*:2:.* without others",
    "(while (< (array-ref x l) 3) (barrier))": "some members may come to the barrier",
    "(barrier) (print! l)": "its members call",
    "(array-set! (make-array i64 2) 0 1) (barrier)": "its members make objects",
}


@pytest.mark.parametrize("member", REFUSED)
def test_other_groups_are_refused_with_the_reason(member: str, device: Device) -> None:
    with pytest.raises(RefusalError) as caught:
        text_of(MEMBER.format(member=member, count=8, length=8), device)
    assert re.search(f"its groups cannot be work-groups: {REFUSED[member]}", str(caught.value))


@pytest.mark.parametrize("value", ["0", "7"])
def test_new_arrays_may_be_filled_with_zeros_before_members_begin(
    value: str, device: Device
) -> None:
    text = REVERSED.format(last=7).replace("(make-array i64 8)", f"(make-array i64 8 {value})")
    if value == "0":
        assert text_of(text, device).form.members == 8
    else:
        with pytest.raises(RefusalError, match="its items do `fill_elements` before their members"):
            text_of(text, device)


THIRD = """
(define (member l g a b c x out (n i64))
  (array-set! a l (array-ref x (+ (* g 8) l)))
  (array-set! b l g)
  (barrier)
  (define i 0)
  (if (= l 0)
    (while (< i 8)
      (array-set! c (- n i) (+ (array-ref a i) (array-ref x (+ (* i n) g))))
      (set! i (+ i 1))))
  (barrier)
  (array-set! out (+ (* g 8) l) (array-ref c (- 7 l))))
(define (group g x out)
  (define a (make-array i64 8))
  (define b (make-array i64 8))
  (define c (make-array i64 8))
  (for-each-item 8 (member g a b c x out (- (array-length x) 393))))
"""
"""A loop stores into the third array of the group, whose number is that of the place in headers."""


def test_loops_may_store_into_the_third_array_of_a_group(device: Device) -> None:
    assert len(text_of(THIRD, device).form.arrays) == 3


TILED = """
  (define i {first})
  (while (< i {end}) {store} (set! i (+ i {step})))
  (barrier)
  (array-set! out l (array-ref tile (- 31 l)))
"""


@pytest.mark.parametrize(
    ("is_first", "changes"),
    [
        (True, {}),
        (True, {"first": "(* 4 l)", "end": "(+ (* 4 l) 4)", "step": 1}),
        (False, {"end": 31}),
        (False, {"step": 16}),
        (False, {"first": "(+ l 1)"}),
        (False, {"store": "(if (< l (array-ref x l)) (array-set! tile i 1))"}),
        (False, {"store": "(array-set! tile i (+ 1 (array-ref tile (- 31 i))))"}),
    ],
)
def test_arrays_that_loops_fill_are_not_cleared(
    is_first: bool, changes: dict[str, object], device: Device
) -> None:
    parts = {"first": "l", "end": 32, "step": 8, "store": "(array-set! tile i (array-ref x i))"}
    text = TILED.format(**(parts | changes))
    (array,) = text_of(MEMBER.format(member=text, count=8, length=32), device).form.arrays
    assert array.is_stored_first == is_first


def test_exchanged_arrays_are_parts_of_one(device: Device) -> None:
    (array,) = text_of(EXCHANGED.format(times=3, length=8), device).form.arrays
    assert (array.length, array.is_stored_first) == (16, False)


def test_exchanged_arrays_of_different_lengths_are_refused(device: Device) -> None:
    with pytest.raises(RefusalError, match="its members exchange arrays of different lengths"):
        text_of(EXCHANGED.format(times=3, length=9), device)


def test_a_variable_for_another_array_is_refused(device: Device) -> None:
    text = "(define a tile) (if (< g 3) (set! a x)) (barrier) (array-set! out l (array-ref a l))"
    with pytest.raises(RefusalError, match="an array of its groups is passed on"):
        text_of(MEMBER.format(member=text, count=8, length=8), device)


def test_compared_variables_for_arrays_are_refused(device: Device) -> None:
    text = EXCHANGED.replace("(set! i (+ i 1))", "(set! i (+ i (if (eq? now then) 2 1)))")
    with pytest.raises(RefusalError, match="an array of its groups is passed on"):
        text_of(text.format(times=3, length=8), device)


@pytest.mark.nightly
def test_a_lost_offset_of_a_part_is_found(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "add_offsets", lambda body, parts: None)
    program = ferryvm.compile(PROGRAMS["exchanged arrays"] + MAIN)
    found = outcome(on(OpenClBackend(device=str(device))).start(program))
    assert found[:2] != outcome(Engine("threaded").start(program))[:2]


@pytest.mark.nightly
def test_groups_that_a_device_has_no_memory_for_are_refused(device: Device) -> None:
    with pytest.raises(RefusalError, match="the arrays of a group take 80000000 bytes; "):
        text_of(MEMBER.format(member="(barrier)", count=8, length=10_000_000), device)
    with pytest.raises(RefusalError, match="its groups have 1000000 members; "):
        text_of(MEMBER.format(member="(barrier)", count=1_000_000, length=8), device)


def test_checks_of_arguments_are_made_in_front_of_the_first_barrier(device: Device) -> None:
    text = "(define a (+ l 1)) (barrier) (array-set! tile l a) (barrier) (array-set! out l a)"
    source = text_of(MEMBER.format(member=text, count=8, length=8), device).kernel.source
    check, work = source.split("\nstatic uint f")[-1:-3:-1]
    assert "FERRY_TRAP" in check
    assert "barrier" not in check.partition("\n}\n")[0]
    assert "FERRY_TRAP" not in work
    assert work.count("    group_barrier(CLK_LOCAL_MEM_FENCE)") == 2
    assert "failed" not in work


REPEATED = """
(define (go n x out) (for-each-item n (group x out)))
(define x (make-array i64 400))
(define out (make-array i64 400))
(define i 0)
(while (< i 5) (array-set! x (* 8 i) i) (go 40 x out) (set! i (+ i 1)))
(go 40 x (make-array i64 400))
(go 30 x out)
(go 40 x (make-array i64 310))
"""
"""The same launch five times, one into another array, one that is a part of it, and one that traps in
its last groups."""


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels of groups, as they start; in the thread that launches `direct`."""
    found: list[str] = []
    start, run = ItemKernel._start, DirectRange.run

    def noted(self: ItemKernel, *given: Any) -> None:
        if self.group > 1:
            found.append(str(self.handle.function_name))
        start(self, *given)

    def noted_direct(self: DirectRange) -> RangeStatus:
        found.append("direct")
        return run(self)

    monkeypatch.setattr(ItemKernel, "_start", noted)
    monkeypatch.setattr(DirectRange, "run", noted_direct)
    monkeypatch.setattr(slice, "SHORT", math.inf)  # other work of the machine does not count
    return found


@pytest.mark.rotate("backend", most=1)
def test_a_launch_that_is_as_before_is_not_checked_again(
    backend: OpenClBackend, outcomes: list[RangeOutcome], kernels: list[str]
) -> None:
    program = ferryvm.compile(PROGRAMS["reversed tiles"] + REPEATED)
    found = outcome(on(backend).start(program))
    assert found[:2] == outcome(Engine("threaded").start(program))[:2]
    assert "index 310" in str(found[0])
    names = [WORK if name == "direct" else name for name in kernels]
    assert names[2:10] == [ENTRY, WORK, *5 * [WORK], ENTRY]  # the first one began with group 1


def test_short_ranges_of_groups_run_in_the_thread_that_launches(
    device: Device, kernels: list[str]
) -> None:
    program = ferryvm.compile(PROGRAMS["reversed tiles"] + REPEATED)
    found = outcome(on(OpenClBackend(wraps=True, device=str(device))).start(program))
    assert found[:2] == outcome(Engine("threaded").start(program))[:2]
    assert kernels[2:8] == [ENTRY, WORK, WORK, *3 * ["direct"]]  # from the third one of the loop on


def test_a_check_depends_on_lengths_and_on_null_references(device: Device) -> None:
    shape = text_of(PROGRAMS["reversed tiles"], device).shape
    assert shape.checked is not None
    assert {0, 1}.isdisjoint(shape.checked.whole)  # x and out
    assert {0, 1} <= {*shape.checked.zero}
    headers = [shape.headers[n - len(shape.words)] for n in shape.checked.whole]
    assert {word for _, word in headers} >= {1}  # lengths


CHECKED = """
  (define half 4)
  (while (> half 0)
    (if (< l half) (array-set! tile l (array-ref tile (+ l half))))
    (barrier)
    (set! half (>> half 1)))
"""


@pytest.mark.parametrize(("length", "checks"), [(8, 0), (7, 2)])
def test_indices_that_no_member_has_are_not_checked(
    length: int, checks: int, device: Device
) -> None:
    verified = verify(ferryvm.compile(MEMBER.format(member=CHECKED, count=8, length=length) + MAIN))
    (pc,) = [pc for pc in launch_numbers(verified) if verified.owner(pc) == 0][1:]
    items = item_region(Region(verified, RegionKind.LAUNCH, 0, pc), Options())
    assert items is not None
    source = group_text(items, Options(), device, WRAPPED, {}).kernel.source
    assert source.count("failed |= ") == checks
    assert source.count("return FERRY_TRAP;") == 1  # the room on the stack, for one


@pytest.mark.nightly
def test_a_dropped_barrier_is_found(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Groups, "do_barrier", lambda self, operation: None)
    program = ferryvm.compile(PROGRAMS["reversed tiles"] + MAIN)
    found = outcome(on(OpenClBackend(device=str(device))).start(program))
    assert found[:2] != outcome(Engine("threaded").start(program))[:2]
