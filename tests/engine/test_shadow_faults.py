# SPDX-License-Identifier: Apache-2.0
"""The shadow run: whatever is wrong with compiled code is caught."""

from __future__ import annotations

import ctypes

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.explain import explain
from ferryvm.engine.shadow import ShadowError
from ferryvm.machine.control import ControlBlock, Status

from .shadowing import LOOP, SIZE, Tamper, policy, started, with_wrong


def _word(address: int, number: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(address + 8 * number)


def wrong_static(control: ControlBlock, status: int) -> int:
    _word(control.statics, 0).value += 1
    return status


def lost_store(control: ControlBlock, status: int) -> int:
    _word(control.heap, 2).value = 0
    return status


def wrong_pc(control: ControlBlock, status: int) -> int:
    control.pc += 1
    return status


def wrong_sp(control: ControlBlock, status: int) -> int:
    control.sp -= 1
    return status


def huge_sp(control: ControlBlock, status: int) -> int:
    control.sp = control.fp = SIZE
    return status


def huge_hp(control: ControlBlock, status: int) -> int:
    control.hp = SIZE
    return status


def unpaid(control: ControlBlock, status: int) -> int:
    control.fuel += 3
    return status


def paid_too_much(control: ControlBlock, status: int) -> int:
    control.fuel -= 1
    return status


def fuel_given_back(control: ControlBlock, status: int) -> int:
    control.fuel += 1_000_000
    return status


def no_status(_control: ControlBlock, _status: int) -> int:
    return 99


def false_halt(_control: ControlBlock, _status: int) -> int:
    return Status.HALT


def false_trap(control: ControlBlock, _status: int) -> int:
    control.trap = 77
    return Status.TRAP


def false_interrupt(_control: ControlBlock, _status: int) -> int:
    return Status.INTERRUPTED


def false_fuel(_control: ControlBlock, _status: int) -> int:
    return Status.FUEL


def lost_table(control: ControlBlock, status: int) -> int:
    control.table = 0
    return status


WRONG: dict[Tamper, str] = {
    wrong_static: "static 0 (total)",
    lost_store: "heap at byte 16",
    wrong_pc: "pc",
    wrong_sp: "sp",
    huge_sp: "sp",
    huge_hp: "hp",
    unpaid: "pc",
    paid_too_much: "pc",
    fuel_given_back: "fuel",
    no_status: "status",
    false_halt: "status",
    false_trap: "status",
    false_interrupt: "status",
    false_fuel: "status",
    lost_table: "table of the control block",
}


@pytest.mark.rotate("tamper", "count")
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("tamper", WRONG, ids=lambda tamper: tamper.__name__)
def test_what_is_wrong_is_caught_and_the_program_goes_on_in_the_right_state(
    tamper: Tamper, count: bool
) -> None:
    execution, observer = started(LOOP, policy("wrong"), with_wrong(tamper))
    with pytest.raises(ShadowError) as caught:
        execution.run(count=count)
    error = caught.value
    assert (error.backend, error.region) == ("wrong", "main/loop.1")
    assert error.entry == observer.placements[0].pc
    assert error.difference.field == WRONG[tamper]
    assert "\n" not in str(error)
    assert "backend 'wrong': region main/loop.1, entered at pc " in str(error)
    assert "(text.skiff:3:" in str(error)
    plain = Engine("reference").start(ferryvm.compile(LOOP, "text.skiff"))
    result = execution.run(count=count)
    assert (result.value, result.output) == (19900, "19900\n")
    plain.run(count=True)
    assert execution.machine.snapshot() == plain.machine.snapshot()
    assert execution.instructions == (plain.instructions if count else None)


def test_the_state_is_the_shadow_s_to_the_instruction() -> None:
    execution, _ = started(LOOP, policy("wrong"), with_wrong(wrong_static))
    with pytest.raises(ShadowError):
        execution.run(count=True)
    plain = Engine("reference").start(ferryvm.compile(LOOP, "text.skiff"))
    plain.run(fuel=execution.instructions)
    plain.machine.control.status = Status.RUNNING
    assert execution.machine.snapshot() == plain.machine.snapshot()


def test_code_that_traps_for_nothing_leaves_the_program_in_front_of_it() -> None:
    execution, _ = started(LOOP, policy("wrong"), with_wrong(false_trap))
    with pytest.raises(ShadowError, match="status is TRAP, one that goes on at pc"):
        execution.run()
    assert execution.machine.status is Status.RUNNING
    assert execution.machine.control.trap == 0


def test_a_missed_trap_is_told() -> None:
    text = "(define i 0) (while (< i 90) (/ 100 (- 50 i)) (set! i (+ i 1)))"

    def no_trap(control: ControlBlock, _status: int) -> int:
        control.fuel -= 5  # as if it had gone on
        return Status.LEAVE

    execution, _ = started(text, policy("wrong"), with_wrong(no_trap))
    with pytest.raises(ShadowError, match="status is LEAVE, TRAP at pc "):
        execution.run()
    with pytest.raises(ferryvm.TrapError, match="integer division by zero"):
        execution.run()


def test_another_host_function_is_told() -> None:
    def another(control: ControlBlock, status: int) -> int:
        control.exit_id += 1
        return status

    text = "(define i 0) (while (< i 50) (print! i) (set! i (+ i 1)))"
    execution, _ = started(text, policy("wrong"), with_wrong(another))
    with pytest.raises(ShadowError) as caught:
        execution.run()
    assert caught.value.difference.field == "exit_id"
    assert execution.run().output == "".join(f"{i}\n" for i in range(50))


def test_wrong_code_is_given_up_and_explained() -> None:
    execution, observer = started(LOOP, policy("wrong"), with_wrong(wrong_static))
    with pytest.raises(ShadowError):
        execution.run()
    (region,) = explain(execution, observer, "failed").regions
    assert (region.state, region.compared) == ("given up", 1)
    (difference,) = region.differences
    assert difference.startswith("static 0 (total) was 0x4dbd, not 0x4dbc; entered at pc ")


def test_the_shadow_s_time_is_told_apart() -> None:
    execution, observer = started(LOOP)
    execution.run(count=True)
    explanation = explain(execution, observer, "halt")
    llvm, threaded, shadow = explanation.shares
    names = [share.backend for share in explanation.shares]
    assert names == ["llvm", "threaded", "reference (shadow)"]
    assert (shadow.entries, shadow.instructions) == (1, None)
    assert threaded.seconds > 0
    assert llvm.seconds < shadow.seconds < execution.statistics.seconds.run
    assert (llvm.instructions or 0) + (threaded.instructions or 0) == execution.instructions
