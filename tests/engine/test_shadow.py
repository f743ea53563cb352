# SPDX-License-Identifier: Apache-2.0
"""The shadow run: compiled code that is right passes, and whatever is wrong with it is caught."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm.backend import (
    Activity,
    Artifact,
    BackendError,
    Capabilities,
    Code,
    Compiler,
    Forcing,
    Interpreter,
    RefusalError,
)
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine import Engine, Execution, ProgramInterrupted
from ferryvm.engine import shadow as shadows
from ferryvm.engine.explain import explain
from ferryvm.engine.observe import Observer
from ferryvm.engine.shadow import ShadowError
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Options, Policy, Profile, Rule, Shadow, load
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.verify import Verified

ROOT = Path(__file__).parents[2]
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
LOOP = """
(define total 0) (define i 0) (define v (make-vector i64 8))
(while (< i 200)
  (vector-set! v (% i 8) i)
  (set! total (+ total (vector-ref v (% i 8))))
  (set! i (+ i 1)))
(print! total)
total"""
RECURSION = """
(define (down n) (if (= n 0) 0 (+ n (down (- n 1)))))
(define i 0) (define total 0)
(while (< i 60) (set! total (+ total (down i))) (set! i (+ i 1)))
(print! total)
total"""
SIZE = (1 << 64) - 1

Tamper = Callable[[ControlBlock, int], int]
"""What a wrong compiler's code does to the state after the right code has left, and its status."""


class Wrong(Code):
    """Right code, with something done to the state afterwards."""

    def __init__(self, code: Code, tamper: Tamper) -> None:
        self.code = code
        right = FUNCTION(code.address)

        def run(block: int) -> int:
            number = right(block)
            return tamper(ControlBlock.from_address(block), number)

        self.function = FUNCTION(run)
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        assert address is not None
        self.address = address
        self.is_from_cache, self.notes = code.is_from_cache, code.notes

    def activity(self) -> Activity:
        return self.code.activity()


def with_wrong(tamper: Tamper) -> Registry:
    """Ours, and a compiler `wrong`."""
    made = Registry()

    class WrongCompiler(Compiler):
        name, version = "wrong", "1"
        capabilities = Capabilities(forcing=frozenset(Forcing))

        def compile(self, region: Region, options: CompileOptions) -> Code:
            right = made.get("llvm")
            assert isinstance(right, Compiler)
            return Wrong(right.compile(region, options), tamper)

    class Plugin:
        ferryvm_backends = staticmethod(hookimpl(lambda: [BackendEntry("wrong", WrongCompiler)]))

    made.register(Plugin, "wrong")
    return made


def policy(
    backend: str = "llvm", against: str = "reference", threshold: int = 5, speculate: bool = False
) -> Policy:
    """Whatever is hot is compiled at once, with a shadow beside."""
    options = Options(background=False, cache=True, speculate=speculate, guard_limit=2)
    rule = Rule("hot", backends=(Choice(backend, options),))
    profile = Profile(True, threshold, threshold, 1)
    return Policy(profile=profile, rules=(rule,), shadow=Shadow(against))


def started(
    text: str, chosen: Policy | None = None, registry: Registry | None = None
) -> tuple[Execution, Observer]:
    """A program at its start, observed."""
    engine = Engine(policy=chosen or policy(), registry=registry)
    observer = Observer()
    observer.watch(engine)
    return engine.start(ferryvm.compile(text, "text.skiff")), observer


def compared(observer: Observer) -> int:
    """Stays in compiled code that were compared."""
    return sum(placement.compared for placement in observer.placements)


def entered(observer: Observer) -> int:
    """Stays in compiled code."""
    return sum(did.entries for place in observer.placements for _, did in place.activity())


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


@pytest.mark.parametrize(
    "name", ["factorial.fasm", "hello.fasm", "vectors.skiff", "conversions.skiff", "traps.skiff"]
)
def test_examples_pass_the_paranoid_policy(name: str) -> None:
    registry = Registry()
    paranoid = load(ROOT / "configs" / "paranoid.toml", registry.names)
    program = ferryvm.read(ROOT / "examples" / name)
    states = []
    for engine in (Engine(policy=paranoid, registry=registry), Engine("threaded")):
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


def test_deep_recursion_that_leaves_the_host_s_stack_passes() -> None:
    text = "(define (down n) (if (= n 0) 0 (+ n (down (- n 1))))) (print! (down 30000))"
    execution, observer = started(text, policy(against="switch"))
    assert execution.run().output == "450015000\n"
    assert compared(observer) > 1


def test_a_trap_in_compiled_code_is_the_same_trap() -> None:
    text = "(define i 0) (define v (make-vector i64 50)) (while #t (vector-set! v i i) (set! i (+ i 1)))"
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
      (define v (make-vector i64 4000))
      (vector-set! v i i)
      (set! total (+ total (vector-ref v i)))
      (print! total)
      (set! i (+ i 1)))"""
    execution, observer = started(text, policy(against="switch"))
    plain = Engine("threaded").start(ferryvm.compile(text, "text.skiff"))
    assert execution.run().output == plain.run().output
    assert execution.machine.snapshot() == plain.machine.snapshot()
    assert execution.machine.control.hp > Limits().first_heap
    assert compared(observer) > 50


def test_forced_runs_pass() -> None:
    for forcing in (frozenset({Forcing.HOT}), frozenset(Forcing)):
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


# --- wrong code -----------------------------------------------------------------------------


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
    class Plugin:
        ferryvm_backends = staticmethod(
            hookimpl(lambda: [BackendEntry(name, lambda: Refusing(name))])
        )

    made = Registry()
    made.register(Plugin, "refusing")
    return made


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
