# SPDX-License-Identifier: Apache-2.0
"""Host calls performed by native code, against those that the driver performs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import driver, host_loop
from ferryvm.engine.execution import Execution
from ferryvm.engine.exit_check import ExitChecker
from ferryvm.isa import I64
from ferryvm.machine.control import Status
from ferryvm.machine.host import HostFunction
from ferryvm.machine.memory import Limits
from ferryvm.machine.system import WaitInterrupted
from ferryvm.program import Signature
from ferryvm_backends._llvm import form
from ferryvm_backends._llvm import host_loop as native_loop

from ..suspended import SUM, suspended_items

BACKENDS = ["switch", "threaded"]

pytestmark = pytest.mark.skipif(
    not host_loop.is_possible(), reason="native code cannot call this Python"
)

CALLS = 40
LOOP = ferryvm.compile(f"""
(host-function act (i64) i64)
(define sum 0)
(define i 0)
(while (< i {CALLS})
  (set! sum (+ (* 3 sum) (act i)))
  (if (= (% i 5) 0) (print! sum))
  (set! i (+ i 1)))
sum
""")

CATCHING = """
.host act (i64) -> i64
.tag python.ArithmeticError i64
.static i i64
.function main
:again
:try
    static.get i
    host act
    drop
    jump next
:end
:arithmetic
    drop
    jump next
.catch python.ArithmeticError from try to end using arithmetic
:next
    static.get i
    i64.const 1
    i64.add
    static.set i
    static.get i
    i64.const 40
    i64.lt_s
    jump_if again
    halt
"""


@pytest.fixture(autouse=True)
def learned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Native code performs calls from the second one on; the calls that it has learned."""
    found: list[int] = []
    learn = host_loop.HostLoop.learn

    def learning(self: host_loop.HostLoop) -> None:
        found.append(1)
        learn(self)

    monkeypatch.setattr(driver, "MANY", 1)
    monkeypatch.setattr(driver, "FEW", 1)
    monkeypatch.setattr(host_loop.HostLoop, "learn", learning)
    monkeypatch.setattr(form.FormArtifact, "host_loop", lambda _: native_loop.address())
    return found


def started(
    backend: str, act: Callable[[int], int], program: ferryvm.Program = LOOP
) -> tuple[Execution, list[int]]:
    """An execution, and the arguments of its calls of `act`."""
    seen: list[int] = []

    def acting(number: int) -> int:
        seen.append(number)
        return act(number)

    function = HostFunction("act", Signature((I64,), (I64,)), acting)
    return ferryvm.Engine(backend, hosts={"act": function}).start(program), seen


def expected(act: Callable[[int], int] = lambda number: number) -> tuple[int | float | None, str]:
    result = started("reference", act)[0].run()
    return result.value, result.output


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_are_performed_in_their_order(backend: str, learned: list[int]) -> None:
    execution, seen = started(backend, lambda number: number)
    result = execution.run()
    assert (result.value, result.output) == expected()
    assert seen == [*range(CALLS)]
    assert 1 <= len(learned) <= 4  # a call site each, at times two share a row


@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, ferryvm.FerryError])
def test_an_exception_leaves_the_program_at_the_call(kind: type[BaseException]) -> None:
    def act(number: int) -> int:
        if number == 20 and seen.count(20) == 1:
            raise kind("not now")
        return number

    execution, seen = started("threaded", act)
    with pytest.raises(kind):
        execution.run()
    assert execution.machine.status is Status.HOST
    result = execution.run()
    assert (result.value, result.output) == expected()
    assert seen == [*range(21), *range(20, CALLS)]


def test_a_call_that_waits_in_vain_is_repeated() -> None:
    def act(number: int) -> int:
        if number == 20 and seen.count(20) == 1:
            raise WaitInterrupted
        return number

    execution, seen = started("threaded", act)
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    assert execution.run().value == expected()[0]
    assert seen == [*range(21), *range(20, CALLS)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_stops_in_front_of_the_next_call(backend: str) -> None:
    def act(number: int) -> int:
        execution.machine.control.interrupt = int(number == 20)
        return number

    execution, seen = started(backend, act)
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    assert seen == [*range(21)]
    assert execution.run().value == expected()[0]
    assert seen == [*range(CALLS)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_program_catches_exceptions_of_calls(backend: str) -> None:
    def act(number: int) -> int:
        return 1 // (number % 3)

    execution, seen = started(backend, act, ferryvm.assemble(CATCHING))
    execution.run()
    assert seen == [*range(40)]


def test_a_host_function_s_result_of_another_type_is_an_error() -> None:
    execution, _ = started("switch", lambda number: number if number < 20 else "x")  # type: ignore[return-value]  # the fault
    with pytest.raises(ferryvm.FerryError, match="host function act returned 'x'"):
        execution.run()


def test_calls_take_their_fuel() -> None:
    ours, _ = started("switch", lambda number: number)
    theirs, _ = started("reference", lambda number: number)
    status = Status.FUEL
    while status is Status.FUEL:
        status = ours.run(67).status
        assert theirs.run(67).status is status
        assert ours.machine.snapshot() == theirs.machine.snapshot()
    assert ours.instructions == theirs.instructions


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_may_enter_the_program(backend: str) -> None:
    def act(number: int) -> int:
        return int(instance.exports["twice"](number)) if number % 3 else number

    function = HostFunction("act", Signature((I64,), (I64,)), act)
    text = """
    (host-function act (i64) i64)
    (define (twice (n i64)) (+ n n))
    (define (work (n i64))
      (define sum 0)
      (define i 0)
      (while (< i n) (set! sum (+ sum (act i))) (set! i (+ i 1)))
      sum)
    """
    engine = ferryvm.Engine(backend, hosts={"act": function})
    instance = engine.instantiate(ferryvm.compile(text))
    assert instance.exports["work"](CALLS) == sum(n * 2 if n % 3 else n for n in range(CALLS))


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_are_native_again_behind_an_exit(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that makes an array for each line leaves for memory every now and then."""
    checked: list[int] = []
    check = ExitChecker.host_fault

    def checking(self: ExitChecker) -> str | None:
        checked.append(1)
        return check(self)

    monkeypatch.setattr(ExitChecker, "host_fault", checking)
    text = """
    (define i 0)
    (while (< i 3000)
      (define line (make-array i64 4000))
      (array-set! line 5 i)
      (print! (array-ref line 5))
      (set! i (+ i 1)))
    """
    engine = ferryvm.Engine(backend, limits=Limits(objects=1 << 20))
    execution = engine.start(ferryvm.compile(text))
    assert execution.run().output == "".join(f"{n}\n" for n in range(3000))
    collections = execution.collections()
    assert collections is not None
    assert int(str(collections["count"])) >= 20
    assert len(checked) <= 10  # by Python


@pytest.mark.parametrize("backend", BACKENDS)
def test_suspended_items_print_in_their_order(backend: str, learned: list[int]) -> None:
    assert suspended_items(1).run(backend=backend).output == f"1\n4\n{SUM}\n"
    assert learned
