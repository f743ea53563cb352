# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of transitions is taken by a program, and nothing else is."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

import ferryvm
from ferryvm.backend import (
    BackendError,
    Capabilities,
    Code,
    RefusalError,
)
from ferryvm.backend import Options as CompileOptions
from ferryvm.cost import Cost
from ferryvm.engine import Execution
from ferryvm.engine.journal import Event, Placement
from ferryvm.engine.shadow import ShadowError
from ferryvm.engine.site import Site
from ferryvm.engine.transition import (
    TRANSITIONS,
    SiteEvent,
    TransitionError,
    transition,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.predicate import Like, Test, When
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.wrapper import CodeWrapper

from ..double.code import NativeFunction
from ..double.compiler import compile_by_llvm, with_compiler
from . import test_guess, test_quick_code
from .driving import DRIVEN, LATE, LOOP, On, State, drives
from .mixing import (
    CALLED_NEST,
    ENDLESS,
    NEST_OF_THREE,
    TWO_WAYS_IN,
    listen,
    placements,
    policy,
    same_as_reference,
    start,
)
from .shadowing import policy as shadowed
from .shadowing import with_wrong

# --- the way to code ------------------------------------------------------------------------


@drives(
    (State.COLD, On.HOT),
    (State.QUEUED, On.STARTED),
    (State.DECIDING, On.CHOSEN),
    (State.COMPILING, On.COMPILED),
)
def test_a_hot_site_is_queued_decided_compiled_and_installed() -> Execution:
    execution = start(LOOP, policy())
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert [(step.after, step.reason) for step in placement.history] == [
        (State.QUEUED, "reached 20 times"),
        (State.DECIDING, "the compile thread took it"),
        (State.COMPILING, "rule 1: it takes everything"),
        (State.INSTALLED, f"backend 'llvm': {placement.attempts[0].outcome.value}"),
    ]
    return execution


@drives((State.COLD, On.WHOLE))
def test_a_whole_program_is_queued_before_it_starts() -> Execution:
    execution = start(LOOP, "llvm")
    assert execution.run().value == 3000
    return execution


@drives((State.COLD, On.NESTED))
def test_the_head_around_code_that_begins_inside_is_hot_when_it_begins_again() -> Execution:
    execution = start(CALLED_NEST, policy(threshold=30))
    execution.run()
    return execution


@drives((State.COLD, On.SLICED))
def test_a_site_where_code_was_cut_off_is_queued_at_once() -> Execution:
    def cut_off(control: ControlBlock, status: int) -> int:
        control.status = Status.SLICED if status == Status.LEAVE else status
        return control.status

    text = "(define i 0) (while (< i 300) (set! i (+ i 1))) (print! i) i"
    execution = start(ferryvm.compile(text), policy("wrong"), with_wrong(cut_off))
    assert execution.run().value == 300
    assert placements(execution)[-1].why.startswith("compiled code was interrupted there")
    return execution


@drives((State.COLD, On.LAUNCH))
def test_a_launch_in_compiled_code_is_queued_if_it_is_to_run_on_threads() -> Execution:
    chosen = policy()
    (rule,) = chosen.rules
    (choice,) = rule.backends
    options = dataclasses.replace(choice.options, threads=2, background=False)
    rules = (dataclasses.replace(rule, backends=(Choice("llvm", options),)),)
    text = "(define (f item) (set! seen item)) (define seen 0) (for-each-item 5 (f)) seen"
    whole = dataclasses.replace(chosen, rules=rules, whole_program=True)
    execution = start(ferryvm.compile(text), whole)
    assert execution.run().value == 4
    assert [placement.kind for placement in placements(execution)] == ["program", "launch"]
    return execution


# --- decisions ------------------------------------------------------------------------------


def only(kind: str) -> Policy:
    """A policy that has regions of one kind compiled."""
    chosen = policy()
    when = When((Test("kind", (Like(kind),)),))
    rules = tuple(dataclasses.replace(rule, when=when) for rule in chosen.rules)
    return dataclasses.replace(chosen, rules=rules)


@drives((State.DECIDING, On.UNWANTED))
def test_what_no_rule_wants_is_interpreted() -> Execution:
    execution = start(LOOP, only("function"))
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert placement.state == "interpreted"
    return execution


@drives((State.DECIDING, On.NO_REGION))
def test_a_place_where_no_region_starts_is_interpreted() -> Execution:
    body = f".static n i64\n.function main\n{TWO_WAYS_IN}"
    end = "static.get n\ni64.const 500\ni64.lt_s\njump_if first\nhalt\n"
    execution = start(ferryvm.assemble(body + end), policy(threshold=7))
    execution.run()
    return execution


@drives((State.INTERPRETED, On.HOT))
def test_a_loop_where_the_program_begins_is_asked_about_when_the_program_was_not_wanted() -> (
    Execution
):
    execution = start(ENDLESS, dataclasses.replace(only("loop"), whole_program=True))
    execution.run(fuel=5 * 100)
    (placement,) = placements(execution)
    assert [asked.region for asked in placement.considered] == ["program", "main", "main/loop.1"]
    assert placement.state == "installed"
    return execution


@drives((State.DECIDING, On.UNOBSERVED), (State.OBSERVING, On.HOT), (State.INSTALLED, On.GUARD))
def test_a_rule_that_speculates_observes_first_and_recompiles_after_a_guard() -> Execution:
    execution = start(LATE, policy(threshold=100, speculate=True, guard_limit=7))
    execution.run()
    (placement,) = placements(execution)
    asked = [step.event for step in placement.history if step.before is State.DECIDING]
    assert asked == [On.UNOBSERVED, On.CHOSEN, On.CHOSEN]
    assert len(placement.considered) == 1
    guards = [step.reason for step in placement.history if step.event is On.GUARD]
    (branch,) = placement.activity()[0][1].failures
    assert guards == [f"the guard at pc {branch} failed too often"]
    return execution


@drives((State.DECIDING, On.BROKE))
def test_what_breaks_while_the_policy_is_asked_gives_the_site_up(
    monkeypatch: pytest.MonkeyPatch,
) -> Execution:
    def facts(*_arguments: object) -> None:
        raise ZeroDivisionError("a fact")

    monkeypatch.setattr("ferryvm.region.fact.facts", facts)
    execution = start(LOOP, policy())
    assert execution.run().value == 3000
    assert placements(execution)[0].history[-1].reason.startswith("it could not be done: Zero")
    return execution


# --- what backends say ----------------------------------------------------------------------


@drives((State.DECIDING, On.WAITED))
def test_a_loop_in_a_nest_waits_for_the_head_of_the_nest() -> Execution:
    execution = start(NEST_OF_THREE, policy(threshold=150))
    same_as_reference(NEST_OF_THREE, execution)
    assert [placement.state for placement in placements(execution)] == ["counting", "installed"]
    return execution


@drives((State.COMPILING, On.EARLY), (State.COUNTING, On.HOT))
def test_a_threshold_of_a_backend_s_own_is_counted_to() -> Execution:
    later = Choice("llvm", Options(threshold=1000, background=False))
    chosen = Policy(profile=Profile(True, 10, 10, 1), rules=(Rule(backends=(later,)),))
    execution = start(ENDLESS, chosen)
    execution.run(fuel=5 * 900)
    assert placements(execution)[0].state == "counting"
    execution.run(fuel=5 * 200)
    return execution


@drives((State.COMPILING, On.REFUSED), (State.GIVEN_UP, On.HOT))
def test_what_nobody_takes_is_given_up_and_tried_again() -> Execution:
    nobody = with_compiler(compile_by_llvm, reason="not this one")
    execution = start(LOOP, policy("mine", retry_after=500), nobody)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    reasons = {step.reason for step in placement.history if step.after is State.GIVEN_UP}
    assert reasons == {"backend 'mine': not this one"}
    return execution


@drives((State.COMPILING, On.TOO_LARGE))
def test_of_what_is_too_large_smaller_regions_are_asked_about(
    monkeypatch: pytest.MonkeyPatch,
) -> Execution:
    found = with_compiler(compile_by_llvm)
    limits = Capabilities(limits=Cost(16, 1_000, 100))
    monkeypatch.setattr(type(found.get("mine")), "capabilities", limits)
    execution = start(CALLED_NEST, policy("mine", threshold=30), found)
    execution.run()
    inner = placements(execution)[0]
    assert [asked.region for asked in inner.considered] == ["sum/nest.1", "sum/loop.1.1"]
    assert inner.state == "installed"
    return execution


@drives((State.COMPILING, On.DENIED))
def test_what_is_required_and_refused_ends_the_program() -> Execution:
    nobody = with_compiler(compile_by_llvm, reason="not this one")
    execution = start(LOOP, policy("mine", required=True), nobody)
    with pytest.raises(RefusalError, match=r"region main/loop\.1: not this one"):
        execution.run()
    assert placements(execution)[0].state == "given up"
    return execution


@drives((State.COMPILING, On.BROKE))
def test_what_breaks_while_backends_are_asked_gives_the_site_up() -> Execution:
    def fail(event: Event, _placement: Placement) -> None:
        if event is Event.ATTEMPT:
            raise ZeroDivisionError("a listener")

    execution = start(LOOP, policy())
    listen(execution, fail)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert placement.decision.startswith("it could not be done: ZeroDivisionError: a listener")
    return execution


# --- what becomes of code -------------------------------------------------------------------


class Losing(CodeWrapper):
    """Code that cannot be run."""

    lost = "worn out"

    def __init__(self, inner: Code) -> None:
        super().__init__(inner)
        self._native = NativeFunction(lose)
        self.address = self._native.address


def lose(control: ControlBlock) -> int:
    control.status = Status.LOST
    return Status.LOST


def losing() -> Registry:
    """Ours, and a compiler `mine` whose code cannot be run."""

    def compile_(region: Region, options: CompileOptions) -> Code:
        return Losing(compile_by_llvm(region, options))

    return with_compiler(compile_)


@drives((State.INSTALLED, On.LOST))
def test_what_was_lost_is_made_by_the_next_backend() -> Execution:
    execution = start(LOOP, policy("mine", "llvm"), losing())
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert [one.backend for one in placement.attempts] == ["mine", "mine", "llvm"]
    assert placement.state == "installed"
    return execution


@drives((State.INSTALLED, On.DENIED))
def test_what_is_required_and_lost_ends_the_program() -> Execution:
    execution = start(LOOP, policy("mine", required=True), losing())
    with pytest.raises(BackendError, match="worn out"):
        execution.run()
    assert placements(execution)[0].state == "given up"
    return execution


@drives((State.INSTALLED, On.DIFFERED))
def test_code_that_the_shadow_found_wrong_is_entered_no_more() -> Execution:
    def wrong(control: ControlBlock, status: int) -> int:
        control.hp += 8
        return status

    execution = start(LOOP, shadowed("wrong"), with_wrong(wrong))
    with pytest.raises(ShadowError):
        execution.run()
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert placement.history[-1].reason == placement.differences[0]
    return execution


# --- the table ------------------------------------------------------------------------------


def test_every_row_is_driven_by_a_test() -> None:
    assert test_guess, "its tests drive rows, too"
    assert test_quick_code, "likewise"
    assert set(TRANSITIONS) == DRIVEN


def test_every_state_and_event_is_in_the_table_and_every_state_is_reached_from_cold() -> None:
    assert {event for _, event in TRANSITIONS} == set(SiteEvent)
    reached = {State.COLD}
    for _ in State:
        reached |= {found.state for (state, _), found in TRANSITIONS.items() if state in reached}
    assert reached == set(State)


def test_an_event_without_a_row_is_refused_and_changes_nothing() -> None:
    site = Site(7, False, 100)
    for state, event in itertools.product(State, On):
        if (state, event) in TRANSITIONS:
            continue
        site.state = state
        with pytest.raises(TransitionError, match=f"pc 7 is {state}: .* for {event.name}$"):
            site.step(event, "a test", 0.0, lambda change: pytest.fail(f"{change}"))
        assert (site.state, site.history) == (state, [])
        with pytest.raises(TransitionError):
            transition(7, state, event)


def test_a_cell_that_cannot_be_changed_leaves_the_state_as_it_was() -> None:
    def fail(_change: object) -> None:
        raise MemoryError

    site = Site(7, False, 100)
    site.state = State.COMPILING
    with pytest.raises(MemoryError):
        site.step(On.COMPILED, "a test", 0.0, fail)
    assert (site.state, site.history) == (State.COMPILING, [])
