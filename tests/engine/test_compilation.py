# SPDX-License-Identifier: Apache-2.0
"""Whatever becomes of a compilation, the program goes on, or ends with the reason why not."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.backend import BackendError, Code, CompilationError, MalformedError, RefusalError
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine import Execution, ProgramInterrupted, compilation
from ferryvm.engine.compilation import Job, submit
from ferryvm.engine.journal import Event, Outcome
from ferryvm.ir.operation import IrError
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.region.region import Region

from ..double.compiler import Gate, compile_by_llvm, with_compiler
from .mixing import (
    ENDLESS,
    entries,
    noticed,
    placements,
    policy,
    same_as_reference,
    start,
    state,
)

LOOP = ferryvm.compile("(define i 0) (while (< i 3000) (set! i (+ i 1))) i")


def interrupt(execution: Execution, wait: Callable[[], object]) -> None:
    """Run until an interrupt, which comes from another thread that has waited for something."""
    has_ended = threading.Event()

    def act() -> None:
        wait()
        while not has_ended.wait(0.001):  # the flag is cleared where a run begins
            execution.machine.control.interrupt = 1

    thread = threading.Thread(target=act)
    thread.start()
    try:
        with pytest.raises(ProgramInterrupted):
            execution.run()
    finally:
        has_ended.set()
        thread.join()


# --- refusing and failing -------------------------------------------------------------------


def test_each_backend_of_a_chain_is_asked_until_one_compiles() -> None:
    def fail(region: Region, options: CompileOptions) -> Code:
        raise BackendError("no registers left")

    execution = start(LOOP, policy("mine", "llvm", "mine"), with_compiler(fail))
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    first, second = placement.attempts
    assert (first.outcome, first.reason) == (Outcome.FAILED, "no registers left")
    assert second.backend == "llvm"
    assert (placement.state, entries(placement)) == ("installed", 1)


def test_a_region_that_nobody_takes_is_given_up_with_the_reasons() -> None:
    found = with_compiler(compile_by_llvm, reason="it has a loop")
    execution = start(LOOP, policy("mine", retry_after=0), found)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    (attempt,) = placement.attempts
    assert (attempt.outcome, attempt.reason) == (Outcome.REFUSED, "it has a loop")
    assert (placement.state, placement.code) == ("given up", None)


def test_a_region_that_was_given_up_is_tried_again_after_that_many_counts() -> None:
    asked: list[int] = []

    def compile_(region: Region, options: CompileOptions) -> Code:
        asked.append(execution.machine.control.fuel)
        if len(asked) < 4:
            raise RefusalError("not yet")
        return compile_by_llvm(region, options)

    execution = start(LOOP, policy("mine", retry_after=500), with_compiler(compile_))
    assert execution.run(fuel=1 << 40).value == 3000
    (placement,) = placements(execution)
    assert [a.outcome for a in placement.attempts[:3]] == [Outcome.REFUSED] * 3
    assert len(placement.attempts) == 4
    assert (placement.state, entries(placement)) == ("installed", 1)
    steps = {earlier - later for earlier, later in itertools.pairwise(asked)}
    assert steps == {499 * 8}  # the count at which it waits is one


def test_a_backend_with_a_threshold_of_its_own_is_asked_then_and_not_before() -> None:
    later = Choice("llvm", Options(threshold=1000, background=False))
    chosen = Policy(profile=Profile(True, 10, 10, 1), rules=(Rule(backends=(later,)),))
    execution = start(ENDLESS, chosen)
    execution.run(fuel=5 * 900)
    (placement,) = placements(execution)
    (skipped,) = placement.attempts
    assert (skipped.outcome, skipped.reason) == (Outcome.SKIPPED, "its threshold is 1000")
    assert placement.state == "counting"
    execution.run(fuel=5 * 99)
    assert placement.why == "reached 1000 times"
    assert placement.state == "installed"


def required(background: bool) -> Policy:
    return policy("mine", background=background, required=True)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        (RefusalError("too big"), RefusalError, "too big"),
        (BackendError("out of memory"), CompilationError, "out of memory"),
        (KeyError("x"), CompilationError, "it raised KeyError: 'x'"),
        (IrError("block b: no end"), MalformedError, "malformed IR: block b: no end"),
        (SystemExit(3), CompilationError, "it raised SystemExit: 3"),
        (KeyboardInterrupt(), CompilationError, "it raised KeyboardInterrupt"),
        (GeneratorExit(), CompilationError, "it raised GeneratorExit"),
        (RefusalError("two\nlines"), RefusalError, "two lines"),
    ],
)
@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
def test_what_is_required_and_cannot_be_had_is_an_error_in_every_run(
    error: BaseException, kind: type[Exception], reason: str, background: bool
) -> None:
    gate = Gate(error)
    gate.may.set()
    execution = start(ENDLESS, required(background), with_compiler(gate.compile))
    for _ in range(3):
        with pytest.raises(kind, match=f"backend 'mine': region main: {reason}"):
            execution.run()
    assert gate.regions == ["main"]


@pytest.mark.parametrize("source", ["7", "(/ 1 0)"], ids=["halt", "trap"])
def test_what_is_required_is_an_error_for_a_program_that_ends_first_too(source: str) -> None:
    gate = Gate(RefusalError("too big"))
    chosen = dataclasses.replace(required(True), whole_program=True)
    execution = start(ferryvm.compile(source), chosen, with_compiler(gate.compile))
    threading.Timer(0.05, gate.may.set).start()
    with pytest.raises(RefusalError, match="backend 'mine': region program: too big"):
        execution.run()
    assert execution.machine.status in (Status.HALT, Status.TRAP)


def test_a_refusal_without_a_thread_to_compile_in_is_an_error_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compilation, "submit", Job.run)
    found = with_compiler(compile_by_llvm, reason="not this one")
    chosen = dataclasses.replace(required(True), whole_program=True)
    with pytest.raises(RefusalError, match="region program: not this one"):
        start(LOOP, chosen, found).run()


def test_ctrl_c_ends_the_waiting_for_what_is_required() -> None:
    gate = Gate()
    chosen = dataclasses.replace(required(True), whole_program=True)
    execution = start(ferryvm.compile("7"), chosen, with_compiler(gate.compile))

    def interrupt_it() -> None:
        assert gate.began.wait(60)
        while execution.machine.status is not Status.HALT:
            time.sleep(0.001)
        execution.machine.control.interrupt = 1

    thread = threading.Thread(target=interrupt_it)
    thread.start()
    assert execution.run().value == 7
    thread.join()
    gate.may.set()


def test_a_copy_of_a_program_that_may_not_run_may_not_run_either() -> None:
    gate = Gate(RefusalError("no"))
    gate.may.set()
    execution = start(ENDLESS, required(False), with_compiler(gate.compile))
    with pytest.raises(RefusalError):
        execution.run()
    for copy in (execution.again(), execution.fork()):
        with pytest.raises(RefusalError, match="backend 'mine': region main: no"):
            copy.run()


def test_what_breaks_outside_the_backends_is_told_and_the_program_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def facts(*_arguments: object) -> None:
        raise ZeroDivisionError("a fact")

    monkeypatch.setattr("ferryvm.region.fact.facts", facts)
    execution = start(LOOP, policy())
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert placement.state == "given up"
    assert placement.decision.startswith("it could not be done: ZeroDivisionError: a fact")
    assert "a fact" in caplog.text
    required_too = start(LOOP, policy(required=True))
    with pytest.raises(BackendError, match="ZeroDivisionError: a fact"):
        required_too.run()


# --- waiting and interrupting ---------------------------------------------------------------


def test_a_compiler_that_takes_its_time_in_the_background_stops_nobody() -> None:
    gate = Gate()
    execution = start(LOOP, policy("mine", background=True), with_compiler(gate.compile))
    installed = noticed(execution, Event.INSTALLED)
    assert execution.run().value == 3000
    assert gate.began.wait(60)
    (placement,) = placements(execution)
    assert (placement.state, placement.attempts) == ("compiling", [])
    gate.may.set()
    assert installed.wait(60)
    assert execution.again().run().value == 3000
    assert entries(placement) == 1


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
def test_an_interrupt_is_seen_while_code_is_compiled_and_the_run_goes_on_after(
    background: bool,
) -> None:
    gate = Gate()
    execution = start(ENDLESS, policy("mine", background=background), with_compiler(gate.compile))
    installed = noticed(execution, Event.INSTALLED)
    interrupt(execution, gate.began.wait)
    seen = state(execution)
    if not background:
        assert (seen.pc, seen.statics) == (0, (19).to_bytes(8, "little"))
    gate.may.set()
    (placement,) = placements(execution)

    def wait_until_entered() -> None:
        assert installed.wait(60)
        while not entries(placement):
            pass

    interrupt(execution, wait_until_entered)
    assert execution.machine.memory.statics[0] > int.from_bytes(seen.statics, "little")


def test_the_next_run_waits_for_what_an_interrupted_one_waited_for() -> None:
    gate = Gate(RefusalError("too big"))
    execution = start(ENDLESS, required(False), with_compiler(gate.compile))
    for _ in range(3):
        interrupt(execution, gate.began.wait)
    assert execution.machine.memory.statics[0] == 19
    gate.may.set()
    with pytest.raises(RefusalError, match="too big"):
        execution.run()
    assert execution.machine.memory.statics[0] == 19


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
def test_ctrl_c_is_heard_while_code_is_compiled(background: bool) -> None:
    gate = Gate()
    execution = start(ENDLESS, policy("mine", background=background), with_compiler(gate.compile))

    def kill() -> None:
        gate.began.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(ProgramInterrupted):
        execution.run()
    assert not gate.may.is_set()
    gate.may.set()


def test_a_job_that_is_done_at_once_is_a_job_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "submit", Job.run)
    for background in (False, True):
        chosen = policy(background=background, speculate=True, guard_limit=3)
        late = "(define i 0) (define n 0) (while (< i 500) (if (> i 300) (set! n (+ n i)))"
        execution = start(ferryvm.compile(f"{late} (set! i (+ i 1))) n"), chosen)
        assert execution.run().value == sum(range(301, 500))
        (placement,) = placements(execution)
        assert (placement.state, placement.recompilations) == ("installed", 1)


# --- delay ----------------------------------------------------------------------------------


def delayed(milliseconds: int, background: bool = True, name: str = "llvm") -> Policy:
    """A policy whose hot places go on in the interpreter for so long."""
    chosen = policy(name, background=background)
    profile = dataclasses.replace(chosen.profile, delay_ms=milliseconds)
    return dataclasses.replace(chosen, profile=profile)


def test_a_program_that_ends_within_the_delay_is_not_compiled_for() -> None:
    gate = Gate()
    execution = start(LOOP, delayed(60_000, name="mine"), with_compiler(gate.compile))
    same_as_reference(LOOP, execution)
    (placement,) = placements(execution)
    assert (placement.state, placement.attempts, gate.regions) == ("queued", [], [])


def test_a_program_that_goes_on_is_compiled_after_the_delay() -> None:
    execution = start(ENDLESS, delayed(30))
    hot, installed = noticed(execution, Event.HOT), noticed(execution, Event.INSTALLED)
    times: list[float] = []

    def wait() -> None:
        for event in (hot, installed):
            assert event.wait(60)
            times.append(time.monotonic())

    interrupt(execution, wait)
    assert times[1] - times[0] >= 0.025
    assert [p.state for p in placements(execution)] == ["installed"]


def test_whoever_waits_for_code_does_not_wait_for_the_delay() -> None:
    execution = start(LOOP, delayed(60_000, background=False))
    same_as_reference(LOOP, execution)
    assert [p.state for p in placements(execution)] == ["installed"]


def test_jobs_that_are_due_go_before_those_that_are_not() -> None:
    order: list[str] = []
    late = Job(lambda: order.append("late"), delay=0.2)
    soon = Job(lambda: order.append("soon"))
    submit(late)
    submit(soon)
    control = ControlBlock()
    assert late.wait(control)
    assert soon.wait(control)
    assert order == ["soon", "late"]


def test_jobs_behind_one_that_gets_no_memory_are_done(caplog: pytest.LogCaptureFixture) -> None:
    def short() -> None:
        raise MemoryError

    done: list[int] = []
    jobs = [Job(short), Job(lambda: done.append(1))]
    for job in jobs:
        submit(job)
    control = ControlBlock()
    assert all(job.wait(control, to_the_end=True) for job in jobs)
    assert done == [1]
    assert caplog.messages == ["out of memory: something in the background was given up"]
