# SPDX-License-Identifier: Apache-2.0
"""What is hot is compiled and entered, in the middle of loops too, by every execution there is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine, ProgramInterrupted
from ferryvm.engine.journal import Event, Outcome, Placement
from ferryvm.engine.other_entry import wait_for_other
from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteEvent
from ferryvm.program import Program
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify

from ..double.code import PythonCode, leave
from ..double.compiler import compile_by_llvm, with_compiler
from .mixing import (
    CALLED_NEST,
    ENDLESS,
    LONG_AT_THE_END,
    NEST_OF_THREE,
    TWO_WAYS_IN,
    end,
    entries,
    listen,
    noticed,
    placements,
    policy,
    same_as_reference,
    start,
)

LOOP = ferryvm.compile("(define i 0) (while (< i 5000) (set! i (+ i 1))) i")
CALLS = ferryvm.compile("""
(define (square x) (* x x))
(define total 0) (define i 0)
(define (more) (set! total (+ total (square i))) (set! i (+ i 1)))
(more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more)
(more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more) (more)
total""")
SCOPE = ferryvm.compile("""
(define i 0) (define total 0)
(enter-jit ((while (< i 1000) (set! total (+ total (* i i))) (set! i (+ i 1)))))
total""")
NEST = ferryvm.compile("""
(define total 0) (define i 0) (define j 0) (define k 0)
(while (< i 9)
  (set! j 0)
  (while (< j 30)
    (set! k 0)
    (while (< k 5) (set! total (+ total (* i (+ j k)))) (set! k (+ k 1)))
    (set! j (+ j 1)))
  (print! total)
  (set! i (+ i 1)))
total""")


# --- getting hot ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize(
    ("program", "kind", "regions"),
    [
        (LOOP, "loop", {"main/loop.1"}),
        (CALLS, "function", {"more"}),
        (SCOPE, "scope", {"main/scope.1"}),
    ],
    ids=["loop", "function", "scope"],
)
def test_a_place_that_gets_hot_has_its_region_installed_and_entered(
    program: Program, kind: str, regions: set[str], count: bool
) -> None:
    execution = start(program, policy())
    same_as_reference(program, execution, count)
    found = [p for p in placements(execution) if p.kind == kind]
    assert {p.region for p in found} == regions
    assert {(p.state, p.counting) for p in found} == {("installed", count)}
    assert all(entries(p) > 0 for p in found)


def test_a_scope_is_compiled_the_first_time_and_what_is_not_marked_is_not() -> None:
    execution = start(SCOPE, policy(threshold=1 << 40))
    same_as_reference(SCOPE, execution)
    (placement,) = placements(execution)
    assert (placement.region, placement.why, entries(placement)) == (
        "main/scope.1",
        "reached once",
        1,
    )


def test_code_that_is_ready_is_entered_by_the_program_that_went_on_meanwhile() -> None:
    execution = start(ENDLESS, policy(background=True))
    installed = noticed(execution, Event.INSTALLED)

    def interrupt_once_entered() -> None:
        installed.wait()
        while not entries(placements(execution)[0]):
            pass
        execution.machine.control.interrupt = 1

    other = threading.Thread(target=interrupt_once_entered)
    other.start()
    with pytest.raises(ProgramInterrupted):
        execution.run()
    other.join()
    (placement,) = placements(execution)
    assert (placement.state, entries(placement)) == ("installed", 1)
    assert execution.machine.control.pc == 0


def test_a_program_that_waits_for_its_code_is_compiled_at_the_very_count() -> None:
    execution = start(ENDLESS, policy(threshold=37))
    execution.run(fuel=5 * 36)
    assert placements(execution) == []
    execution.run(fuel=1)
    (placement,) = placements(execution)
    assert (placement.why, placement.state) == ("reached 37 times", "installed")
    assert execution.machine.memory.statics[0] == 36


def test_running_loops_are_entered_in_their_middle_inner_ones_too() -> None:
    execution = start(NEST, policy(threshold=7))
    same_as_reference(NEST, execution)
    found = placements(execution)
    # The whole nest, by its innermost head, which is hot first, and by its own when it begins
    # again.
    assert [p.region for p in found] == ["main/nest.1"] * 2
    assert len({p.pc for p in found}) == 2
    assert all(p.state == "installed" and entries(p) > 0 for p in found)


ROTATED = ferryvm.assemble("""
.static i i64
.static j i64
.function main
    jump outer
    nop
:row
    i64.const 0
    static.set j
    jump inner
    nop
:cell
    static.get j
    i64.const 1
    i64.add
    static.set j
:inner
    static.get j
    i64.const 30
    i64.lt_s
    jump_if cell
    static.get i
    i64.const 1
    i64.add
    static.set i
:outer
    static.get i
    i64.const 40
    i64.lt_s
    jump_if row
    static.get i
    halt
""")
"""Nobody can tell without a graph where its loops begin: at the tests, which the jumps back do not
go to."""


def test_loops_whose_heads_cannot_be_told_at_a_glance_are_compiled_too() -> None:
    execution = start(ROTATED, policy(threshold=7))
    same_as_reference(ROTATED, execution)
    guessed, found = placements(execution)[:2]
    assert (guessed.pc, guessed.why, guessed.state) == (6, "reached 7 times", "interpreted")
    assert guessed.decision == "no region starts here: it is in the loop whose head is pc 10"
    assert (found.pc, found.why, found.region) == (10, "reached once", "main/nest.1")
    assert entries(found) > 0


def test_the_loops_around_are_counted_too() -> None:
    nobody = with_compiler(compile_by_llvm, reason="not this one")
    execution = start(ROTATED, policy("mine", threshold=7), nobody)
    same_as_reference(ROTATED, execution)
    found = {p.pc: (p.why, p.state) for p in placements(execution)}
    assert found[10] == ("reached once", "given up")
    assert found[2] == ("reached 7 times", "interpreted")
    assert found[18] == ("reached 7 times", "given up")


def test_a_cycle_that_is_no_loop_is_interpreted() -> None:
    program = ferryvm.assemble(f"""
.static n i64
.function main
{TWO_WAYS_IN}
    static.get n
    i64.const 500
    i64.lt_s
    jump_if first
    halt
""")
    execution = start(program, policy(threshold=7))
    same_as_reference(program, execution)
    (placement,) = placements(execution)
    assert (placement.pc, placement.state) == (3, "interpreted")
    assert placement.decision == "no region starts here"


def test_a_nest_that_was_compiled_from_inside_is_compiled_from_its_head_when_it_begins_again() -> (
    None
):
    execution = start(CALLED_NEST, policy(threshold=30))
    same_as_reference(CALLED_NEST, execution)
    inside, head = placements(execution)
    assert (inside.region, head.region) == ("sum/nest.1", "sum/nest.1")
    assert head.why == f"begun again after it was compiled from inside, at pc {inside.pc}"
    assert (entries(inside), entries(head)) == (1, 3)


def test_a_nest_whose_head_comes_often_is_compiled_once() -> None:
    execution = start(NEST_OF_THREE, policy(threshold=150))
    same_as_reference(NEST_OF_THREE, execution)
    inner, head = placements(execution)
    assert (inner.state, inner.attempts) == ("counting", [])
    assert inner.history[-1].reason == f"the loop around it, at pc {head.pc}, comes often"
    assert head.why == f"it comes often, and the loop in it at pc {inner.pc} is hot"
    assert (head.state, len(head.attempts), entries(head)) == ("installed", 1, 1)


def test_a_loop_that_is_hot_before_its_nest_comes_again_is_compiled_from_inside() -> None:
    execution = start(LONG_AT_THE_END, policy(threshold=300))
    same_as_reference(LONG_AT_THE_END, execution)
    (inner,) = placements(execution)
    assert [step.event.name for step in inner.history].count("WAITED") == 1
    assert (inner.state, entries(inner)) == ("installed", 1)


def test_a_loop_waits_once_for_code_of_its_nest_that_was_just_installed() -> None:
    (nest,) = (one for one in regions(verify(NEST_OF_THREE)) if one.kind is RegionKind.NEST)
    first, second = (Site(loop.head, False, 100) for loop in nest.graph.loops if loop.parent)
    first.region = second.region = nest
    sites = {first.key: first, second.key: second}
    for step in (SiteEvent.HOT, SiteEvent.STARTED, SiteEvent.CHOSEN, SiteEvent.COMPILED):
        assert wait_for_other(second, sites, lambda pc, counting=False: 0) is None
        first.step(step, "", 0.0, lambda change: None)
    first.code = PythonCode(leave)
    found = [wait_for_other(second, sites, lambda pc, counting=False: 0) for _ in range(2)]
    assert found == [f"there is code of its nest, for pc {first.pc}", None]
    assert (second.other, second.threshold, second.more) == (None, 200, 100)


def test_a_policy_that_asks_nobody_leaves_all_to_the_interpreter() -> None:
    execution = start(LOOP, "threaded")
    same_as_reference(LOOP, execution)
    quiet = start(LOOP, policy(threshold=1 << 40))
    same_as_reference(LOOP, quiet)
    assert placements(quiet) == []


def test_whole_programs_are_compiled_before_their_first_instruction() -> None:
    execution = start(NEST, "llvm")
    same_as_reference(NEST, execution)
    first = placements(execution)[0]
    assert (first.region, first.kind, first.pc) == ("program", "program", 0)
    assert first.attempts[0].outcome in (Outcome.COMPILED, Outcome.CACHED)
    assert entries(first) == 1


# --- many executions ------------------------------------------------------------------------


def in_threads(actions: list[Callable[[], object]]) -> None:
    """Do all of them at once."""
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("background", [False, True], ids=["waiting", "background"])
def test_executions_of_one_program_share_code_in_many_threads(background: bool) -> None:
    first = start(NEST, policy(threshold=10, background=background))
    executions = [first, *(first.again() for _ in range(7))]
    found: dict[int, object] = {}

    def run(number: int) -> None:
        found[number] = end(executions[number])

    in_threads([lambda n=number: run(n) for number in range(8)])  # type: ignore[misc]
    expected = end(Engine("reference").start(NEST))
    assert found == dict.fromkeys(range(8), expected)


def test_a_copy_of_a_program_in_the_middle_of_its_loop_goes_on_in_the_same_code() -> None:
    execution = start(NEST, policy(threshold=4))
    execution.run(fuel=3000)
    copy = execution.fork()
    expected = end(Engine("reference").start(NEST), count=True)
    assert end(copy, count=True) == expected
    assert end(execution, count=True) == expected
    assert {p.state for p in placements(execution)} == {"installed"}


def test_what_was_told_of_a_place_is_told_in_order() -> None:
    told: list[tuple[Event, int]] = []

    def note(event: Event, placement: Placement) -> None:
        told.append((event, placement.pc))

    execution = start(LOOP, policy())
    listen(execution, note)
    execution.run()
    (placement,) = placements(execution)
    kinds = (Event.HOT, Event.ATTEMPT, Event.INSTALLED)
    assert told == [(event, placement.pc) for event in kinds]
