# SPDX-License-Identifier: Apache-2.0
"""Items that a device suspends, run to their ends on threads of the host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from unittest import mock

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching
from ferryvm.engine.execution import Execution
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.engine.slot_run import SlotRun, ThreadedSlots
from ferryvm.item_range import SlotFinisher
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.object_space import FIRST_BUDGET
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item.range import ItemRanges

from ...engine.mixing import placements
from .entering import NAME, named

_TEXT = """
(define-struct pair (first i64) (second i64))
(define found -1)
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (work item to size)
  (array-set! to item (+ 1 (array-ref to item)))
  (if (= (% item 5) 3)
    (begin
      (array-set! to item (+ (array-ref to item) (fib size)))
      (if (= item 293) (set! found item))
      (if (= (% item 100) 3) (print! item))
      (if (= (% item 100) 8) (array-set! to item (pair-first (make-pair item 1))))
      (array-set! to item (+ 1 (array-ref to item))))))
(define (go to size) (for-each-item (array-length to) (work to size)))
(define to (make-array i64 600))
(go to {size})
(print! (reduce + to) found)
"""

Finished = list[tuple[int, int]]


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> Finished:
    """For each batch the items before, and those that are left; items run out of order however few
    they are."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    noted: Finished = []
    finish = ThreadedSlots.finish

    def spy(
        self: SlotFinisher, objects: ObjectMemory, batch: ItemBatch, is_stopped: Callable[[], bool]
    ) -> ItemBatch:
        left = finish(self, objects, batch, is_stopped)
        noted.append((batch.count, left.count))
        return left

    monkeypatch.setattr(ThreadedSlots, "finish", spy)
    return noted


def _policy(backend: str) -> Policy:
    choice = Choice(backend, Options(background=False, required=True, threads=2))
    rule = Rule(when=When((Test("kind", (Like("launch"),)),)), backends=(choice,))
    return Policy(rules=(rule,), profile=Profile(loop_threshold=1))


def _started(size: int, policy: Policy | None = None, wraps: bool = True) -> Execution:
    program = ferryvm.compile(_TEXT.replace("{size}", str(size)), "finished.skiff")
    registry = named(OpenClBackend(wraps))
    return Engine(policy=policy or _policy(NAME), registry=registry).start(program)


def _expected(size: int) -> str:
    program = ferryvm.compile(_TEXT.replace("{size}", str(size)), "finished.skiff")
    return Engine("threaded").start(program).run().output


@pytest.mark.parametrize("wraps", [True, False], ids=["shared", "copied"])
def test_items_that_recur_or_make_objects_end_up_to_a_line(finished: Finished, wraps: bool) -> None:
    execution = _started(8, wraps=wraps)
    assert execution.run().output == _expected(8)
    ((before, left),) = finished
    assert before >= 100
    assert left == 6
    launches = {id(one): one for each in placements(execution) for one in each.launches}
    assert sum(one.finished for one in launches.values()) == before - left


_PRINTING = """
(define (put item to)
  (if (= (% item 8) 1) (print! item))
  (array-set! to item (+ 1 (array-ref to item))))
(define (go (times i64))
  (define to (make-array i64 8000))
  (define turn 0)
  (while (< turn times) (for-each-item 8000 (put to)) (set! turn (+ turn 1)))
  (reduce + to))
"""


@pytest.mark.usefixtures("finished")
def test_memory_of_pieces_does_not_grow_from_launch_to_launch() -> None:
    lines: list[bytes] = []
    engine = Engine(
        policy=_policy(NAME), registry=named(OpenClBackend(wraps=False)), output=lines.append
    )
    go = engine.instantiate(ferryvm.compile(_PRINTING)).exports["go"]
    machine = go.__ferryvm__[0].machine
    assert machine.objects is not None
    assert go(40) == 40 * 8000
    assert lines == [b"%d\n" % item for item in range(1, 8000, 8)] * 40
    assert machine.objects.space.metrics.count >= 1
    assert machine.control.object_top < FIRST_BUDGET


def test_a_limit_without_room_for_what_the_last_range_left_stops_nothing() -> None:
    execution = _started(8, wraps=False)
    ranges, given = ItemRanges._reserve, list[int]()

    def reserve(self: ItemRanges, objects: ObjectMemory) -> None:
        self._taken = 1 << 50
        ranges(self, objects)
        given.append(self._taken)

    with mock.patch.object(ItemRanges, "_reserve", reserve):
        assert execution.run().output == _expected(8)
    assert not any(given)


def test_an_interrupted_batch_is_finished_elsewhere(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads are stopped in the middle of items; what they have done is not done again."""
    execution = _started(22)
    control, run = execution.machine.control, SlotRun.run

    def stop() -> None:
        time.sleep(0.005)
        control.interrupt = 1

    def interrupted(self: SlotRun) -> None:
        threading.Thread(target=stop).start()
        run(self)

    monkeypatch.setattr(SlotRun, "run", interrupted)
    with pytest.raises(ProgramInterrupted):
        execution.run()
    control.interrupt = 0
    assert 6 < finished[0][1] < finished[0][0]
    execution.run(backend="switch")
    assert execution.collected == _expected(22)


def test_two_launches_at_once_share_the_threads(finished: Finished) -> None:
    """One is finished on threads while items of the other run there."""
    expected, outputs = _expected(8), list[str]()

    def run(policy: Policy) -> None:
        outputs.extend(_started(8, policy).run().output for _ in range(3))

    runs = [threading.Thread(target=run, args=(_policy(one),)) for one in ("opencl", "llvm")]
    for each in runs:
        each.start()
    for each in runs:
        each.join(60)
    assert outputs == [expected] * 6
    assert len(finished) == 3
