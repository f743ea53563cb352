# SPDX-License-Identifier: Apache-2.0
"""Code without the ways that were never taken: its guards, and what becomes of it when they
fail."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine import Engine, Execution
from ferryvm.engine.journal import Event, Placement
from ferryvm.policy import Policy
from ferryvm.program import Program

from ..tier import nightly, sample
from .mixing import end, entries, listen, placements, policy, start, state

LATE = ferryvm.compile("""
(define i 0) (define rare 0) (define s 0)
(while (< i 3000)
  (set! s (+ s (* i 3)))
  (if (> i 2000) (set! rare (+ rare s)))
  (set! i (+ i 1)))
(print! rare s)""")
"""A loop with one way that is first taken at the 2001st time round, 999 times in all."""


def speculating(**options: bool | int) -> Policy:
    return policy(threshold=100, speculate=True, **options)


def ran(program: Program, chosen: Policy, count: bool = False) -> Execution:
    """A run that ended as the reference's does, in the same state."""
    execution = start(program, chosen)
    assert end(execution, count) == end(Engine("reference").start(program))
    return execution


def guards(placement: Placement) -> list[int]:
    """The guards of each code of a place."""
    return [attempt.guards for attempt in placement.attempts]


def failures(placement: Placement) -> list[int]:
    """How often guards failed, of each code of a place."""
    return [sum(activity.failures.values()) for _, activity in placement.activity()]


def test_without_speculation_code_has_every_way() -> None:
    (placement,) = placements(ran(LATE, policy(threshold=100)))
    assert (guards(placement), entries(placement)) == ([0], 1)


@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
def test_a_guard_that_fails_goes_on_in_the_interpreter_and_is_counted(count: bool) -> None:
    (placement,) = placements(ran(LATE, speculating(), count))
    assert (guards(placement), placement.recompilations) == ([1], 0)
    # 999 times it leaves in front of the branch, and is entered again at the head of the loop.
    assert failures(placement) == [999]
    assert entries(placement) == 1000


def test_what_has_no_branch_to_watch_is_compiled_when_it_is_hot() -> None:
    text = "(define (f x) (* x 3)) (define i 0) (while (< i 80) (f i) (f i) (set! i (+ i 1))) i"
    (placement,) = placements(ran(ferryvm.compile(text), speculating()))
    assert placement.why == "reached 100 times"


@pytest.mark.rotate("limit", most=1)
@pytest.mark.parametrize("limit", [1, 2, 500])
def test_code_whose_guard_failed_that_often_is_made_again_without_it(limit: int) -> None:
    (placement,) = placements(ran(LATE, speculating(guard_limit=limit)))
    assert (guards(placement), placement.recompilations) == ([1, 0], 1)
    assert failures(placement) == [limit, 0]
    assert (placement.state, entries(placement)) == ("installed", limit + 1)


def test_state_in_front_of_a_branch_is_exact_when_its_guard_fails() -> None:
    whole = start(LATE, speculating(guard_limit=7))
    whole.run(count=True)
    (placement,) = placements(whole)
    (branch,) = placement.activity()[0][1].failures
    expected = Engine("reference").start(LATE)
    expected.run(fuel=2001 * 9)
    seen = 0
    for fuel in range(2001 * 9, 2010 * 20):
        execution = whole.again()
        execution.run(fuel=fuel)
        assert state(execution) == state(expected)
        seen += execution.machine.control.pc == branch
        if seen == 8:
            return
        expected.run(fuel=1)
    pytest.fail("the branch was not reached")


def test_a_failed_guard_is_told_then_its_code_is_removed_then_the_next_installed() -> None:
    told: list[Event] = []
    execution = start(LATE, speculating(guard_limit=10))

    def note(event: Event, _placement: Placement) -> None:
        told.append(event)

    listen(execution, note)
    execution.run()
    once = [Event.HOT, Event.ATTEMPT, Event.INSTALLED]
    assert told == [*once, Event.GUARD, Event.REMOVED, Event.ATTEMPT, Event.INSTALLED]


STAIRS = ferryvm.compile(
    "(define i 0) (define s 0)\n(while (< i 3000)\n"
    + "\n".join(f"(if (> i {300 + 200 * n}) (set! s (+ s {n + 1})))" for n in range(8))
    + "\n(set! i (+ i 1)))\n(print! s)"
)
"""Eight ways, each of which begins to be taken after the ones before."""


@pytest.mark.rotate("limit", most=1)
@pytest.mark.parametrize(("limit", "expected"), [nightly((8, 8)), (3, 4), nightly((1, 2)), (0, 1)])
def test_making_code_again_comes_to_an_end_and_is_reported(limit: int, expected: int) -> None:
    chosen = speculating(guard_limit=5, recompile_limit=limit)
    (placement,) = placements(ran(STAIRS, chosen))
    assert placement.recompilations == expected
    assert guards(placement)[-1] == 0
    assert len(placement.attempts) == expected + 1
    assert placement.state == "installed"
    if limit < 8:
        assert placement.why == (
            f"its guards made it compile {expected} times: nothing is speculated on any more"
        )


def test_only_the_guard_that_failed_is_left_out_of_the_next_code() -> None:
    (placement,) = placements(ran(STAIRS, speculating(guard_limit=5, recompile_limit=20)))
    assert guards(placement) == [8, 7, 6, 5, 4, 3, 2, 1, 0]


NESTED = ferryvm.compile("""
(define i 0) (define j 0) (define s 0)
(while (< i 60)
  (set! j 0)
  (while (< j 50)
    (if (and (> i 30) (= (% j 7) 3)) (set! s (+ s (* i j))))
    (set! j (+ j 1)))
  (print! s)
  (set! i (+ i 1)))""")


@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
def test_nothing_is_left_out_where_compiled_code_ran_and_nobody_saw_its_ways(count: bool) -> None:
    found = placements(ran(NESTED, policy(threshold=20, speculate=True, guard_limit=3), count))
    inner, outer = found
    assert [inner.region, outer.region] == ["main/nest.1"] * 2
    assert (guards(inner), guards(outer)) == ([2], [0])
    assert entries(outer) > 30


CALLED = ferryvm.compile("""
(define (work n)
  (define k 0) (define s 0)
  (while (< k n)
    (if (> n 40) (set! s (+ s (/ 1000 (- 55 n)))) (set! s (+ s k)))
    (set! k (+ k 1)))
  s)
(define i 1) (define total 0)
(while (< i 100) (set! total (+ total (work i))) (print! total) (set! i (+ i 1)))""")


@pytest.mark.parametrize("limit", [1, 4, 5000])
def test_a_trap_on_a_way_that_was_left_out_is_the_interpreter_s(limit: int) -> None:
    execution = ran(CALLED, policy(threshold=120, speculate=True, guard_limit=limit))
    (placement,) = placements(execution)
    assert (placement.region, failures(placement)[0] > 0) == ("work/loop.1", True)
    assert failures(placement)[0] == limit or placement.recompilations == 0


RECURSIVE = ferryvm.compile("""
(define (sum n)
  (if (> n 500) (+ 2 (sum (- n 2))) (if (< n 1) 0 (+ n (sum (- n 1))))))
(define i 1) (define total 0)
(while (< i 90) (set! total (+ total (sum (* 9 i)))) (set! i (+ i 1)))
(print! total)""")


@pytest.mark.nightly
@pytest.mark.parametrize("count", sample([False, True], 1))
def test_a_guard_that_fails_deep_in_a_recursion_writes_all_frames(count: bool) -> None:
    execution = ran(RECURSIVE, policy(threshold=40, speculate=True, guard_limit=20), count)
    assert any(sum(failures(placement)) for placement in placements(execution))


def test_what_was_seen_in_one_form_of_the_code_is_not_held_of_the_other() -> None:
    execution = start(LATE, speculating())
    while execution.machine.memory.statics[0] < 2100:
        execution.run(fuel=1000)
    execution.run()
    first, second = placements(execution)
    assert (first.counting, second.counting) == (True, False)
    assert guards(first) == [1]
    assert failures(first)[0] >= 2100 - 2001
    assert guards(second) == [0]


def test_a_loop_s_way_out_is_no_guard() -> None:
    loop = ferryvm.compile("(define i 0) (while (< i 5000) (set! i (+ i 1))) i")
    (placement,) = placements(ran(loop, speculating()))
    assert (guards(placement), entries(placement)) == ([0], 1)


def test_a_scope_that_is_compiled_at_once_has_every_way() -> None:
    scope = ferryvm.compile("""
(define i 0) (define s 0)
(enter-jit ((while (< i 1000) (if (> i 900) (set! s (+ s i))) (set! i (+ i 1)))))
s""")
    chosen = policy(threshold=1 << 40, speculate=True)
    (placement,) = placements(ran(scope, chosen))
    assert (placement.kind, placement.state, guards(placement)) == ("scope", "installed", [0])
    assert entries(placement) == 1


SWITCH = ferryvm.assemble("""
.static n i64
.function main
.local i i64
:again
    local.get i
    i64.const 400
    i64.ge_s
    jump_table first second
:first
    static.get n
    i64.const 1
    i64.add
    static.set n
    jump next
:second
    static.get n
    i64.const 3
    i64.add
    static.set n
:next
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 600
    i64.lt_s
    jump_if again
    static.get n
    halt
""")


def test_a_table_of_two_ways_is_no_branch_to_speculate_on() -> None:
    (placement,) = placements(ran(SWITCH, speculating()))
    assert (guards(placement), placement.state, entries(placement)) == ([0], "installed", 1)
