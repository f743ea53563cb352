# SPDX-License-Identifier: Apache-2.0
"""Launches whose code leaves out what their first items did not do: the items that do it are suspended
in front of that, their share decides if the guess is kept, and a wrong one is not made again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching
from ferryvm.engine.execution import Execution
from ferryvm.engine.journal import Placement
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.policy import Choice, Options, Policy, Profile, Rule

from ..launching import ranges_of
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
    """Threads are woken for any work."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    return


def guessing(lanes: int = 1, **options: float) -> Policy:
    chosen = Options(
        background=False,
        speculate=True,
        cache=False,
        threads=3,
        lanes=lanes,
        observe_items=20,
        **options,  # type: ignore[arg-type]  # by name
    )
    rules = (Rule(backends=(Choice("llvm", chosen),)),)
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
    assert [(guess.branch, guess.outcome) for guess in launch.guesses] == [(*activity.failures, "")]
    assert ([one.guards for one in launch.attempts], launch.recompilations) == ([1], 0)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.rotate("lanes")
def test_code_is_made_again_without_a_guess_that_too_many_items_fail(lanes: int) -> None:
    (launch,) = launches(ran(HEAD + RARE, guessing(lanes, guard_limit=3, guard_share=0.001)))
    assert ([one.guards for one in launch.attempts], launch.recompilations) == ([1, 0], 1)
    first, second = launch.launches
    assert 3 <= sum(first.failures.values()) <= FAILING
    assert (second.failures, second.suspended) == ({}, 0)
    (guess,) = launch.guesses
    assert guess.outcome == "wrong too often: compiled again without it"


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
    assert [guess.outcome for guess in first.guesses] == [
        "wrong too often: compiled again without it"
    ]
    assert [guess.outcome for guess in second.guesses] == ["not made again: it failed before"]
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
    assert len(launch.guesses) == 1
    assert sum(launch.launches[0].failures.values()) == 600 - 201
