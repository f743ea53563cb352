# SPDX-License-Identifier: Apache-2.0
"""Launches whose code leaves out what their first items did not do: the items that do it are
suspended in front of that, their share decides if the guess is kept, and a wrong one is not made
again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Code
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine import installed_launch, launching
from ferryvm.engine.execution import Execution
from ferryvm.engine.explain import explain
from ferryvm.engine.guess import CHANGED, WRONG, Guess
from ferryvm.engine.journal import Placement
from ferryvm.engine.observer import Observer
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.isa.type import CANONICAL_NAN, F64
from ferryvm.machine.chunk import ChunkLoop
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region.known_word import KnownWord
from ferryvm.region.region import Region

from ..double.compiler import LLVM, FunctionCompiler, compile_by_llvm
from ..double.registry import registry
from ..launching import ranges_of
from ..tier import nightly
from .driving import On, State, drives, tiering
from .mixing import placements
from .parallel_program import HEAD, ITEMS, STORE

RARE = f"""
    local.get item
    i64.const 100
    i64.rem_s
    i64.const 99
    i64.eq
    jump_unless store
    local.get to
    local.get item
    local.get item
    array.set_i64
    return
:store
{STORE}"""
"""One item in a hundred takes a branch."""

FAILING = 4 * ITEMS // 100
"""Items that do, in four launches of `ITEMS`."""


@pytest.fixture(autouse=True)
def _threads_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads are woken for any work, and nothing depends on the time of items."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    monkeypatch.setattr(installed_launch, "SUSPENSION", 0.0)
    return


def guessing(lanes: int = 1, backend: str = "llvm", **options: float) -> Policy:
    chosen = Options(
        background=False,
        speculate=True,
        cache=False,
        threads=3,
        lanes=lanes,
        observe_items=20,
        **options,  # type: ignore[arg-type]  # by name
    )
    when = When((Test("kind", (Like("launch"),)),))
    rules = (Rule(when=when, backends=(Choice(backend, chosen),)),)
    return Policy(rules=rules, profile=Profile(loop_threshold=2))


def ran(text: str, chosen: Policy) -> Execution:
    """A run that ended in the state of the loop in order."""
    execution, reference = (
        Engine(policy=chosen).start(ferryvm.assemble(text)),
        Engine("threaded").start(ferryvm.assemble(text)),
    )
    execution.run()
    reference.run()
    assert execution.machine.snapshot() == reference.machine.snapshot()
    return execution


def launches(execution: Execution) -> list[Placement]:
    return [one for one in placements(execution) if one.kind == "launch"]


def paths(launch: Placement) -> list[Guess]:
    return [guess for guess in launch.guesses if not isinstance(guess.subject, KnownWord)]


def words(launch: Placement) -> list[tuple[bool, int, int, str]]:
    """Kind, number and value of the words that a launch's code took for constant, and the reason
    that it does not any more."""
    found = [(guess.subject, guess.outcome) for guess in launch.guesses]
    return [(*word, outcome) for word, outcome in found if isinstance(word, KnownWord)]


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.rotate("lanes")
def test_items_that_fail_a_guess_are_suspended_and_their_share_keeps_it(
    lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = ranges_of(ThreadedRanges, monkeypatch)
    (launch,) = launches(ran(HEAD + RARE, guessing(lanes, guard_share=0.1)))
    assert ranges
    (activity,) = launch.launches
    assert [*activity.failures.values()] == [FAILING]
    assert 0 < activity.suspended <= FAILING
    (path,) = paths(launch)
    assert ([path.subject[0]], path.outcome) == ([*activity.failures], "")
    assert ([one.guards for one in launch.attempts], launch.recompilations) == ([1], 0)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.rotate("lanes")
@drives((State.INSTALLED, On.DOUBTED))
def test_code_is_made_again_without_a_guess_that_too_many_items_fail(lanes: int) -> Execution:
    execution = ran(HEAD + RARE, guessing(lanes, guard_limit=3, guard_share=0.001))
    (launch,) = launches(execution)
    assert ([one.guards for one in launch.attempts], launch.recompilations) == ([1, 0], 1)
    first, second = launch.launches
    assert 3 <= sum(first.failures.values()) <= FAILING
    assert (second.failures, second.suspended) == ({}, 0)
    (guess,) = paths(launch)
    assert guess.outcome == WRONG
    return execution


def test_code_of_vliw_is_made_again_without_a_guess_that_failed() -> None:
    execution = ran(HEAD + RARE, guessing(backend="vliw", guard_limit=3, optimize=1))
    (launch,) = launches(execution)
    assert ([one.guards for one in launch.attempts], launch.recompilations) == ([1, 0], 1)
    activities = [one.code.activity() for one in launch.attempts if one.code is not None]
    (failures,) = [[*one.failures.values()] for one in activities if one.failures]
    assert failures == [3]
    (path,) = paths(launch)
    assert path.outcome == WRONG
    assert words(launch) == [(False, 1, 3, "")]


def test_a_guess_that_failed_is_not_made_again_for_another_launch() -> None:
    text = """
(define (work item to)
  (array-set! to item item)
  (if (= (% item 50) 49) (array-set! to item 7)))
(define to (make-array i64 600))
(for-each-item 600 (work to))
(for-each-item 600 (work to))"""
    chosen = guessing(guard_limit=2, guard_share=0.001)
    execution = Engine(policy=chosen).start(ferryvm.compile(text))
    execution.run()
    first, second = launches(execution)
    assert [guess.outcome for guess in paths(first)] == [
        "wrong too often: compiled again without it"
    ]
    assert [guess.outcome for guess in paths(second)] == ["not made again: it failed before"]
    assert [one.guards for one in second.attempts] == [0]


def test_a_branch_of_a_callee_that_no_observed_item_came_to_is_no_guess() -> None:
    text = """
(define (rarely item to) (if (> item 300) (array-set! to item 1)))
(define (work item to)
  (array-set! to item item)
  (if (> item 200) (rarely item to)))
(define to (make-array i64 600))
(for-each-item 600 (work to))"""
    execution = Engine(policy=guessing(guard_share=1.0)).start(ferryvm.compile(text))
    execution.run()
    (launch,) = launches(execution)
    assert len(paths(launch)) == 1
    assert sum(launch.launches[0].failures.values()) == 600 - 201


CHANGING = """
(define every 7)
(define (work item to step scale)
  (array-set! to item (+ (* scale (% item every)) (/ item step))))
(define to (make-array i64 600))
(define round 0)
(while (< round 8)
  (for-each-item 600 (work to (+ 3 (/ round 4)) 5))
  (set! round (+ round 1))
  (if (= round 6) (set! every 9)))
(print! (array-ref to 0) (array-ref to 599))"""
"""An argument is 3 in four launches and 4 in four more; a static changes, too; another argument
does not."""


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.rotate("lanes")
def test_arguments_and_statics_are_constants_until_they_change(lanes: int) -> None:
    program = ferryvm.compile(CHANGING)
    execution = Engine(policy=guessing(lanes)).start(program)
    expected = Engine("threaded").start(program)
    assert execution.run().output == expected.run().output
    assert execution.machine.snapshot() == expected.machine.snapshot()
    launch = launches(execution)[0]
    numbers = [static.name for static in program.statics]
    assert sorted(words(launch)) == [
        (False, 1, 3, CHANGED),
        (False, 2, 5, ""),
        (True, numbers.index("every"), 7, CHANGED),
    ]
    assert launch.recompilations == 2
    assert all(one.times for one in launch.launches)


@pytest.mark.rotate("backend", most=1)
@pytest.mark.parametrize("backend", ["llvm", "vliw", nightly("opencl")])
def test_floats_are_constants_by_their_bits(backend: str) -> None:
    """A static is -0, then 0; another one stays NaN, and an argument of f32 stays -0."""
    text = """
(define shift -0.0)
(define gap (/ 0.0 0.0))
(define (work item to (small f32))
  (array-set! to item (+ (/ 1.0 shift) (if (= gap gap) 1.0 (/ 2.0 (f64 small))))))
(define to (make-array f64 40))
(define round 0)
(while (< round 5)
  (for-each-item 40 (work to (f32 -0.0)))
  (set! round (+ round 1))
  (print! (array-ref to 0))
  (if (= round 3) (set! shift 0.0)))"""
    program = ferryvm.compile(text)
    engine, observer = Engine(policy=guessing(backend=backend)), Observer()
    observer.watch(engine)
    execution = engine.start(program)
    expected = Engine("threaded").start(program)
    assert execution.run().output == expected.run().output == 3 * "-inf\n" + 2 * "nan\n"
    assert execution.machine.snapshot() == expected.machine.snapshot()
    launch = launches(execution)[0]
    numbers = {static.name: number for number, static in enumerate(program.statics)}
    assert sorted(words(launch)) == [
        (False, 1, 1 << 31, ""),
        (True, numbers["shift"], 1 << 63, CHANGED),
        (True, numbers["gap"], CANONICAL_NAN[F64], ""),
    ]
    assert launch.recompilations == 1
    regions = explain(execution, observer, "halt").regions
    (guesses,) = [one.guesses for one in regions if one.guesses]
    assert "argument small of the items is -0.0: kept" in guesses
    assert "static gap is nan: kept" in guesses


@pytest.mark.nightly  # its kernels take seconds to build
def test_work_items_take_words_for_constant_until_they_change() -> None:
    program = ferryvm.compile(CHANGING)
    execution = Engine(policy=guessing(backend="opencl")).start(program)
    expected = Engine("threaded").start(program)
    assert execution.run().output == expected.run().output
    launch = launches(execution)[0]
    assert [outcome for *_, outcome in sorted(words(launch))] == [CHANGED, "", CHANGED]
    assert any(one.times for one in launch.launches)


def test_words_that_an_item_writes_are_not_taken_for_constant() -> None:
    text = """
(define seen 0)
(define limit 500)
(define (work item to)
  (array-set! to item (+ item limit))
  (if (= item 0) (set! seen (+ seen limit))))
(define to (make-array i64 600))
(define round 0)
(while (< round 3) (for-each-item 600 (work to)) (set! round (+ round 1)))
(print! seen)"""
    program = ferryvm.compile(text)
    execution = Engine(policy=guessing()).start(program)
    assert execution.run().output == "1500\n"
    (launch,) = launches(execution)
    (word,) = words(launch)
    assert program.statics[word[1]].name == "limit"


class _OwnLlvm(FunctionCompiler):
    """Compiles by a function, as llvm can."""

    capabilities = LLVM.capabilities

    def chunk_loop(self) -> ChunkLoop | None:
        return LLVM.chunk_loop()


@drives((State.RECOMPILING, On.GUARD))
def test_a_word_that_changes_while_code_is_made_again_ends_that_code() -> Execution:
    compiled: list[CompileOptions] = []

    def compile_(region: Region, options: CompileOptions) -> Code:
        compiled.append(options)
        if len(compiled) == 2:
            sites = tiering(execution)
            site = sites.sites[region.entry, False]
            sites.guess_failed(site.pc, site.known)
        return compile_by_llvm(region, options)

    program = ferryvm.assemble(HEAD + RARE)
    found = registry(_OwnLlvm(compile_), name="mine")
    chosen = guessing(backend="mine", guard_limit=3, guard_share=0.001)
    execution = Engine(policy=chosen, registry=found).start(program)
    execution.run()
    (launch,) = launches(execution)
    assert [len(options.known) for options in compiled] == [1, 1, 0]
    assert words(launch) == [(False, 1, 3, CHANGED)]
    assert ([one.guards for one in launch.attempts], launch.state) == ([1, 0, 0], State.INSTALLED)
    expected = Engine("threaded").start(program)
    expected.run()
    assert execution.machine.snapshot() == expected.machine.snapshot()
    return execution
