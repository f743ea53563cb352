# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads, by C code: results, output and traps are those of the loop."""

from __future__ import annotations

import ferryvm
import pytest
from ferryvm.engine import Engine, installed_launch, launching
from ferryvm.engine.execution import Execution
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm.policy import Policy
from ferryvm.policy.model import build_ours

PROGRAM = """
(define (put item to factor) (array-set! to item {value}))
(define (fill to rounds)
  (define round 0)
  (while (< round rounds) (for-each-item 600 (put to round)) (set! round (+ round 1))))
(define to (make-array i64 600))
(fill to 4)
(define sum 0)
(define at 0)
(while (< at 600) (set! sum (+ (* 31 sum) (array-ref to at))) (set! at (+ at 1)))
sum
"""

VALUES = {
    "multiplies": "(* item factor)",
    "prints now and then": "(begin (if (= (% item 100) 7) (print! item)) (+ item factor))",
    "makes an object": "(array-ref (array i64 item factor) 0)",
}


@pytest.fixture(autouse=True)
def _threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are woken for any work."""
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[RangeOutcome]:
    """The outcomes of the ranges that several threads have run."""
    found: list[RangeOutcome] = []
    run = ThreadedRanges.run

    def noted(self: ThreadedRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        outcome = run(self, machine, first, limit)
        found.append(outcome)
        return outcome

    monkeypatch.setattr(ThreadedRanges, "run", noted)
    return found


def policy(is_whole: bool = False, **more: object) -> Policy:
    """Launches, or everything, by cc on three threads."""
    choice = {
        "name": "cc",
        "threads": 3,
        "background": False,
        "required": True,
        "cache": False,
        **more,
    }
    rules = [{"when": {"kind": "launch"}, "backends": [choice]}]
    if is_whole:
        rules.append({"backends": [choice]})
    profile = {"loop_threshold": 1}
    return build_ours({"profile": profile, "whole_program": is_whole, "rule": rules})


def started(value: str, *, is_whole: bool = False) -> Execution:
    program = ferryvm.compile(PROGRAM.format(value=value))
    return Engine(policy=policy(is_whole)).start(program)


@pytest.mark.parametrize("name", VALUES)
def test_results_and_output_are_those_of_the_loop(name: str, outcomes: list[RangeOutcome]) -> None:
    execution = started(VALUES[name])
    found = execution.run()
    interpreted = Engine("threaded").start(ferryvm.compile(PROGRAM.format(value=VALUES[name])))
    expected = interpreted.run()
    assert (found.value, found.output) == (expected.value, expected.output)
    assert execution.machine.snapshot() == interpreted.machine.snapshot()
    assert sum(outcome.completed for outcome in outcomes) >= 1500
    assert any(outcome.suspended for outcome in outcomes) == ("prints" in name)


def test_the_trap_is_that_of_the_lowest_item(outcomes: list[RangeOutcome]) -> None:
    with pytest.raises(ferryvm.TrapError) as raised:
        started("(/ 100 (* (- item 411) (- item 499)))").run()
    assert "trap: integer division by zero, in item 411\n" in str(raised.value)
    assert any(outcome.suspended for outcome in outcomes)


def test_code_of_the_whole_program_leaves_for_a_launch(outcomes: list[RangeOutcome]) -> None:
    value = started(VALUES["multiplies"], is_whole=True).run().value
    expected = ferryvm.run(ferryvm.compile(PROGRAM.format(value=VALUES["multiplies"])), "threaded")
    assert value == expected.value
    assert sum(outcome.completed for outcome in outcomes) >= 1500


def test_items_that_fail_a_guess_are_suspended(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[RangeOutcome]
) -> None:
    monkeypatch.setattr(installed_launch, "SUSPENSION", 0.0)
    value = "(if (= (% item 100) 99) (- factor item) (* item factor))"
    program = ferryvm.compile(PROGRAM.format(value=value))
    guessing = policy(speculate=True, observe_items=20, guard_share=1.0)
    found = Engine(policy=guessing).start(program).run()
    assert found.value == ferryvm.run(program, "threaded").value
    assert sum(sum(outcome.stops.values()) for outcome in outcomes)
