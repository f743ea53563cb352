# SPDX-License-Identifier: Apache-2.0
"""Barriers: items that wait, in turn, in states that are saved, and in a check of independence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.build import I64, Program
from ferryvm.engine.execution import Execution
from ferryvm.image import ImageError
from ferryvm.isa import Trap
from ferryvm.machine.active_item import innermost, running_item
from ferryvm.machine.barrier import wait
from ferryvm.machine.launch import suspend, unfinished
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.memory import Limits
from ferryvm.machine.piece import read
from ferryvm.region.barrier import BARRIER, waiting
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

ITEMS = 3
TEXT = """
(define (body item tile)
  (array-set! tile item item)
  (barrier)
  (print! (array-ref tile (- 2 item)))
  (barrier)
  (array-set! tile item 7))
(for-each-item 3 (body (make-array i64 3)))
"""


def at_phase(behind: bool) -> Execution:
    """An execution at the launch, where all items wait; or one item of them goes on `behind` it."""
    execution = Engine("reference").start(ferryvm.compile(TEXT, "p.skiff"))
    machine = execution.machine
    opcodes = machine.program.code.opcodes
    while running_item(machine) != ITEMS - 1 or opcodes[machine.control.pc] != BARRIER:
        execution.run(1)
    if behind:
        execution.run(1)
    else:
        assert wait(machine) is Trap.NONE
    return execution


def test_an_item_that_waits_can_be_saved_and_resumed(tmp_path: Path) -> None:
    for behind in (False, True):
        execution = at_phase(behind)
        execution.save(tmp_path / "state")
        assert Engine("threaded").resume(tmp_path / "state").run().output == "2\n1\n0\n"


def test_an_item_that_is_suspended_behind_a_barrier_comes_first() -> None:
    execution = at_phase(behind=True)
    machine = execution.machine
    frame = innermost(machine)
    assert frame is not None
    suspend(machine, frame)
    assert unfinished(machine) == [(0, ITEMS)]
    assert execution.run().output == "2\n1\n0\n"


def test_items_that_wait_are_suspended_and_moved_at_every_boundary() -> None:
    differ = Differ(["switch", "llvm"])
    for schedule in (Schedule.SUSPEND, Schedule.EVERY_BOUNDARY, Schedule.COLLECT):
        for found in differ.compare(verify(ferryvm.compile(TEXT, "p.skiff")), schedule):
            assert found.verdict is Verdict.AGREE, found


Fields = memoryview


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda phase, piece: phase.__setitem__(4, piece[4]), "has the frames of an item"),
        (lambda phase, piece: piece.__setitem__(2, (1 << 64) - 1), "has a phase within"),
        (lambda phase, piece: piece.__setitem__(6, phase[7]), "a piece that follows itself"),
        (lambda phase, piece: piece.__setitem__(4, 0), "waits without frames"),
    ],
)
def test_a_forged_phase_in_a_saved_state_is_refused(
    change: Callable[[Fields, Fields], None], expected: str, tmp_path: Path
) -> None:
    execution = at_phase(behind=False)
    machine = execution.machine
    objects = machine.objects
    assert objects is not None
    objects.collect()
    record = launch_operands(machine.control).record
    words = objects.space.words

    def fields(reference: int) -> Fields:
        return words[reference // 8 + 1 : reference // 8 + 9]

    change(fields(record), fields(read(objects, record).waiting))
    execution.save(tmp_path / "state")
    with pytest.raises(ImageError, match=expected):
        Engine("reference").resume(tmp_path / "state")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("(if (!= item 2) (barrier))", "item 0 waits at p:1:37; item 2 has ended"),
        ("(if (= item 1) (barrier) (barrier))", "item 0 waits at p:1:46; item 1 waits at p:1:36"),
        (
            "(if (= item 1) (again) (again))",
            "item 0 waits at p:2:17, called at p:1:44; item 1 waits at p:2:17, called at p:1:36",
        ),
    ],
)
def test_a_trap_names_two_items_that_do_not_wait_together(body: str, message: str) -> None:
    text = f"(define (body item) {body})\n(define (again) (barrier))\n(for-each-item 3 (body))"
    for backend in ("reference", "threaded", "llvm"):
        with pytest.raises(TrapError, match=message) as raised:
            ferryvm.run(ferryvm.compile(text, "p"), backend=backend)
        assert raised.value.kind is Trap.BARRIER_DIVERGENCE


def test_no_memory_for_items_that_wait_is_a_trap() -> None:
    text = "(define (body item) (barrier)) (for-each-item 100 (body))"
    with pytest.raises(TrapError, match="heap exhausted: live objects may take 4000 bytes"):
        Engine("switch", limits=Limits(objects=4000)).start(ferryvm.compile(text, "p")).run()


@pytest.mark.parametrize(
    ("read_at", "behind"), [("(- 2 item)", ""), ("(* 2 (- item item))", " behind barrier 1")]
)
def test_accesses_that_no_barrier_separates_are_found(read_at: str, behind: str) -> None:
    first, second = ("", "(barrier)") if behind else ("(array-ref tile 2)", "")
    body = f"{first}{second} (array-set! tile item 1) (print! (array-ref tile {read_at}))"
    text = f"(define (body item tile) {body}) (for-each-item 3 (body (make-array i64 3)))"
    text = text.replace("(array-ref tile 2)", "")
    program = verify(ferryvm.compile(text, "p"))
    (found,) = Differ(["switch"]).compare(program, Schedule.INDEPENDENCE)
    assert found.verdict is not Verdict.AGREE
    assert f"are not independent{behind}: item" in str(found)


def test_a_barrier_separates_the_accesses_of_items() -> None:
    program = verify(ferryvm.compile(TEXT, "p"))
    (found,) = Differ(["switch"]).compare(program, Schedule.INDEPENDENCE)
    assert found.verdict is Verdict.AGREE, found


def test_functions_that_wait_are_those_that_call_one_in_the_same_launch() -> None:
    program = Program()
    main, group, member, helper = (
        program.function(name, {"item": I64} if name != "main" else {})
        for name in ("main", "group", "member", "helper")
    )
    helper.barrier()
    member.local_get("item")
    member.call(helper)
    group.i64_const(2)
    group.launch(member)
    main.i64_const(2)
    main.launch(group)
    program.start(main)
    found = waiting(verify(program.build()))
    names = [function.name for function in program.build().functions]
    assert {names[number] for number in found} == {"member", "helper"}
