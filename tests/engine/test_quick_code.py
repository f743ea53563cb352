# SPDX-License-Identifier: Apache-2.0
"""Quick code of a site, and the good code that replaces it."""

from __future__ import annotations

import threading

import pytest

import ferryvm
from ferryvm.backend import (
    BackendError,
    RefusalError,
)
from ferryvm.engine import Execution
from ferryvm.engine.journal import Event, Outcome, Placement

from ..double.tier import TieredCompiler
from .driving import LOOP, On, State, drives, tiering
from .mixing import (
    ENDLESS,
    entries,
    listen,
    noticed,
    placements,
    policy,
    start,
)


def lose_meanwhile(execution: Execution, tiers: TieredCompiler) -> None:
    """Lose the quick code of the one site."""
    (placement,) = placements(execution)
    tiers.codes[0].reason = "worn out"
    tiering(execution).lost(placement.counting)


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
