# SPDX-License-Identifier: Apache-2.0
"""No count of cycles is below what operations and units make it; counts that are, are an error."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import Bundle, Immediate, Program, Slot
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import HazardError, Issue, RunMetrics
from ferryvm_backends.vliw.simulate.native import NativeProgram

from .program import compiled, run, whole

MULTI = find("multi16")
CONTROL = next(n for n, unit in enumerate(MULTI.units) if unit.group == "control")


def add(unit: int) -> Slot:
    return Slot(unit, "add", (I64,), (Immediate(1), Immediate(2)), has_result=True)


def divide(unit: int) -> Slot:
    return Slot(unit, "div_u", (I64,), (Immediate(9), Immediate(2)), has_result=True)


def program(*bundles: Bundle, machine: Machine = MULTI) -> Program:
    """Bundles and a stop, whose delay slots are the last of them."""
    stop = len(bundles) - 1 - machine.delay_slots
    stopping = Slot(CONTROL, "stop", (), ())
    given = tuple((*b, stopping) if n == stop else b for n, b in enumerate(bundles))
    return Program("planted", machine, given, {0: "entry"}, (), (), 0, 0, 0)


def took(given: Program) -> RunMetrics:
    """The counts of native code, which does what bundles say, whether or not a machine can."""
    return NativeProgram(given).run(Memory({each: np.zeros(8, np.uint8) for each in Segment}), 1000)


def test_one_operation_a_cycle_is_what_a_unit_can_do() -> None:
    counts = took(program(*[(add(0), add(1))] * 6))
    assert counts.cycles == 6
    assert counts.issued == {0: 6, 1: 6, CONTROL: 1}
    assert counts.bundles.tolist() == [1] * 6


def test_two_operations_a_cycle_on_one_unit_are_found_after_the_run() -> None:
    said = r"^planted: unit alu0 issued 12 operations in 6 cycles"
    with pytest.raises(HazardError, match=said):
        took(program(*[(add(0), add(0))] * 6))


def test_more_operations_than_slots_are_found_after_the_run() -> None:
    narrow = dataclasses.replace(MULTI, slots=1)
    with pytest.raises(HazardError, match=r"^planted: 9 operations in 4 cycles of 1 slots$"):
        took(program(*[(add(0), add(1))] * 4, machine=narrow))


def test_a_unit_that_is_taken_again_too_soon_is_found_after_the_run() -> None:
    """The last division may keep the divider past the end, the first may not past the second."""
    empty: list[Bundle] = [()] * 33
    took(program((divide(0),), *empty, (divide(0),), *empty))
    took(program((divide(0),), *empty, (), (), (), (divide(0),)))
    said = r"^planted: unit alu0 issued 3 operations in 68 cycles, and each keeps it for 34 at most"
    with pytest.raises(HazardError, match=said):
        took(program((divide(0),), (divide(0),), *empty, (divide(0),), *empty[1:]))


def test_cycles_that_were_not_counted_are_found() -> None:
    issue = Issue(program(*[(add(0),)] * 6))
    fetched = np.ones(6, np.int64)
    assert issue.counts(6, fetched).issued == {0: 6, CONTROL: 1}
    with pytest.raises(HazardError, match=r"^planted: 6 bundles were fetched in 5 cycles$"):
        issue.counts(5, fetched)


@pytest.mark.parametrize("machine", shipped())
@pytest.mark.parametrize("is_native", [False, True])
def test_every_run_is_checked(
    monkeypatch: pytest.MonkeyPatch, machine: str, is_native: bool
) -> None:
    """By either simulator, with the cycles that it says."""
    part = whole("(define i 0) (while (< i 9) (set! i (+ i 1)))")
    good = compiled(part, find(machine))
    run(good, part, is_native)
    seen: list[int] = []
    monkeypatch.setattr(Issue, "check", lambda issue, cycles, *rest: seen.append(cycles))
    ended = run(good, part, is_native)
    assert seen == [ended.counts.cycles]
