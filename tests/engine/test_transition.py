# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of transitions is taken by a program, and nothing else is."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable

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
from ferryvm.engine.journal import Event, Outcome, Placement
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.engine.shadow import ShadowError
from ferryvm.engine.site import Site
from ferryvm.engine.speculation import observe, plan, stop_observing
from ferryvm.engine.tiering import Tiering
from ferryvm.engine.transition import (
    TRANSITIONS,
    SiteEvent,
    SiteState,
    TransitionError,
    transition,
)
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.predicate import Like, Test, When
from ferryvm.region.region import Region, RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm.wrapper import CodeWrapper
from ferryvm_backends.reference import ReferenceBackend

from ..double.code import NativeFunction
from ..double.compiler import Gate, compile_by_llvm, with_compiler
from ..double.tier import TieredCompiler
from .mixing import (
    CALLED_NEST,
    ENDLESS,
    TWO_WAYS_IN,
    entries,
    listen,
    noticed,
    placements,
    policy,
    start,
)
from .shadowing import policy as shadowed
from .shadowing import with_wrong

State, On = SiteState, SiteEvent
Row = tuple[SiteState, SiteEvent]
Driven = Callable[..., Execution]

LOOP = ferryvm.compile("(define i 0) (while (< i 3000) (set! i (+ i 1))) i")
LATE = ferryvm.compile("""
(define i 0) (define rare 0)
(while (< i 3000) (if (> i 2000) (set! rare (+ rare i))) (set! i (+ i 1)))
rare""")
"""A loop whose branch takes one path from the 2001st iteration on."""

DRIVEN: set[Row] = set()
"""Rows that a test of this module takes."""


def tiering(execution: Execution) -> Tiering:
    """The sites of a program that has run on its engine's backend."""
    ((_, artifact),) = execution._prepared.values()
    assert isinstance(artifact, MixedArtifact)
    return artifact.tiering


def taken(execution: Execution) -> set[Row]:
    """The rows that the sites of a program have taken."""
    rows = set()
    for site in tiering(execution).sites.values():
        states = [SiteState.COLD, *(step.after for step in site.history)]
        assert [step.before for step in site.history] == states[:-1]
        assert (site.state, site.placement is None) == (states[-1], set(states) == {State.COLD})
        assert all(step.reason for step in site.history)
        assert sorted(step.at for step in site.history) == [step.at for step in site.history]
        if site.placement is not None:
            assert site.placement.history is site.history
            assert site.placement.state is site.state
        rows |= {(step.before, step.event) for step in site.history}
    return rows


def drives(*rows: Row) -> Callable[[Driven], Callable[..., None]]:
    """A test whose execution takes these rows."""

    def around(test: Driven) -> Callable[..., None]:
        @functools.wraps(test)
        def driven(*arguments: object, **fixtures: object) -> None:
            assert set(rows) - taken(test(*arguments, **fixtures)) == set()

        DRIVEN.update(rows)
        return driven

    return around


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


def lose_meanwhile(execution: Execution, tiers: TieredCompiler) -> None:
    """Lose the quick code of the one site."""
    (placement,) = placements(execution)
    tiers.codes[0].reason = "worn out"
    tiering(execution).lost(placement.counting)


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


# --- quick code and good code ---------------------------------------------------------------


@drives(
    (State.INSTALLED, On.LONG),
    (State.RECOMPILING, On.COMPILED),
)
def test_quick_code_that_runs_long_is_entered_until_good_code_replaces_it() -> Execution:
    tiers = TieredCompiler()
    execution = start(LOOP, policy("mine", recompile_after=3), tiers.registry)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert tiers.levels == [1, 2]
    assert [attempt.is_quick for attempt in placement.attempts] == [True, False]
    assert [(step.after, step.reason) for step in placement.history[-3:]] == [
        (State.INSTALLED, "backend 'mine': compiled"),
        (State.RECOMPILING, "it was entered 3 times"),
        (State.INSTALLED, "backend 'mine': compiled"),
    ]
    site = tiering(execution).sites[placement.pc, placement.counting]
    assert site.code is placement.attempts[1].code
    assert entries(placement) == 4
    return execution


@drives((State.RECOMPILING, On.REFUSED))
def test_quick_code_is_kept_where_there_is_no_good_code() -> Execution:
    tiers = TieredCompiler(RefusalError("no schedule was found"))
    execution = start(LOOP, policy("mine", recompile_after=3, required=True), tiers.registry)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert placement.history[-1].reason == "backend 'mine': no schedule was found"
    assert placement.code is placement.attempts[0].code
    assert placement.history[-1].after is State.INSTALLED
    assert tiers.levels == [1, 2]
    return execution


@drives((State.RECOMPILING, On.BROKE))
def test_quick_code_is_kept_where_something_breaks_beside_the_backends() -> Execution:
    def fail(event: Event, placement: Placement) -> None:
        if event is Event.ATTEMPT and placement.state is State.RECOMPILING:
            raise ZeroDivisionError("a listener")

    execution = start(LOOP, policy("mine", recompile_after=3), TieredCompiler().registry)
    listen(execution, fail)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert "ZeroDivisionError: a listener" in placement.history[-1].reason
    assert placement.history[-1].after is State.INSTALLED
    return execution


@drives((State.RECOMPILING, On.LOST))
def test_quick_code_that_is_lost_meanwhile_is_made_by_the_next_backend() -> Execution:
    tiers = TieredCompiler()
    execution = start(LOOP, policy("mine", "llvm", recompile_after=3), tiers.registry)
    tiers.meanwhile = lambda: lose_meanwhile(execution, tiers)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    site = tiering(execution).sites[placement.pc, placement.counting]
    assert site.job is not None
    assert site.job.wait(execution.machine.control, to_the_end=True)
    backends = [(one.backend, one.outcome) for one in placement.attempts]
    assert backends[:3] == [
        ("mine", Outcome.COMPILED),
        ("mine", Outcome.LOST),
        ("mine", Outcome.COMPILED),
    ]
    assert [name for name, _ in backends[3:]] == ["llvm"]
    assert (site.code, site.state) == (placement.attempts[3].code, State.INSTALLED)
    return execution


@drives((State.RECOMPILING, On.DENIED))
def test_quick_code_that_is_lost_meanwhile_and_required_ends_the_program() -> Execution:
    tiers = TieredCompiler()
    execution = start(LOOP, policy("mine", recompile_after=3, required=True), tiers.registry)
    tiers.meanwhile = lambda: lose_meanwhile(execution, tiers)
    with pytest.raises(BackendError, match="worn out"):
        execution.run()
    assert placements(execution)[0].state == "given up"
    return execution


@drives((State.RECOMPILING, On.DIFFERED))
def test_quick_code_that_is_found_wrong_meanwhile_is_not_replaced() -> Execution:
    def find_wrong() -> None:
        (placement,) = placements(execution)
        placement.differences.append("sp was 3, not 4")
        tiering(execution).differed(placement)

    tiers = TieredCompiler()
    tiers.meanwhile = find_wrong
    execution = start(LOOP, policy("mine", recompile_after=3), tiers.registry)
    assert execution.run().value == 3000
    (placement,) = placements(execution)
    assert (placement.state, placement.history[-1].reason) == ("given up", "sp was 3, not 4")
    return execution


def test_a_program_goes_on_in_quick_code_while_good_code_is_made() -> None:
    tiers, may = TieredCompiler(), threading.Event()
    tiers.meanwhile = lambda: None if may.wait(60) else pytest.fail("it did not go on")
    chosen = policy("mine", recompile_after=3, background=True)
    execution = start(ENDLESS, chosen, tiers.registry)
    replaced = noticed(execution, Event.REPLACED)

    def look() -> None:
        assert tiers.has_gone_on.wait(60)
        (placement,) = placements(execution)
        assert placement.state == "recompiling"
        may.set()
        assert replaced.wait(60)
        execution.machine.control.interrupt = 1

    thread = threading.Thread(target=look)
    thread.start()
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    thread.join()
    assert placements(execution)[0].state == "installed"


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ({"recompile_after": 0}, [2]),
        ({}, [2]),  # it waits for the code
        ({"optimize": 1, "recompile_after": 3}, [1]),
        ({"optimize": 3, "recompile_after": 3}, [1, 3]),
    ],
)
def test_code_is_made_quickly_where_the_policy_says_so(
    options: dict[str, int], levels: list[int]
) -> None:
    tiers = TieredCompiler()
    execution = start(LOOP, policy("mine", **options), tiers.registry)
    assert execution.run().value == 3000
    assert tiers.levels == levels


def test_a_backend_says_when_code_that_is_not_waited_for_is_made_again() -> None:
    tiers = TieredCompiler()
    execution = start(ENDLESS, policy("mine", background=True), tiers.registry)
    replaced = noticed(execution, Event.REPLACED)

    def stop() -> None:
        assert replaced.wait(60)
        execution.machine.control.interrupt = 1

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    thread.join()
    assert placements(execution)[0].history[-2].reason == "it was entered 7 times"
    assert tiers.levels == [1, 2]


# --- the table ------------------------------------------------------------------------------


def test_every_row_is_driven_by_a_test() -> None:
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


# --- events that come late ------------------------------------------------------------------


def test_a_second_machine_that_met_the_same_count_changes_nothing() -> None:
    execution = start(LOOP, policy())
    execution.run()
    (placement,) = placements(execution)
    before = list(placement.history)
    tiering(execution).hot(placement.pc, placement.counting)
    assert placement.history == before


def test_a_site_that_is_on_the_way_is_neither_sliced_nor_hot_nor_guarded() -> None:
    gate = Gate()
    execution = start(ENDLESS, policy("mine", background=True), with_compiler(gate.compile))
    installed = noticed(execution, Event.INSTALLED)

    def look() -> None:
        assert gate.began.wait(60)
        (placement,) = placements(execution)
        sites, before = tiering(execution), list(placement.history)
        site = sites.sites[placement.pc, placement.counting]
        assert site.state is State.COMPILING
        site.unseen = frozenset({(4, 0)})
        sites.guard_failed(4, placement.counting)
        sites.sliced(placement.pc, placement.counting)
        sites.lost(placement.counting)
        site.unseen, site.is_counted = frozenset(), True
        sites.hot(placement.pc, placement.counting)
        assert (placement.history, site.is_counted) == (before, True)
        gate.may.set()
        assert installed.wait(60)
        execution.machine.control.interrupt = 1

    thread = threading.Thread(target=look)
    thread.start()
    with pytest.raises(ferryvm.ProgramInterrupted):
        execution.run()
    thread.join()
    assert taken(execution) >= {(State.COMPILING, On.COMPILED)}


def test_a_site_that_is_counted_on_holds_no_speculation_that_a_guard_elsewhere_could_fail() -> None:
    later = Choice("llvm", Options(threshold=2500, background=False, speculate=True))
    chosen = Policy(profile=Profile(True, 100, 100, 1), rules=(Rule(backends=(later,)),))
    execution = start(LATE, chosen)
    execution.run(fuel=9 * 500)
    (placement,) = placements(execution)
    site = tiering(execution).sites[placement.pc, placement.counting]
    assert [step.event for step in site.history][-1] is On.EARLY
    assert any(step.event is On.UNOBSERVED for step in site.history)
    assert (site.state, site.unseen, site.has_observed) == (State.COUNTING, frozenset(), False)


def test_a_site_where_a_branch_was_observed_keeps_a_cell_of_its_own() -> None:
    program = verify(LATE)
    artifact = ReferenceBackend().prepare(program)
    region = next(one for one in regions(program) if one.kind is RegionKind.LOOP)
    site = Site(region.entry, False, 100)
    site.region = region
    assert plan(site, ())
    observe(artifact, site)
    first, *others = sorted(site.observed)
    artifact.count(first, 7, False)  # compiled code was cut off there meanwhile
    stop_observing(artifact, site, {(first, False)})
    assert [artifact.counted(pc, False) for pc in (first, *others)] == [7, *(0 for _ in others)]


def test_a_difference_that_a_second_machine_found_is_told_and_changes_nothing() -> None:
    execution = start(LOOP, policy())
    execution.run()
    (placement,) = placements(execution)
    placement.differences.append("first")
    for _ in range(2):
        tiering(execution).differed(placement)
    assert [step.event for step in placement.history].count(On.DIFFERED) == 1


def test_a_listener_that_fails_after_the_code_was_installed_leaves_it_installed() -> None:
    def fail(event: Event, _placement: Placement) -> None:
        if event is Event.INSTALLED:
            raise ZeroDivisionError("a listener")

    execution = start(LOOP, policy())
    listen(execution, fail)
    assert execution.run().value == 3000
    assert placements(execution)[0].state == "installed"
