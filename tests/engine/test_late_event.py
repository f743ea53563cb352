# SPDX-License-Identifier: Apache-2.0
"""Events of a site that come late, or twice, change nothing that they should not."""

from __future__ import annotations

import threading

import pytest

import ferryvm
from ferryvm.engine.journal import Event, Placement
from ferryvm.engine.site import Site
from ferryvm.engine.speculation import BranchProfile, plan
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.reference import ReferenceBackend

from ..double.compiler import Gate, with_compiler
from .driving import LATE, LOOP, On, State, taken, tiering
from .mixing import (
    ENDLESS,
    listen,
    noticed,
    placements,
    policy,
    start,
)


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
    assert plan(site, (), None)
    branches = BranchProfile(artifact)
    branches.observe(site)
    first, *others = sorted(site.observed)
    artifact.count(first, 7, False)  # compiled code was cut off there meanwhile
    branches.stop(site, {(first, False)})
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
