# SPDX-License-Identifier: Apache-2.0
"""Launches in sequence that are placed by time on a device with memory of its own: once the place is
settled, results stay there and copies go on beside kernels. States are those of the loops in
order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import BackendError
from ferryvm.engine.execution import Execution
from ferryvm.engine.explain import regions
from ferryvm.engine.installed_launch import LaunchActivity
from ferryvm.engine.launch_interlude import Interlude
from ferryvm.engine.launch_place import model
from ferryvm.engine.launch_place.place import LaunchPlace
from ferryvm.engine.launching import Launches
from ferryvm.engine.region_report import rows
from ferryvm.item_range import PlaceActivity, RangeOutcome
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, LaunchPlacing, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm_backends.opencl import OpenClBackend, object_copy
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.memory import CopiedMemory
from ferryvm_backends.opencl.item.prepared import PreparedRange
from ferryvm_backends.opencl.item.range import ItemRanges
from ferryvm_backends.opencl.item.suspension import SLICE
from ferryvm_backends.opencl.object_copy import ObjectCopy

from ...engine.mixing import placements
from .entering import NAME, named
from .test_beside import APART, THREE, in_order, program
from .test_items import make_small, outcome

TIMES = 20
"""Launches of each site: its place is settled for one launch after another from the eighth on."""


@pytest.fixture(autouse=True)
def _quick_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is expected to be far quicker than threads, however long it takes."""
    make_small(monkeypatch)
    monkeypatch.setattr("ferryvm_backends.opencl.item.suspension.SLICE", SLICE)
    monkeypatch.setattr(object_copy, "_LEAST_BESIDE", 1)
    monkeypatch.setattr(model, "DEFAULT_COMPILE", 0.0)
    monkeypatch.setattr(LaunchPlace, "expected", _expected)


def _expected(place: LaunchPlace, *_: float) -> float:
    return 10.0 if place.activity.name == NAME else 10_000.0


def engine() -> Engine:
    options = Options(background=False, threads=2)
    choices = Choice("llvm", options), Choice(NAME, options)
    when = When((Test("kind", (Like("launch"),)),))
    rule = Rule(when=when, backends=choices, place=LaunchPlacing.MEASURED)
    policy = Policy(rules=(rule,), profile=Profile(loop_threshold=2))
    registry = named(OpenClBackend(wraps=False))
    return Engine(policy=policy, registry=registry)


def started(launches: str, times: int = TIMES, kind: int = -1) -> Execution:
    return engine().start(program(launches, times, kind))


def expected(launches: str, times: int = TIMES, kind: int = -1) -> tuple[object, ...]:
    return in_order(program(launches, times, kind))


def launches_of(execution: Execution) -> list[LaunchActivity]:
    return [one for each in placements(execution) for one in each.launches]


def devices(execution: Execution) -> list[PlaceActivity]:
    """The device, as a place of each launch."""
    return [place for one in launches_of(execution) for place in one.places if place.name == NAME]


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of results that were brought beside a kernel."""
    found: list[int] = []
    copy_others = ObjectCopy.copy_others

    def noted(self: ObjectCopy, *given: object) -> None:
        copy_others(self, *given)  # type: ignore[arg-type]  # as it is called
        found.append(sum(e - s for ranges in self._brought.values() for s, e in ranges))

    monkeypatch.setattr(ObjectCopy, "copy_others", noted)
    return found


def test_results_are_copied_beside_kernels_once_a_place_is_settled(beside: list[int]) -> None:
    execution = started(APART)
    assert outcome(execution) == expected(APART)
    assert any(beside)
    for device, items in zip(devices(execution), (5000, 4999), strict=True):
        assert device.times >= 7  # those that were timed, but for one on threads
        assert device.deferred > 0
        assert device.deferred_items == items * device.deferred
    found = [line for each in regions(execution) for _, line in rows(each)]
    assert [one for one in found if "not timed: results stayed there until launches" in one]


@pytest.mark.parametrize("kind", [15, 22500 - 10])  # an element of ys
def test_an_item_that_leaves_finds_earlier_results(kind: int) -> None:
    execution = started(THREE, kind=kind)
    assert outcome(execution) == expected(THREE, kind=kind)
    assert sum(place.deferred for place in devices(execution))


def test_a_device_that_is_lost_in_a_sequence_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sequence begins again one launch after another, of which the first finds out."""
    pull, is_lost = CopiedMemory.pull, [False]
    follow = Launches._follow

    def following(*given: Any) -> object:
        status = follow(*given)
        is_lost[0] |= len(given[2]) > 1
        return status

    def failed(self: CopiedMemory, control: ControlBlock) -> None:
        if is_lost[0]:
            raise BackendError("opencl: lost")
        pull(self, control)

    def not_started(self: ItemKernel, *given: object) -> None:
        if is_lost[0]:
            raise BackendError("opencl: lost")
        enqueue(self, *given)  # type: ignore[arg-type]  # as it is called

    enqueue = ItemKernel.enqueue
    monkeypatch.setattr(Launches, "_follow", following)
    monkeypatch.setattr(CopiedMemory, "pull", failed)
    monkeypatch.setattr(ItemKernel, "enqueue", not_started)
    monkeypatch.setattr(PreparedRange, "fits", lambda *_: False)
    execution = started(APART)
    assert outcome(execution) == expected(APART)
    assert is_lost[0]
    assert {place.state for place in devices(execution)} == {"not usable: opencl: lost"}
    launches = launches_of(execution)
    assert [one.stopped for one in launches] == ["", ""]  # they run on threads
    assert any(one.at_once.endswith("opencl: lost") for one in launches)
    assert min(one.places[0].times for one in launches) > 1


def test_a_device_that_is_lost_with_one_launch_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run_deferred = ItemRanges.run_deferred

    def failed(self: ItemRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        run_deferred(self, machine, first, limit)
        self.drop_results(machine)
        raise BackendError("opencl: lost")

    monkeypatch.setattr(ItemRanges, "run_deferred", failed)
    execution = started(APART)
    assert outcome(execution) == expected(APART)
    assert {place.state for place in devices(execution)} == {"not usable: opencl: lost"}
    assert [one.stopped for one in launches_of(execution)] == ["", ""]


def test_a_signal_while_the_device_is_lost_leaves_an_exact_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, pull, is_raised = Interlude.run, CopiedMemory.pull, [False]

    def raising(self: Interlude, machine: Machine) -> Status:
        status = run(self, machine)
        if not is_raised[0]:
            is_raised[0] = True
            raise KeyboardInterrupt
        return status

    def failed(self: CopiedMemory, control: ControlBlock) -> None:
        if is_raised[0] and self.is_ahead(control):
            raise BackendError("opencl: lost")
        pull(self, control)

    monkeypatch.setattr(Interlude, "run", raising)
    monkeypatch.setattr(CopiedMemory, "pull", failed)
    execution = started(APART)
    with pytest.raises(KeyboardInterrupt):
        execution.run()
    assert outcome(execution) == expected(APART)


def test_each_call_runs_a_launch_whose_results_stayed_there_out_of_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The code between launches is run by the form of the interpreter that counts, which has no
    cells; the call from Python that goes on, and the next one, run the other form."""
    known: list[Launches] = []
    run = Launches.run

    def noted(self: Launches, machine: Machine) -> Status:
        known.append(self)
        return run(self, machine)

    monkeypatch.setattr(Launches, "run", noted)
    source = ferryvm.compile(
        "(define (add (item i64) (to (array i64)))"
        " (array-set! to item (+ item (array-ref to item))))"
        "(define (work (n i64) (to (array i64))) (for-each-item n (add to)))"
    )
    items, times = 5000, 2 * TIMES
    call, to = engine().instantiate(source).exports["work"], np.zeros(items, "i8")
    call(items, to)
    (launch,) = known[0].activities.values()
    for _ in range(1, times):
        before = launch.items
        call(items, to)
        assert known[0].activities  # it settles their metrics
        assert launch.items - before > items / 2  # some are timed in order
    assert sum(place.deferred for place in launch.places)
    assert to.tolist() == [times * item for item in range(items)]
