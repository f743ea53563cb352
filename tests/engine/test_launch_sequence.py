# SPDX-License-Identifier: Apache-2.0
"""Devices that pay in sequences of launches alone: a device with slow copies, and a clock of the
test's own."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from ferryvm.engine.launch_place.model import CALIBRATED, CostModel
from ferryvm.engine.launch_place.sequence import OBSERVED
from ferryvm.engine.region_report import place_lines
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine

from .test_launch_place import IN_ORDER, MACHINE, Clock, Launch, Runner

ITEMS = 100_000
"""Of each launch: 50 ms on the first place."""


class Card(Runner):
    """A device with memory of its own, on which no launch pays by itself."""

    deferral: Hashable | None = "its memory"

    def __init__(self, clock: Clock, item: float, copies: float) -> None:
        super().__init__(clock, 1e-4, item)
        self.copies = copies

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        self.clock.now += self.copies
        return super().run(machine, first, limit)

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        return super().run(machine, first, limit)

    def write_back(self, machine: Machine) -> None:
        self.clock.now += self.copies


class Sequences(Launch):
    """A launch that others follow, and the first place's ranges of one sequence."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, expected: float, found: float, copies: float
    ) -> None:
        super().__init__(monkeypatch, expected=expected, found=found)
        self.other = Card(self.clock, found * IN_ORDER, copies)
        card = CostModel(1e-4, expected, copies, 0.1, CALIBRATED)
        self.set_models(CostModel(1e-4, 0.5, 0.0, 0.1, CALIBRATED), card)

    def follow(self, times: int, length: int = 10, is_followed: bool = True) -> int:
        """Launch sequences, as `Launches` does; the number of those on the card."""
        before = self.ranges.places[1].deferred
        for _ in range(times):
            if self.ranges.deferral_of(ITEMS) is None:
                self.run(1)
                self.ranges.was_followed(is_followed)
                continue
            most, began = self.ranges.sequence_limit(ITEMS), self.clock.now
            for _ in range(length if is_followed else 1):
                self.ranges.run_deferred(MACHINE, 0, ITEMS)
                if self.clock.now - began > most or not self.ranges.joins(ITEMS, "its memory"):
                    break
            self.ranges.was_followed(is_followed)
            self.ranges.write_back(MACHINE)
            if self.ranges.expected_alone() is not None:
                self.ranges.took(self.clock.now - began)
        return self.ranges.places[1].deferred - before

    @property
    def on_card(self) -> int:
        return len(self.other.ran)


def test_a_device_that_pays_in_sequences_alone_is_compiled_tried_and_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A launch takes 50 ms on cores, on the card 10, and its copies 300.
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    launch.follow(OBSERVED)
    assert not launch.compiled
    assert launch.follow(120) >= 800
    began, ran = launch.clock.now, launch.on_card + len(launch.first.ran)
    launch.follow(40)
    mean = (launch.clock.now - began) / (launch.on_card + len(launch.first.ran) - ran)
    assert mean < 0.9 * 50e-3  # 40 by the card: ten launches of 10 ms, and 300


def test_a_launch_that_none_follows_runs_on_no_device_with_slow_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    assert launch.follow(10, is_followed=False) == 0
    assert not launch.compiled


def test_a_device_without_calibration_is_not_asked_for_its_time_without_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    card = CostModel(1e-4, 0.1, 0.3, 0.1, "defaults: it is not calibrated")
    launch.set_models(launch.places[0].model, card)
    assert not launch.ranges.wants_followers
    launch.follow(100)
    assert not launch.compiled


def test_sequences_on_a_device_that_is_slower_than_expected_are_trials_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=2.0, copies=0.3)
    launch.follow(200)
    card = launch.ranges.places[1]
    assert 0 < card.sequence_seconds + card.seconds < 0.25 * launch.clock.now
    assert card.deferred < 20
    assert launch.first.ran[-1] == (0, ITEMS)


def test_a_first_sequence_is_short_where_the_device_is_far_slower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=5.0, copies=0.01)
    launch.follow(12, length=100)
    assert launch.ranges.places[1].deferred <= 2


def test_other_places_are_timed_again_between_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    launch.follow(60)
    launch.first.item /= 10
    before = len(launch.first.ran)
    launch.follow(300)
    assert len(launch.first.ran) > before + 100  # it is the quickest now


def test_a_range_joins_the_sequence_of_another_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    assert not launch.ranges.joins(ITEMS, "its memory")  # it has no code for it
    launch.places[1].runner = launch.other
    launch.ranges._receiver(launch.places[1])(launch.other)
    assert not launch.ranges.joins(ITEMS, "other memory")
    assert launch.ranges.joins(ITEMS, "its memory")
    launch.ranges.run_deferred(MACHINE, 0, ITEMS)
    launch.ranges.write_back(MACHINE)
    assert launch.other.ran == [(0, ITEMS)]
    assert launch.ranges.deferral_of(ITEMS) is None  # by itself it would run elsewhere


def test_a_range_that_is_left_teaches_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    launch.ranges._receiver(launch.places[1])(launch.other)
    assert launch.ranges.joins(ITEMS, "its memory")
    monkeypatch.setattr(Card, "run_deferred", lambda *_: RangeOutcome(ITEMS - 1, 1, None))
    launch.ranges.run_deferred(MACHINE, 0, ITEMS)
    launch.ranges.write_back(MACHINE)
    assert launch.ranges.expected_alone() is None


def test_explain_shows_expected_and_found_times_of_sequences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    while not launch.ranges.places[1].sequenced:
        launch.follow(1)
    assert place_lines(launch.ranges.places[1])[-1] == (
        "in sequences 10 times, 1000000 items, 10 of them in 401.0 ms, expected 401.0 ms: results "
        "stayed there until launches behind them had run"
    )


def test_arrays_that_may_remain_there_let_a_device_be_tried_for_a_fifth_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Sequences(monkeypatch, expected=0.1, found=0.1, copies=0.3)
    launch.follow(10, is_followed=False)  # 0.5 s
    assert not launch.compiled
    launch.follow(40, is_followed=False)
    assert launch.compiled == [1]
    assert 1 <= launch.on_card <= 4
    assert launch.on_card * 0.31 < 0.3 * launch.clock.now
