# SPDX-License-Identifier: Apache-2.0
"""Cells of the interpreters: counting at a place, and calling compiled code there."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

import ferryvm
from ferryvm.backend import BackendError
from ferryvm.isa import Trap
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.verify import verify

from .places import (
    AFTER,
    CALL,
    END,
    ENTRY,
    FORMS,
    INNER,
    INTERPRETERS,
    ITERATIONS,
    LIMITS,
    LOOP,
    PLACES,
    PLENTY,
    RETURNED,
    TOTAL,
    VERIFIED,
    I,
    Native,
    Run,
    arrivals,
    ends_as_without_cells,
    idle,
    in_front,
    stack,
    trail,
)


@pytest.fixture(params=INTERPRETERS)
def name(request: pytest.FixtureRequest) -> str:
    """Each interpreter in turn."""
    return str(request.param)


@pytest.fixture(params=FORMS, ids=["plain", "counting"])
def run(request: pytest.FixtureRequest, name: str) -> Run:
    """The program at its start, in each form of the code of each interpreter."""
    return Run.start(name, bool(request.param))


# --- counting -------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 2, 7, ITERATIONS])
def test_count_leaves_with_the_state_in_front_of_that_arrival(run: Run, times: int) -> None:
    for pc in PLACES:
        if len(arrivals(pc)) < times:
            continue
        each = Run(run.artifact, Machine(VERIFIED, LIMITS), run.counting)
        each.machine.control.fuel = PLENTY
        each.count(pc, times)
        assert each.enter() is Status.HOT, pc
        expected = arrivals(pc)[times - 1]
        assert each.machine.snapshot() == in_front(expected, Status.HOT), pc
        assert each.paid in (None, expected.completed)
        assert each.counted(pc) == 0
        ends_as_without_cells(each)


def test_count_past_the_last_arrival_never_leaves(run: Run) -> None:
    for pc in PLACES:
        run.count(pc, len(arrivals(pc)) + 1)
    ends_as_without_cells(run)
    assert [run.counted(pc) for pc in PLACES] == [1] * len(PLACES)


def test_counted_is_what_is_left_at_each_place(run: Run) -> None:
    run.count(LOOP, 1000)
    run.count(RETURNED, 500)
    run.count(ENTRY, 10)
    assert run.enter() is Status.HOT
    assert run.machine.control.pc == ENTRY
    assert [run.counted(pc) for pc in (LOOP, RETURNED, ENTRY, CALL)] == [990, 491, 0, 0]


def test_count_can_be_set_again_after_it_left(run: Run) -> None:
    run.count(LOOP, 1)
    assert run.enter() is Status.HOT
    run.count(LOOP, 3)
    assert run.enter() is Status.HOT
    # The place that it stands at counts as reached when it is entered.
    assert run.machine.snapshot() == in_front(arrivals(LOOP)[2], Status.HOT)


def test_the_two_forms_have_cells_of_their_own(name: str) -> None:
    run = Run.start(name, True)
    run.artifact.count(LOOP, 1, counting=False)
    run.artifact.install(ENTRY, idle().address, counting=False)
    assert run.artifact.counted(LOOP, counting=False) == 1
    assert run.artifact.counted(LOOP, counting=True) == 0
    ends_as_without_cells(run)


def test_an_instruction_that_cannot_be_paid_is_neither_counted_nor_entered(name: str) -> None:
    run, native = Run.start(name, True), idle()
    run.machine.control.fuel = arrivals(RETURNED)[0].completed
    expected = in_front(arrivals(RETURNED)[0], Status.FUEL)
    run.count(RETURNED, 5)
    assert run.enter() is Status.FUEL
    assert run.machine.snapshot() == expected
    assert run.counted(RETURNED) == 5
    run.install(RETURNED, native)
    assert run.enter() is Status.FUEL
    assert run.machine.snapshot() == expected
    assert native.calls == 0


# --- entering -------------------------------------------------------------------------------

JUMP_OVER_THE_LOOP = f"""
define i32 @over(ptr %control) {{
    %at = getelementptr i8, ptr %control, i64 {ControlBlock.stack.offset}
    %stack = load ptr, ptr %at
    %total = getelementptr i64, ptr %stack, i64 {TOTAL}
    store i64 777, ptr %total
    %pc = getelementptr i8, ptr %control, i64 {ControlBlock.pc.offset}
    store i64 {AFTER}, ptr %pc
    ret i32 {int(Status.LEAVE)}
}}
"""


def test_interpreter_goes_on_where_native_code_left(run: Run) -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(JUMP_OVER_THE_LOOP), target)
    engine.finalize_object()
    run.count(LOOP, 5)
    assert run.enter() is Status.HOT
    run.artifact.install(LOOP, engine.get_function_address("over"), run.counting)
    assert run.enter() is Status.HALT
    assert run.machine.control.pc == END
    assert run.machine.memory.stack[run.machine.control.sp - 1] == 777
    assert run.paid in (None, arrivals(LOOP)[4].completed + 1)


def test_native_code_is_given_the_state_in_front_of_its_place(run: Run) -> None:
    for pc in PLACES:
        each = Run(run.artifact, Machine(VERIFIED, LIMITS), run.counting)
        each.machine.control.fuel = PLENTY
        native = Native(lambda _control: Status.GUARD)
        each.install(pc, native)
        assert each.enter() is Status.GUARD, pc
        assert each.machine.snapshot() == in_front(arrivals(pc)[0], Status.GUARD)
        assert native.calls == 1
        each.remove(pc)


def test_native_code_may_move_every_register(run: Run) -> None:
    """It performs the first call itself, and leaves inside the callee."""
    inside = arrivals(ENTRY)[0]

    def call(control: ControlBlock) -> Status:
        run.remove(LOOP)
        words = memoryview(inside.snapshot.stack).cast("Q").tolist()
        stack(control)[: len(words)] = words
        control.pc, control.sp, control.fp = ENTRY, inside.snapshot.sp, inside.snapshot.fp
        control.fuel -= inside.completed
        return Status.LEAVE

    run.install(LOOP, Native(call))
    run.count(ENTRY, 1)
    assert run.enter() is Status.HOT
    # The cell at which the code left is passed by: it is the second call that gets to it.
    assert run.machine.snapshot() == in_front(arrivals(ENTRY)[1], Status.HOT)
    assert run.paid in (None, arrivals(ENTRY)[1].completed)


ENDS = [status for status in Status if status not in (Status.LEAVE, Status.THROW)]
"""The interpreter goes on after the others: at control's pc, or in the search for a handler."""


@pytest.mark.parametrize("status", ENDS, ids=lambda status: status.name)
def test_any_other_status_is_the_interpreters(run: Run, status: Status) -> None:
    def leave(control: ControlBlock) -> Status:
        control.pc, control.sp, control.fp = AFTER, 6, 1
        control.trap, control.exit_id, control.wanted = Trap.UNREACHABLE, 3, 64
        stack(control)[I] = 99
        return status

    run.install(LOOP, Native(leave))
    assert run.enter() is status
    control = run.machine.control
    assert control.status == status
    assert (control.pc, control.sp, control.fp) == (AFTER, 6, 1)
    assert (control.trap, control.exit_id, control.wanted) == (Trap.UNREACHABLE, 3, 64)
    assert run.machine.memory.stack[I] == 99


def test_status_that_there_is_not_is_an_error(run: Run) -> None:
    run.install(CALL, Native(lambda _control: 77))
    with pytest.raises(BackendError, match="compiled code left with status 77 at pc 2"):
        run.enter()
    run.remove(CALL)
    ends_as_without_cells(run)


def test_code_that_leaves_at_its_own_entry_makes_progress(run: Run) -> None:
    native = idle()
    for pc in PLACES:
        run.install(pc, native)
    ends_as_without_cells(run)
    # Nothing runs across a cell, so control gets to every instruction by itself.
    assert native.calls == len(trail()) - 1


def test_code_that_leaves_at_another_cell_runs_the_instruction_there(run: Run) -> None:
    def skip_the_call(control: ControlBlock) -> Status:
        control.pc = INNER
        return Status.LEAVE

    inner = idle()
    run.install(LOOP, Native(skip_the_call))
    run.install(INNER, inner)
    run.count(AFTER, 1)
    assert run.enter() is Status.HOT
    assert inner.calls == 0
    assert run.machine.memory.stack[I] == ITERATIONS
    assert run.machine.memory.stack[TOTAL] == 0


def test_hot_from_native_code_leaves_its_cell(run: Run) -> None:
    native = Native(lambda _control: Status.HOT)
    run.install(LOOP, native)
    assert [run.enter(), run.enter()] == [Status.HOT, Status.HOT]
    assert native.calls == 2


# --- interrupt ------------------------------------------------------------------------------


def test_interrupt_is_seen_when_code_leaves_and_is_entered_again_for_ever(name: str) -> None:
    # No instruction here looks at the flag: only what calls the native code can.
    verified = verify(ferryvm.assemble(".function main\nnop\nnop\nhalt\n"))

    def go_back(control: ControlBlock) -> Status:
        control.pc = 0
        if native.calls == 1000:
            control.interrupt = 1
        return Status.LEAVE if native.calls <= 1000 else Status.GUARD

    native = Native(go_back)
    for counting in (False, True):
        native.calls = 0
        run = Run.start(name, counting, verified)
        run.install(1, native)
        assert run.enter() is Status.INTERRUPTED
        assert (run.machine.control.pc, native.calls) == (0, 1000)
        assert run.paid in (None, 1000)


def test_interrupt_at_a_jump_comes_before_the_cell(run: Run) -> None:
    run.count(LOOP, 2)
    run.count(CALL, 1)
    assert run.enter() is Status.HOT
    run.machine.control.interrupt = 1
    assert run.enter() is Status.INTERRUPTED
    run.machine.control.interrupt = 0
    assert run.counted(LOOP) == 1
