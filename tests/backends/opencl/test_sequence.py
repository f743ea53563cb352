# SPDX-License-Identifier: Apache-2.0
"""Launches on devices with memory of their own that spare copies: results stay there while launches
follow one another, and arrays that items overwrite are not sent. States are those of the loops in
order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import BackendError
from ferryvm.engine.execution import Execution
from ferryvm.machine.control import ControlBlock
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.memory import CopiedMemory
from ferryvm_backends.opencl.object_copy import ObjectCopy

from ...engine.mixing import placements
from ...tier import sample
from .test_items import make_small, on, outcome

TEXT = """
(define (step item kind from to)
  (if (= (array-ref from item) kind) (print! item))
  (array-set! to item (+ (* (array-ref from item) 3) item)))
(define (back item kind from to)
  (array-set! to item (+ (array-ref from item) 5))
  (if (= (+ kind item) 1000000) (array-set! to -1 0)))
(define (go n times kind a b)
  (define i 0)
  (define seen 0)
  (while (< i times)
    (for-each-item n (step kind a b))
    {between}
    (for-each-item (- n 1) (back kind b a))
    (set! i (+ i 1)))
  seen)
(define a (make-array i64 {items}))
(define b (make-array i64 {items}))
(+ (go 9 3 -1 a b) (* 7 (go {items} {times} {kind} a b)))
"""

BETWEEN = {
    "scalars": "(set! seen (+ seen (* i (array-length a))))",
    "a store": "(if (= i 2) (array-set! b 3 77))",
    "a trap": "(set! seen (/ 12 (- 3 i)))",
    "nothing": "",
    "a look": "(set! seen (+ seen (array-ref b 3)))",
    "a call": "(set! seen (gcd (+ i 12) 18))",
    "an object": "(if (= i 2) (set! b (make-array i64 {items})))",
    "output": "(if (= i 2) (print! seen))",
}
HELPERS = "(define (gcd x y) (if (= y 0) x (gcd y (% x y))))\n"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The program counters at which results have come back."""
    found: list[int] = []
    pull = CopiedMemory.pull

    def noted(self: CopiedMemory, control: ControlBlock) -> None:
        found.append(control.pc)
        pull(self, control)

    monkeypatch.setattr(CopiedMemory, "pull", noted)
    return found


def program(between: str, times: int = 6, kind: int = -1, items: int = 40) -> ferryvm.Program:
    text = TEXT.replace("{between}", BETWEEN[between])
    return ferryvm.compile(HELPERS + text.format(items=items, times=times, kind=kind))


def started(source: ferryvm.Program) -> Execution:
    return on(OpenClBackend(wraps=False)).start(source)


def in_order(source: ferryvm.Program) -> tuple[object, ...]:
    return outcome(Engine("threaded").start(source))


@pytest.mark.parametrize("between", sample(BETWEEN, 1))
def test_code_between_launches_sees_their_results(between: str, pulled: list[int]) -> None:
    source = program(between)
    assert outcome(started(source)) == in_order(source)
    assert pulled


def test_results_of_a_sequence_come_back_once(pulled: list[int]) -> None:
    source = program("scalars", times=20)
    assert outcome(started(source)) == in_order(source)
    assert len(pulled) <= 8  # most of the 46 launches follow each other


@pytest.mark.parametrize("kind", [7, 1000000 - 3])
def test_an_item_that_leaves_finds_earlier_results(kind: int, pulled: list[int]) -> None:
    source = program("scalars", kind=kind)
    found, expected = outcome(started(source)), in_order(source)
    assert found[:2] == expected[:2]  # after a trap higher items may be done
    assert kind > 7 or found == expected
    assert pulled


@pytest.mark.parametrize("failing", sample([4, "pull", 1], 2))
def test_a_device_that_fails_in_a_sequence_loses_nothing(
    failing: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, calls = program("scalars", items=50), [0]
    enqueue, pull = ItemKernel.enqueue, CopiedMemory.pull

    def failed(*given: object) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise BackendError("opencl: lost")
        enqueue(*given)  # type: ignore[arg-type]  # as it is called

    def not_pulled(self: CopiedMemory, control: ControlBlock) -> None:
        calls[0] += 1
        if failing == "pull":
            raise BackendError("opencl: lost")
        pull(self, control)

    monkeypatch.setattr(ItemKernel, "enqueue", failed)
    monkeypatch.setattr(CopiedMemory, "pull", not_pulled)
    assert outcome(started(source)) == in_order(source)
    assert calls[0] > 1


@pytest.mark.parametrize(
    ("owner", "name", "failing"), [(ItemKernel, "enqueue", 4), (ObjectCopy, "_move", 1)]
)
def test_a_lack_of_memory_in_a_sequence_does_not_end_launches(
    owner: type, name: str, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No memory once: for a later launch, or before anything is on the device."""
    source, calls, right = program("scalars", items=50), [0], getattr(owner, name)

    def failed(*given: object) -> None:
        calls[0] += 1
        if calls[0] == failing:
            raise BackendError("opencl: no memory")
        right(*given)

    monkeypatch.setattr(owner, name, failed)
    execution = started(source)
    assert outcome(execution) == in_order(source)
    found = [one for each in placements(execution) for one in each.launches]
    assert [one.stopped for one in found if one.times] == [""] * len(found)
    assert calls[0] > failing


def test_a_signal_between_launches_leaves_an_exact_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ferryvm.engine.launch_interlude import Interlude

    source, runs = program("scalars", times=12), [0]
    run = Interlude.run

    def raising(self: Interlude, machine: object) -> object:
        runs[0] += 1
        if runs[0] == 5:
            raise KeyboardInterrupt
        return run(self, machine)  # type: ignore[arg-type]  # as it is called

    monkeypatch.setattr(Interlude, "run", raising)
    execution = started(source)
    with pytest.raises(KeyboardInterrupt):
        execution.run()
    assert outcome(execution) == in_order(source)


OVERWRITTEN = """
(define (one item kind from to)
  (define x (array-ref from item))
  (if (= (/ 10 (- x kind)) 77) (print! kind))
  (if (= x (+ kind 1)) (print! x))
  (array-set! to item (+ (* x 2) 1)))
(define (go (n i64) (kind i64) (from (array i64)) (to (array i64)))
  (for-each-item n (one kind from to)))
"""


@pytest.fixture
def unsent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of arrays that were not sent, for each launch."""
    found: list[int] = []
    push = CopiedMemory.push

    def noted(self: CopiedMemory, *given: Any) -> object:
        places = push(self, *given)
        found.append(len(self.unsent))
        return places

    monkeypatch.setattr(CopiedMemory, "push", noted)
    return found


@pytest.mark.rotate("is_same", most=1)
@pytest.mark.parametrize("is_same", [False, True])
def test_an_array_that_items_overwrite_is_not_sent(is_same: bool, unsent: list[int]) -> None:
    count = 8000  # elements outside of the object space
    source = ferryvm.compile(OVERWRITTEN)
    call = on(OpenClBackend(wraps=False)).instantiate(source).exports["go"]
    one = np.arange(count)
    for kind in (-9, -1, -9):  # no item prints, the first does
        to = one if is_same else np.full(count, 5)
        expected = 2 * one + 1
        call(count, kind, one, to)
        assert (to == expected).all()
    assert any(unsent) is not is_same


def test_elements_of_items_that_are_not_done_remain(unsent: list[int]) -> None:
    count, printed = 8000, list[str]()
    source = ferryvm.compile(OVERWRITTEN)
    engine = on(OpenClBackend(wraps=False))
    engine.output = printed.append
    call = engine.instantiate(source).exports["go"]
    one, to = np.arange(count), np.zeros(count, np.int64)
    for value in range(3):
        to[:] = value
        with pytest.raises(ferryvm.TrapError, match="item 4000"):
            call(count, 4000, one, to)
        assert (to[:4000] == 2 * one[:4000] + 1).all()
        assert to[4000] == value
        above = to[4001:]
        assert ((above == value) | (above == 2 * one[4001:] + 1)).all()
    assert unsent[-1]


GROUPS = """
(define (member l g most tile from to)
  (define at (+ (* g 4) l))
  (array-set! tile l (array-ref from at))
  (barrier)
  (define other (& (array-ref tile (- 3 l)) most))
  (array-set! to at (& (+ (* 3 (array-ref from other)) at) 255)))
(define (group g most from to) (for-each-item 4 (member g most (make-array i64 4) from to)))
(define (go n times most a b)
  (define i 0)
  (while (< i times)
    (for-each-item n (group most a b))
    (for-each-item n (group most b a))
    (set! i (+ i 1))))
(define a (make-array i64 160))
(define b (make-array i64 160))
(go 40 2 127 a b)
(go 40 {times} {most} a b)
"""


@pytest.mark.parametrize(("most", "times"), sample([(255, 2), (127, 20)], 1))
def test_results_of_groups_remain_while_groups_follow(
    most: int, times: int, pulled: list[int]
) -> None:
    """With 255 some groups come to an index that is out of bounds: they are undone on the
    device."""
    source = ferryvm.compile(GROUPS.format(most=most, times=times))
    found, expected = outcome(started(source)), in_order(source)
    assert isinstance(expected[0], str) == (most > 127)
    assert found[: 2 if most > 127 else None] == expected[: 2 if most > 127 else None]
    assert 0 < len(pulled) <= 12  # of up to 44 launches
