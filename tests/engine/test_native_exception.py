# SPDX-License-Identifier: Apache-2.0
"""Exceptions that cross calls in compiled code: they stay in it, and the state is the reference's."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine.control import Status

from .mixing import entries, placements, policy, same_as_reference, start, state
from .throwing import PROGRAMS


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_exceptions_stay_in_compiled_code_in_the_state_of_the_reference(text: str) -> None:
    program = ferryvm.assemble(text)
    for count in (False, True):
        execution = start(program, "llvm")
        same_as_reference(program, execution, count)
        assert [entries(placement) for placement in placements(execution)] == [1]


@pytest.mark.rotate("text", "count", most=1)
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_exceptions_of_functions_and_loops_compiled_alone_find_their_handlers(
    text: str, count: bool
) -> None:
    program = ferryvm.assemble(text)
    for threshold in (1, 3, 7):
        execution = start(program, policy(threshold=threshold))
        same_as_reference(program, execution, count)
        assert threshold == 7 or any(entries(placement) for placement in placements(execution))


def test_fuel_stops_code_that_throws_at_every_single_instruction() -> None:
    program = ferryvm.assemble(PROGRAMS["records thrown on"])
    whole = start(program, "llvm")
    steps = whole.run(count=True).statistics.instructions
    assert steps is not None
    expected = Engine("reference").start(program)
    for fuel in range(min(steps, 250)):
        execution = whole.again()
        assert execution.run(fuel=fuel).status is Status.FUEL
        assert state(execution) == state(expected)
        expected.run(fuel=1)
