# SPDX-License-Identifier: Apache-2.0
"""The shadow run: compiled code that is right passes, and goes on after an interrupt."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import (
    Artifact,
    BackendError,
    Capabilities,
    Forcing,
    Interpreter,
    RefusalError,
)
from ferryvm.engine import Engine, ProgramInterrupted
from ferryvm.engine import shadow as shadows
from ferryvm.engine.observer import Observer
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.policy import load
from ferryvm.registry import Registry
from ferryvm.verify import Verified

from ..double.registry import registry
from .object_program import program
from .shadowing import LOOP, RECURSION, compared, entered, policy, started, with_wrong

ROOT = Path(__file__).parents[2]

CELLS = """
.struct cell value i64 next cell
.static kept cell
.function main
.local n i64
:top
    local.get n
    ref.null cell
    struct.new cell
    static.set kept
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 500
    i64.lt_s
    jump_if top
    static.get kept
    struct.get cell.value
    halt
"""
"""Five hundred cells, of which the last is kept."""


# --- right code -----------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["reference", "switch"])
@pytest.mark.parametrize("text", [LOOP, RECURSION], ids=["loop", "recursion"])
def test_right_code_is_compared_at_every_stay_and_passes(text: str, against: str) -> None:
    execution, observer = started(text, policy(against=against))
    result = execution.run()
    plain = Engine("threaded").start(ferryvm.compile(text, "text.skiff"))
    assert plain.run().output == result.output
    assert plain.machine.snapshot() == execution.machine.snapshot()
    assert compared(observer) == entered(observer) > 0
    assert all(placement.differences == [] for placement in observer.placements)


@pytest.mark.rotate("is_forced", most=1)
@pytest.mark.parametrize("is_forced", [False, True], ids=["when full", "at each allocation"])
def test_objects_are_collected_beside_a_shadow_as_without(is_forced: bool) -> None:
    limits = Limits(stack=1 << 14, heap=1 << 16, objects=1 << 11)
    execution = Engine(policy=policy(), limits=limits).start(program(CELLS))
    objects = execution.machine.objects
    assert objects is not None
    if is_forced:
        objects.force()
    assert execution.run().value == 499
    assert objects.space.metrics.count > 10
    plain = Engine("threaded", limits=limits).start(program(CELLS))
    plain.run()
    assert plain.machine.snapshot() == execution.machine.snapshot()


@pytest.mark.parametrize(
    "name", ["factorial.fasm", "hello.fasm", "arrays.skiff", "conversions.skiff", "traps.skiff"]
)
def test_examples_pass_the_paranoid_policy(name: str) -> None:
    found = Registry()
    paranoid = load(ROOT / "configs" / "paranoid.toml", found.names)
    program = ferryvm.read(ROOT / "examples" / name)
    states = []
    for engine in (Engine(policy=paranoid, registry=found), Engine("threaded")):
        execution = engine.start(program)
        try:
            states.append((execution.run().output, execution.machine.snapshot()))
        except ferryvm.TrapError as trap:
            states.append((str(trap), execution.machine.snapshot()))
    assert states[0] == states[1]


def test_counts_and_fuel_are_those_of_a_run_without() -> None:
    plain = Engine("threaded").start(ferryvm.compile(LOOP, "text.skiff"))
    execution, observer = started(LOOP)
    for fuel in (0, 1, 700, 13, 1, 1, 2, 900, 1, 50_000):
        assert execution.run(fuel).status is plain.run(fuel).status
        assert execution.machine.snapshot() == plain.machine.snapshot()
        assert execution.machine.control.fuel == plain.machine.control.fuel
        assert execution.instructions == plain.instructions
    assert plain.machine.status is Status.HALT
    assert compared(observer) > 3


def test_a_run_that_does_not_count_counts_nothing() -> None:
    execution, _ = started(LOOP)
    assert execution.run().statistics.instructions is None


def test_long_stays_are_cut_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadows, "LONGEST", 100)
    execution, observer = started(LOOP)
    assert execution.run().value == 19900
    assert compared(observer) > 20


@pytest.mark.nightly
def test_deep_recursion_that_leaves_the_host_s_stack_passes() -> None:
    text = "(define (down n) (if (= n 0) 0 (+ n (down (- n 1))))) (print! (down 30000))"
    execution, observer = started(text, policy(against="switch"))
    assert execution.run().output == "450015000\n"
    assert compared(observer) > 1


def test_a_trap_in_compiled_code_is_the_same_trap() -> None:
    text = (
        "(define i 0) (define v (make-array i64 50)) (while #t (array-set! v i i) (set! i (+ i 1)))"
    )
    execution, observer = started(text)
    plain = Engine("threaded").start(ferryvm.compile(text, "text.skiff"))
    found = []
    for one in (execution, plain):
        with pytest.raises(ferryvm.TrapError) as caught:
            one.run()
        found.append((str(caught.value), one.machine.snapshot()))
    assert found[0] == found[1]
    assert compared(observer) == entered(observer) == 1


def test_growth_and_host_calls_pass() -> None:
    text = """
    (define i 0) (define total 0)
    (while (< i 60)
      (define v (heap.alloc 32000))
      (i64.store 0 (+ v (* 8 i)) i)
      (set! total (+ total (i64.load 0 (+ v (* 8 i)))))
      (print! total)
      (set! i (+ i 1)))"""
    execution, observer = started(text, policy(against="switch"))
    plain = Engine("threaded").start(ferryvm.compile(text, "text.skiff"))
    assert execution.run().output == plain.run().output
    assert execution.machine.snapshot() == plain.machine.snapshot()
    assert execution.machine.control.hp > Limits().first_heap
    assert compared(observer) > 50


def test_forced_runs_pass() -> None:
    for forcing in (frozenset({Forcing.HOT}), frozenset({Forcing.HOT, Forcing.DEOPT})):
        execution, _ = started(LOOP)
        assert execution.run(forcing=forcing).value == 19900


def test_guards_that_fail_pass() -> None:
    text = """
    (define i 0) (define odd 0)
    (while (< i 400)
      (if (> i 200) (set! odd (+ odd (% i 2))))
      (set! i (+ i 1)))
    odd"""
    execution, observer = started(text, policy(threshold=20, speculate=True))
    assert execution.run().value == 100
    assert observer.placements[0].recompilations == 1
    assert compared(observer) == entered(observer) > 2


def test_forks_of_one_program_are_told_apart() -> None:
    execution, _ = started(LOOP)
    execution.run(fuel=300)
    fork = execution.fork()
    assert fork.run().value == execution.run().value == 19900


def test_transfers_are_still_observed() -> None:
    engine, observer = Engine(policy=policy()), Observer(transfers=True)
    observer.watch(engine)
    engine.start(ferryvm.compile(LOOP)).run()
    assert len(observer.transfers) == compared(observer) == 1


# --- interruption ---------------------------------------------------------------------------


def test_an_interrupt_seen_by_the_code_leaves_a_state_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadows, "SLICE", shadows.LONGEST)  # so that every stay is compared

    def interrupt(control: ControlBlock, status: int) -> int:
        control.interrupt = 1
        return status

    execution, observer = started(RECURSION, policy("wrong"), with_wrong(interrupt))
    times = 0
    while True:
        try:
            result = execution.run()
        except ProgramInterrupted:
            times += 1
        else:
            break
    assert result.output == "35990\n"
    assert times > 2
    assert compared(observer) == entered(observer)


def test_an_interrupt_while_the_shadow_runs_ends_in_the_shadow_s_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadows, "SLICE", 50)
    has_come = False

    def interrupt_once(control: ControlBlock, status: int) -> int:
        nonlocal has_come
        control.interrupt, has_come = int(not has_come), True
        return status

    execution, observer = started(LOOP, policy("wrong"), with_wrong(interrupt_once))
    with pytest.raises(ProgramInterrupted):
        execution.run(count=True)
    assert compared(observer) == 0
    plain = Engine("reference").start(ferryvm.compile(LOOP, "text.skiff"))
    plain.run(fuel=execution.instructions)
    stopped = execution.machine.snapshot()
    assert stopped.status is Status.INTERRUPTED
    plain.machine.control.status = Status.INTERRUPTED
    assert stopped == plain.machine.snapshot()
    assert execution.run(count=True).value == 19900
    assert execution.instructions == plain.run(count=True).statistics.instructions


# --- what cannot be a shadow ----------------------------------------------------------------


class Refusing(Interpreter):
    """One that takes no program, fails, or cannot count, as it is told."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name
        self.capabilities = Capabilities(fuel=name != "uncounted")

    def accepts(self, program: Verified) -> str | None:
        return "it does not like it" if self.name == "refusing" else None

    def prepare(self, program: Verified) -> Artifact:
        if self.name == "failing":
            raise ZeroDivisionError("on purpose")
        return Failing()


class Failing(Artifact):
    def enter(self, machine: Machine, counting: bool) -> Status:
        raise ZeroDivisionError("on purpose")


def with_refusing(name: str) -> Registry:
    return registry(Refusing(name), name="refusing")


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("refrence", UnknownNameError, "did you mean 'reference'"),
        ("llvm", BackendError, "the shadow 'llvm' runs no whole programs"),
    ],
)
def test_a_shadow_must_be_an_interpreter(name: str, kind: type[FerryError], message: str) -> None:
    with pytest.raises(kind, match=message):
        Engine(policy=policy(against=name))


def test_a_shadow_must_count() -> None:
    with pytest.raises(RefusalError, match="'uncounted' cannot count instructions; a shadow needs"):
        Engine(policy=policy(against="uncounted"), registry=with_refusing("uncounted"))


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("refusing", RefusalError, "the shadow 'refusing' refuses the program: it does not like"),
        ("failing", RefusalError, "'failing' failed in prepare: .*on purpose"),
        ("broken", BackendError, "the shadow 'broken' failed beside region main/loop.1: .*purpose"),
    ],
)
def test_a_shadow_that_refuses_or_fails_is_an_error(
    name: str, kind: type[FerryError], message: str
) -> None:
    engine = Engine(policy=policy(against=name), registry=with_refusing(name))
    with pytest.raises(kind, match=message):
        engine.start(ferryvm.compile(LOOP)).run()
