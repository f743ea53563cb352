# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads: the results, the output and the trap are those of the loop."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching, thread_pool
from ferryvm.engine.chunked_run import ChunkedRun
from ferryvm.engine.crew import crew
from ferryvm.engine.execution import Execution
from ferryvm.engine.installed_launch import SAMPLES_LEFT, LaunchActivity
from ferryvm.engine.interrupt import watch_until_freed
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.engine.team import Team
from ferryvm.engine.thread_pool import ThreadPool
from ferryvm.engine.transition import SiteState
from ferryvm.errors import FerryError
from ferryvm.isa import Trap
from ferryvm.item_range import LostItemsError, RangeOutcome
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import elements
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like, Within
from ferryvm.policy.predicate import Test, When
from ferryvm.thread import ThreadError

from .mixing import placements
from .parallel_program import (
    BODIES,
    EXCEPTION,
    HEAD,
    STORE,
    TRAPPING,
    UPDATE,
    policy,
    started,
)

pytestmark = pytest.mark.usefixtures("threads_at_once")


@pytest.mark.rotate("name", most=3)
@pytest.mark.parametrize("name", BODIES)
def test_results_and_output_are_those_of_the_loop(
    name: str, launched: list[tuple[int, int]]
) -> None:
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + BODIES[name])).run()
    execution = started(BODIES[name], threads=3)
    found = execution.run()
    assert launched or name == "prints always"  # each item leaves in front of the call
    assert (found.value, found.output) == (expected.value, expected.output)
    reference = Engine("threaded").start(ferryvm.assemble(HEAD + BODIES[name]))
    reference.run()
    assert execution.machine.snapshot() == reference.machine.snapshot()


def test_the_trap_is_that_of_the_lowest_item(launched: list[tuple[int, int]]) -> None:
    execution = started(TRAPPING, threads=3)
    with pytest.raises(ferryvm.TrapError) as raised:
        execution.run()
    assert launched
    assert raised.value.kind is Trap.INTEGER_DIVIDE_BY_ZERO
    assert "trap: integer division by zero, in item 411\n" in str(raised.value)
    machine = execution.machine
    assert machine.memory.stack[machine.control.fp - 3] == 411  # the item that trapped
    assert machine.objects is not None
    to = machine.memory.stack[machine.control.fp - 2]
    found = elements(machine.objects, to)
    assert [found[item] != 0 for item in (1, 410, 411)] == [True, True, False]


def test_exceptions_of_items_that_the_launching_function_catches_keep_the_order() -> None:
    text = (HEAD + EXCEPTION).replace("    local.get round", ":go_on\n    local.get round", 1)
    caught = ":caught\n    drop\n    jump go_on\n"
    caught += ".catch odd from again to over using caught depth 0\n"
    text = text.replace("    halt\n", f"    halt\n{caught}", 1)
    program = ferryvm.assemble(text)
    expected = Engine("threaded").start(program)
    execution = Engine(policy=policy(3)).start(program)
    assert execution.run().value == expected.run().value
    assert execution.machine.snapshot() == expected.machine.snapshot()


def test_items_that_use_what_an_update_returns_are_in_order(
    launched: list[tuple[int, int]],
) -> None:
    body = f"{UPDATE.replace('drop', '')}    local.set factor\n{STORE}"
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + body)).run()
    execution = started(body, threads=3)
    assert execution.run().value == expected.value
    assert not launched
    attempts = [attempt for each in placements(execution) for attempt in each.attempts]
    attempt = next(attempt for attempt in attempts if "launch" in attempt.region)
    assert attempt.reason.startswith("its items run in order: the result of an update is used at ")


def test_an_exception_of_an_item_leaves_the_launch(launched: list[tuple[int, int]]) -> None:
    with pytest.raises(ferryvm.TrapError, match="uncaught exception"):
        started(EXCEPTION, threads=3).run()
    assert launched


NEST = """
(define (put item to factor) (array-set! to item (+ (array-ref to item) (* item factor))))
(define (fill to rounds)
  (define round 0)
  (while (< round rounds) (for-each-item 500 (put to round)) (set! round (+ round 1))))
(define to (make-array i64 500))
(fill to 40)
(array-ref to 499)
"""


@pytest.mark.parametrize("kind", ["whole program", "function", "nest"])
def test_code_around_a_launch_leaves_for_it(kind: str, launched: list[tuple[int, int]]) -> None:
    options = Options(background=False, required=True, cache=False, threads=2)
    kinds = ("launch", kind.rpartition(" ")[2])
    when = When((Test("kind", tuple(map(Like, kinds))),))
    launches = Policy(
        rules=(Rule(when=when, backends=(Choice("llvm", options),)),),
        profile=Profile(loop_threshold=2, function_threshold=1),
        whole_program=kind == "whole program",
    )
    execution = Engine(policy=launches).start(ferryvm.compile(NEST))
    assert execution.run().value == 499 * sum(range(40))
    assert len(launched) >= 30  # the first ones were interpreted


def test_small_launches_stay_in_the_code_around_them(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "WORTH", 1e9)
    execution = Engine(policy=policy(2, whole_program=True)).start(ferryvm.compile(NEST))
    assert execution.run().value == 499 * sum(range(40))
    assert not launched
    (activity,) = activities(execution)
    assert activity.exits == 1  # to time items


def test_what_lanes_save_counts_and_not_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "WORTH", 1e-8)
    run, runs = ThreadedRanges.run, 0

    def fast(self: ThreadedRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        nonlocal runs
        runs += 1
        outcome = run(self, machine, first, limit)
        return dataclasses.replace(outcome, seconds=1e-6 * outcome.completed * 1e-6)

    monkeypatch.setattr(ThreadedRanges, "run", fast)
    execution = Engine(policy=policy(2, whole_program=True)).start(ferryvm.compile(NEST))
    assert execution.run().value == 499 * sum(range(40))
    assert runs >= 30  # with the time that it took, one would not be worth it


def test_one_thread_without_lanes_runs_the_code_itself(launched: list[tuple[int, int]]) -> None:
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + STORE)).run()
    assert started(STORE, threads=1, lanes=1).run().value == expected.value
    assert not launched


def test_without_room_for_a_record_the_code_runs_in_order(launched: list[tuple[int, int]]) -> None:
    body = STORE.replace(
        "i64.mul", "i64.mul\n    local.get to\n    local.get item\n    array.get_i64\n    i64.add"
    )
    program = ferryvm.assemble(HEAD + body)
    expected = Engine("threaded").start(program).run().value
    found = Engine(policy=policy(2), limits=Limits(objects=8000)).start(program).run().value
    assert launched
    assert found == expected


def test_exported_functions_launch_on_threads(launched: list[tuple[int, int]]) -> None:
    program = ferryvm.compile(
        "(define (put item to) (array-set! to item (* item item)))"
        "(define (squares n) (define to (make-array i64 n))"
        " (for-each-item n (put to)) (for-each-item n (put to)) (for-each-item n (put to)) to)"
        "(array-length (squares 1))"
    )
    options = Options(background=False, required=True, cache=False, threads=2)
    when = When((Test("kind", (Like("launch"),)),))
    launches = Policy(
        rules=(Rule(when=when, backends=(Choice("llvm", options),)),),
        profile=Profile(loop_threshold=2),
    )
    instance = Engine(policy=launches).instantiate(program)
    for _ in range(3):
        assert instance.squares(700).tolist() == [item * item for item in range(700)]
    assert launched


def test_threads_in_which_no_item_can_begin_are_not_asked_again(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Team, objects: ObjectMemory, first: int, limit: int, size: int) -> None:
        prepare(self, objects, first, limit, size)
        self._template.host_stack = (1 << 63) - 1  # no stack is left

    prepare = Team.prepare
    monkeypatch.setattr(Team, "prepare", full)
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + STORE)).run()
    assert started(STORE, threads=1, lanes=2).run().value == expected.value
    assert len(launched) == 1


CAUGHT = """
(define (put item to) (if (= item 400) (throw item) (array-set! to item item)))
(define (fill to) (for-each-item 500 (put to)))
(define to (make-array i64 500))
(define seen (try (fill to) 0 (catch (item) item)))
(+ seen (array-ref to 450))
"""


def test_launches_whose_items_throw_to_a_handler_elsewhere_keep_the_order(
    launched: list[tuple[int, int]],
) -> None:
    assert Engine(policy=policy(2)).start(ferryvm.compile(CAUGHT)).run().value == 400
    assert not launched


def test_a_forked_child_launches_on_threads_of_its_own(launched: list[tuple[int, int]]) -> None:
    expected = started(STORE, threads=2).run().value
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            launched.clear()
            is_right = started(STORE, threads=2).run().value == expected
            code = 0 if is_right and launched and crew().size == 1 else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_launches_run_in_a_thread_and_at_once(launched: list[tuple[int, int]]) -> None:
    found: list[object] = []

    def run() -> None:
        found.append(started(STORE, threads=2).run().value)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + STORE)).run().value
    assert found == [expected, expected]
    assert launched


def test_a_thread_that_fails_in_the_middle_ends_the_run(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows which items are done: to run them in order would do some of them twice."""

    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(ChunkedRun, "_left", failing)
    execution = started(BODIES["prints where it is divisible by 100"], threads=2, lanes=1)
    with pytest.raises(LostItemsError, match="a thread of a launch failed: MemoryError"):
        execution.run()
    assert launched
    with pytest.raises(FerryError, match="a thread of a launch failed"):
        execution.run()


def test_without_a_thread_items_run_in_order(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_run: object) -> None:
        raise ThreadError("a thread cannot be started: out of memory")

    monkeypatch.setattr(thread_pool, "start", refused)
    monkeypatch.setattr(thread_pool, "_pool", ThreadPool())
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + STORE)).run().value
    execution = started(STORE, threads=2)
    assert execution.run().value == expected
    assert len(launched) == 1
    (activity,) = activities(execution)
    assert "out of memory" in activity.stopped


def test_items_that_all_leave_run_in_order_after_some_samples() -> None:
    execution = started(BODIES["prints always"], threads=2)
    assert len(execution.run().output) == 4 * sum(len(str(item)) + 1 for item in range(600))
    (activity,) = activities(execution)
    assert "has to be done in order" in activity.stopped
    assert activity.exits == SAMPLES_LEFT


PROFILED = """
(define (put item from to) (define k 0) (define last (array-ref from item))
  (while (< k 30) (set! last (array-ref from item)) (set! k (+ k 1)))
  (array-set! to item 1.5))
(define from (make-array i32 400))
(define to (make-array f64 400))
(for-each-item 400 (put from to))
(for-each-item 400 (put from to))
(array-ref to 399)
"""


def test_rules_can_test_what_a_launch_has_shown(launched: list[tuple[int, int]]) -> None:
    options = Options(background=False, required=True, cache=False, threads=2)
    tests = [Test("kind", (Like("launch"),))]
    for name, least, most in (
        ("items", 400, 400),
        ("item_work", 250, 600),  # 30 iterations of some 12 instructions
        ("bytes_read", 1600, 1600),
        ("bytes_written", 3200, 3200),
    ):
        tests.append(Test(name, (Within(((">=", least), ("<=", most))),)))
    rules = (Rule(when=When(tuple(tests)), backends=(Choice("llvm", options),)),)
    chosen = Policy(rules=rules, profile=Profile(loop_threshold=300))
    execution = Engine(policy=chosen).start(ferryvm.compile(PROFILED))
    assert execution.run().value == 1.5
    assert launched


def activities(execution: Execution) -> list[LaunchActivity]:
    """The metrics of the launches of an execution."""
    artifact = execution._last
    assert isinstance(artifact, MixedArtifact)
    assert artifact.launches is not None
    return [*artifact.launches.activities.values()]


def test_code_for_threads_is_not_required_beside_code_that_runs_in_order() -> None:
    options = Options(background=False, required=True, cache=False, threads=2)
    nowhere = dataclasses.replace(options, device="nowhere")
    launches = When((Test("kind", (Like("launch"),)),))
    rules = (Rule(when=launches, backends=(Choice("llvm", nowhere),)), *policy(2).rules)
    chosen = Policy(rules=rules, whole_program=True)
    execution = Engine(policy=chosen).start(ferryvm.compile(NEST))
    assert execution.run().value == 499 * sum(range(40))
    artifact = execution._last
    assert isinstance(artifact, MixedArtifact)
    states = {placement.kind: placement.state for placement in artifact.journal.placements}
    assert states == {"program": SiteState.INSTALLED, "launch": SiteState.GIVEN_UP}


def test_many_items_run_in_slices(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "SLICE", 0.0)  # of one item each
    body = BODIES["prints where it is divisible by 100"]
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + body))
    execution = started(body, threads=3)
    assert execution.run().output == expected.run().output
    assert execution.machine.snapshot() == expected.machine.snapshot()
    assert {limit - first for first, limit in launched} == {1}


@pytest.mark.rotate("count", most=1)
@pytest.mark.parametrize("count", ["1 << 31", "1 << 62"])
def test_a_trap_is_told_however_many_items_there_are(
    count: str, launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "SLICE", 1e-4)
    a, _, b = count.split()
    program = ferryvm.compile(
        "(define (work item to) (if (= item 50000) (array-set! to -1 0)))"
        f"(define to (make-array i64 1)) (for-each-item (<< {a} {b}) (work to))"
    )
    options = Options(background=False, required=True, cache=False, threads=3)
    policy = Policy(
        rules=(Rule(backends=(Choice("llvm", options),)),), profile=Profile(loop_threshold=2)
    )
    with pytest.raises(ferryvm.TrapError, match="in item 50000"):
        Engine(policy=policy).start(program).run()
    assert launched


def test_ctrl_c_is_told_to_launches_that_run_without_a_wait() -> None:
    told, control = threading.Event(), ControlBlock()

    class Launch:
        def look(self) -> None: ...

        def stop_if_interrupted(self) -> None:
            if control.interrupt:
                told.set()

        def settle(self, number: int, outcome: object, floor: int) -> None: ...

    watch_until_freed(control)
    crew().flying[0] = Launch()
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert told.wait(60)
    finally:
        del crew().flying[0]
