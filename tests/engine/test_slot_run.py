# SPDX-License-Identifier: Apache-2.0
"""The rest of suspended items run on threads, up to what has to be done in order."""

from __future__ import annotations

import contextlib
import os
from unittest import mock

import pytest

from ferryvm.engine import slot_run
from ferryvm.engine.crew import crew
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.object_memory import ObjectMemory

from .. import slots
from ..slots import ARRAYS, ENDS, LENT, PRINTS, STORED, TRAPS, finish, outcome, suspended
from ..suspended import ITEMS


@pytest.mark.parametrize(
    ("kind", "left", "backend"),
    [(ENDS, 0, "threaded"), (PRINTS, 2, "switch"), (ARRAYS, 7, "threaded"), (ENDS, 0, "switch")],
)
def test_items_end_on_threads_up_to_what_is_done_in_order(
    kind: int, left: int, backend: str
) -> None:
    execution, batch = suspended(kind)
    expected, same = suspended(kind)
    slots.put_back(expected, same)
    assert finish(execution, batch, backend).count == left
    assert outcome(execution) == outcome(expected)
    assert execution.machine.snapshot() == expected.machine.snapshot()


def test_a_trap_on_a_thread_is_raised_in_its_turn() -> None:
    """Items above it need not begin."""
    execution, batch = suspended(TRAPS)
    expected, same = suspended(TRAPS)
    slots.put_back(expected, same)
    left = finish(execution, batch)
    assert left.first == 4
    assert left.count <= 3
    assert outcome(execution) == outcome(expected)


def test_room_behind_the_last_object_is_given_back() -> None:
    execution, batch = suspended(ENDS)
    before = execution.machine.control.object_top
    assert not finish(execution, batch).count
    assert 0 < execution.machine.control.object_top - before < slot_run._LEAST_ARENA * 2


@pytest.mark.parametrize(("text", "is_lent"), [(LENT, True), (STORED, False)])
def test_all_room_is_given_back_where_nothing_refers_to_the_objects(
    text: str, is_lent: bool
) -> None:
    execution, batch = suspended(ENDS, text)
    expected, same = suspended(ENDS, text)
    slots.put_back(expected, same)
    before = execution.machine.control.object_top
    assert not finish(execution, batch).count
    assert (execution.machine.control.object_top == before) == is_lent
    assert outcome(execution) == outcome(expected)
    assert execution.machine.snapshot() == expected.machine.snapshot()


def test_one_thread_has_room_for_the_objects_of_all_items() -> None:
    execution, batch = suspended(ENDS, LENT)
    objects = execution.machine.objects
    assert objects is not None
    team, _ = slots.finisher(execution)._prepared(objects, batch)
    team.clear(execution.machine.control)
    team.reserve_objects(objects, 10_000, True)
    assert team.arena_bytes == slot_run._MOST_LENT
    assert team.arena_bytes > 2 * 16 * 10_000  # of two threads each has room for boxes of all items
    team.reserve_objects(objects, 10_000, False)
    assert team.arena_bytes == 10_000 * slot_run._ITEM_BYTES


@pytest.mark.parametrize("threads", [3, 7])
def test_objects_of_each_thread_begin_at_a_word(threads: int) -> None:
    execution, batch = suspended(ENDS, LENT)
    control, objects = execution.machine.control, execution.machine.objects
    assert objects is not None
    team, _ = slots.finisher(execution, threads=threads)._prepared(objects, batch)
    team.clear(control)
    for is_lent in (True, False):
        team.reserve_objects(objects, 10_000, is_lent)
        team.prepare(objects, 0, 1, 1)
        assert {each.object_top % WORD_BYTES for each in team.workers} == {0}
        assert max(each.object_end for each in team.workers) <= control.object_end
        team.clear(control)


def test_items_wait_where_the_limit_leaves_no_room_for_objects() -> None:
    execution, batch = suspended(ENDS)
    objects = execution.machine.objects
    assert objects is not None
    with mock.patch.object(ObjectMemory, "enlarge_for", return_value=False):
        end, execution.machine.control.object_end = (
            execution.machine.control.object_end,
            execution.machine.control.object_top,
        )
        left = slots.finisher(execution).finish(objects, batch, lambda: False)
    execution.machine.control.object_end = end
    assert left.count == 4
    slots.put_back(execution, left)
    expected, same = suspended(ENDS)
    slots.put_back(expected, same)
    assert outcome(execution) == outcome(expected)


def test_items_wait_where_no_threads_can_begin(caplog: pytest.LogCaptureFixture) -> None:
    execution, batch = suspended(ENDS)
    finisher, objects = slots.finisher(execution), execution.machine.objects
    assert objects is not None
    with mock.patch.object(slot_run, "SlotTeam", side_effect=MemoryError("none left")):
        assert finisher.finish(objects, batch, lambda: False) is batch
    assert "wait for their turn: none left" in caplog.text
    assert finisher.finish(objects, batch, lambda: False) is batch


def test_the_machine_that_launches_does_not_change() -> None:
    execution, batch = suspended(ENDS)
    objects = execution.machine.objects
    assert objects is not None
    stack = execution.machine.memory.stack
    words = stack[: execution.machine.control.sp].tolist()
    operands = bytes(launch_operands(execution.machine.control))
    assert not slots.finisher(execution).finish(objects, batch, lambda: False).count
    assert stack[: execution.machine.control.sp].tolist() == words
    assert bytes(launch_operands(execution.machine.control)) == operands


def test_an_interrupted_item_stands_where_it_was_stopped() -> None:
    """One item never ends by itself; the look at the flag stops it, and the others are done."""
    text = slots.TEXT.replace("(deep (* 7 item))", "(if (= item kind) (for-ever) 0)")
    head = "(define (for-ever) (define x 1) (while (!= x 0) (set! x (+ x 2))) x)"
    execution, batch = suspended(4, head + text)
    left = finish(execution, batch, is_stopped=lambda: True)
    assert 1 <= left.count < ITEMS
    assert left.first <= 4
    assert execution.run(1000, backend="threaded").status is Status.FUEL


def test_an_item_that_has_no_room_waits_for_its_turn() -> None:
    execution, batch = suspended(ENDS)
    finisher = slots.finisher(execution)
    objects, control = execution.machine.objects, execution.machine.control
    assert objects is not None
    end = control.stack_end
    control.stack_end = control.stack + 8 * (control.sp + 12)
    left = finisher.finish(objects, batch, lambda: False)
    control.stack_end = end
    assert left.count == ITEMS
    slots.put_back(execution, left)
    expected, same = suspended(ENDS)
    slots.put_back(expected, same)
    assert outcome(execution) == outcome(expected)


def test_a_forked_child_ends_items_on_threads_of_its_own() -> None:
    execution, batch = suspended(ENDS)
    assert not finish(execution, batch).count
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            execution, batch = suspended(PRINTS)
            code = 0 if finish(execution, batch).count == 2 and crew().size == 1 else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
