# SPDX-License-Identifier: Apache-2.0
"""A launch is split over threads and a device with memory of its own, which brings back what its
own items have stored."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm.engine.launch_place import split
from ferryvm.engine.launch_place.place import LaunchPlace
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.item_range import PlaceActivity, RangeOutcome
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, LaunchPlacing, Options, Policy, Profile, Rule
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.host_memory import CHUNK
from ferryvm_backends.opencl.item.memory import CopiedMemory
from ferryvm_backends.opencl.item.range import ItemRanges

from ...engine.mixing import placements
from .entering import NAME, named
from .test_items import make_small, outcome

COUNT = 5 * CHUNK + 100
TEXT = """
(define (body item (from (array i64)) (to (array i64)) (kind i64))
  (if (= (% (+ item 3) 4000) kind) {exit})
  (array-set! to {place} (+ {addend} (* 3 (array-ref from item)))))
(define (filled (n i64) (factor i64))
  (define xs (make-array i64 n))
  (define i 0)
  (while (< i n) (array-set! xs i (* factor i)) (set! i (+ i 1)))
  xs)
(define (go (n i64) (times i64) (kind i64) (from (array i64)) (to (array i64)))
  (while (> times 0)
    (for-each-item n (body from to kind))
    (array-set! from times times)
    (set! times (- times 1))))
(go 8 2 -1 (filled 9 1) (filled 9 1))
(define from (filled {count} 1))
(define to (filled {count} 2))
(go {count} 3 {kind} from to)
(define sum 0)
(define i 0)
(while (< i {count}) (set! sum (+ (* sum 31) (array-ref to i))) (set! i (+ i 1)))
sum
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr("ferryvm_backends.opencl.item.suspension.SLICE", 1 << 24)
    monkeypatch.setattr(split, "divided", divided)


def divided(
    places: Sequence[LaunchPlace], first: int, limit: int, _in_order: float
) -> list[split.Part]:
    """Two halves, the first one on the last place each second time, whatever these are expected to
    take."""
    middle = min(split._rounded_up((first + limit) // 2, places), limit)
    ends = [(first, middle), (middle, limit)] if len(places) > 1 else [(first, limit)]
    order = [*places] if limit % 2 else [*reversed(places)]
    return [split.Part(p, *part) for p, part in zip(order, ends, strict=True)]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The parts that have run on the device."""
    found: list[tuple[int, int]] = []
    run = ItemRanges.run

    def noted(self: ItemRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        found.append((first, limit))
        return run(self, machine, first, limit)

    monkeypatch.setattr(ItemRanges, "run", noted)
    return found


def program(
    exit_: str = "(print! item)",
    kind: int = -1,
    count: int = COUNT,
    place: str = "item",
    addend: str = "(array-ref to item)",
) -> ferryvm.Program:
    text = TEXT.format(exit=exit_, kind=kind, count=count, place=place, addend=addend)
    return ferryvm.compile(text)


def started(source: ferryvm.Program, backend: OpenClBackend | None = None) -> Execution:
    options = Options(background=False, threads=2)
    choices = Choice("llvm", options), Choice(NAME, options)
    rule = Rule(backends=choices, place=LaunchPlacing.SPLIT)
    policy = Policy(rules=(rule,), profile=Profile(loop_threshold=2))
    return Engine(policy=policy, registry=named(backend or OpenClBackend(wraps=False))).start(
        source
    )


def in_order(source: ferryvm.Program) -> tuple[object, ...]:
    return outcome(Engine("threaded").start(source))


def device(execution: Execution) -> PlaceActivity:
    """The place on the device."""
    launches = [launch for each in placements(execution) for launch in each.launches]
    return next(p for p in launches[-1].places if p.name == NAME)


EXITS = {"none": ("(print! item)", -1), "prints": ("(print! item)", 5)}


@pytest.mark.rotate("exit_", "count")
@pytest.mark.parametrize("count", [COUNT, COUNT + 1])
@pytest.mark.parametrize("exit_", EXITS)
def test_a_split_launch_ends_as_the_loop(
    exit_: str, count: int, parts: list[tuple[int, int]]
) -> None:
    """The device has the first part, or the last one."""
    source = program(*EXITS[exit_], count=count)
    execution = started(source)
    assert outcome(execution) == in_order(source)
    large = [part for part in parts if part[1] > 8]
    assert {limit if count % 2 == 0 else first for first, limit in large} == {3 * CHUNK}
    assert device(execution).items >= CHUNK


@pytest.mark.parametrize("backend", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
def test_a_gpu_runs_the_other_half(backend: OpenClBackend) -> None:
    source = program(*EXITS["prints"])
    execution = started(source, backend)
    assert outcome(execution) == in_order(source)
    assert device(execution).items >= CHUNK


def test_items_that_store_elsewhere_run_on_threads_alone(parts: list[tuple[int, int]]) -> None:
    source = program(place="(^ item 1)", addend="item")
    execution = started(source)
    assert outcome(execution) == in_order(source)
    assert not parts
    assert "items store elsewhere" in device(execution).state


def test_small_arrays_are_left_to_threads() -> None:
    source = program(count=3000)
    with mock.patch("ferryvm_backends.opencl.item.range.CHUNK", 512):
        execution = started(source)
        assert outcome(execution) == in_order(source)
    assert "items store into a small array" in device(execution).state


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads run their part after the device has got its arrays, and before its results come
    back."""
    pushed, done, active = threading.Event(), threading.Event(), threading.Event()
    push, pull, run = CopiedMemory.push, CopiedMemory.pull, ThreadedRanges.run
    run_parts = split.Split.run

    def parted(self: split.Split) -> None:
        pushed.clear()
        done.clear()
        active.set()
        run_parts(self)
        active.clear()

    def noted(self: CopiedMemory, *given: Any) -> object:
        places = push(self, *given)
        pushed.set()
        return places

    def awaiting(self: CopiedMemory, control: ControlBlock) -> None:
        assert not active.is_set() or done.wait(20)
        pull(self, control)

    def between(self: ThreadedRanges, *given: Any) -> object:
        assert not active.is_set() or pushed.wait(20)
        outcome = run(self, *given)
        done.set()
        return outcome

    monkeypatch.setattr(split.Split, "run", parted)
    monkeypatch.setattr(CopiedMemory, "push", noted)
    monkeypatch.setattr(CopiedMemory, "pull", awaiting)
    monkeypatch.setattr(ThreadedRanges, "run", between)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("addend", ["item", "(array-ref to item)"])
def test_results_of_threads_and_of_the_device_are_both_there(addend: str) -> None:
    source = program(addend=addend)
    assert outcome(started(source)) == in_order(source)


@pytest.mark.usefixtures("at_once")
def test_an_array_that_comes_back_as_a_whole_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the device also brings elements back that threads have stored into."""
    mark = CopiedMemory.mark

    def whole(self: CopiedMemory, control: ControlBlock, reference: int, *_: int) -> None:
        mark(self, control, reference, 0, 8 * COUNT)

    monkeypatch.setattr(CopiedMemory, "mark", whole)
    source = program()
    assert outcome(started(source)) != in_order(source)
