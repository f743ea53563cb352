# SPDX-License-Identifier: Apache-2.0
"""Exceptions that cross calls in compiled code: they stay in it, and the state is the
reference's."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine, ProgramInterrupted
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.program import Signature

from .mixing import entries, placements, policy, same_as_reference, start, state
from .throwing import PROGRAMS

ENDLESS = """
.host stop () -> ()
.tag number i64
.static n i64
.function main
    host stop
:again
    static.get n
    i64.const 1
    i64.add
    static.set n
:try
    static.get n
    call thrower
    halt
:end
:handler
    static.set n
    jump again
.catch number from try to end using handler
.function thrower (n i64) -> i64
    local.get n
    i64.const 3
    i64.xor
    throw number
"""

UNCAUGHT = """
.tag number i64
.export call
.function start
    halt
.function call (n i64) -> i64
    local.get n
    call thrower
    return
.function thrower (n i64) -> i64
    local.get n
    i64.const 7
    i64.mul
    throw number
"""


@pytest.fixture(autouse=True)
def _checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRYVM_CHECK_IR", "1")


@pytest.mark.rotate("name", "count", most=5)
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_exceptions_stay_in_compiled_code_in_the_state_of_the_reference(
    name: str, count: bool
) -> None:
    program = ferryvm.assemble(PROGRAMS[name])
    execution = start(program, "llvm")
    same_as_reference(program, execution, count)
    assert [entries(placement) for placement in placements(execution)] == [1]


KERNELS = ["tags of all types above operands", "records thrown on", "caught by nobody in the end"]


@pytest.mark.rotate("name", "count", most=1)
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("name", KERNELS)
def test_exceptions_stay_in_kernels_in_the_state_of_the_reference(name: str, count: bool) -> None:
    program = ferryvm.assemble(PROGRAMS[name])
    execution = start(program, "opencl")
    same_as_reference(program, execution, count)
    assert [entries(placement) for placement in placements(execution)] == [1]


@pytest.mark.rotate("count", most=1)
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
def test_exceptions_of_a_recursion_in_kernels_are_those_of_the_reference(count: bool) -> None:
    program = ferryvm.assemble(PROGRAMS["caught at some levels of a recursion"])
    same_as_reference(program, start(program, "opencl"), count)


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


def test_an_endless_loop_of_exceptions_can_be_interrupted_and_resumed() -> None:
    def stop() -> None:
        execution.machine.control.interrupt = 1

    hosts = {"stop": HostFunction("stop", Signature(), stop)}
    program = ferryvm.assemble(ENDLESS)
    execution = Engine("llvm", hosts=hosts).start(program)
    with pytest.raises(ProgramInterrupted):
        execution.run()
    expected = execution.fork()
    assert execution.run(fuel=1000).status is Status.FUEL
    expected.run(fuel=1000, backend="reference")
    assert state(execution) == state(expected)


def test_an_exported_function_throws_to_its_caller_in_python() -> None:
    instance = Engine("llvm").instantiate(ferryvm.assemble(UNCAUGHT))
    for _ in range(2):
        with pytest.raises(ferryvm.UncaughtError) as caught:
            instance.call("call", 6)
        assert (caught.value.tag, caught.value.values) == ("number", (42,))
        assert [frame.function for frame in caught.value.stack][:2] == ["thrower", "call"]


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
