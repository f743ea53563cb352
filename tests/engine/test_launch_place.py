# SPDX-License-Identifier: Apache-2.0
"""Places of launches: the choice by expected and found times, with a clock of the test's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

import pytest

from ferryvm.backend import BackendError
from ferryvm.engine.launch_place import calibration, chooser, model
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration, DeviceCalibrations
from ferryvm.engine.launch_place.chooser import MOST_WORTH, UNTIMED_WORTH, PlacedRanges
from ferryvm.engine.launch_place.model import CALIBRATED, CostModel
from ferryvm.engine.launch_place.place import LaunchPlace, PlaceState
from ferryvm.engine.region_report import place_lines
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.state import Machine
from ferryvm.policy.machine import cpus

from ..double.compiler import LLVM, FunctionCompiler, compile_by_llvm

MACHINE = cast("Machine", None)
IN_ORDER = 1e-6
"""Seconds of an item in order."""


class Clock:
    """A clock that runners set forward."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Runner(RangeRunner):
    """Items take so long, beside a launch; `alone`: seconds that a range takes at least, as on a
    device with many lanes."""

    def __init__(self, clock: Clock, launch: float, item: float, alone: float = 0.0) -> None:
        self.clock, self.launch, self.item, self.alone = clock, launch, item, alone
        self.is_paced = alone > 0.0
        self.cold = 0.0
        """Further seconds of the next range."""
        self.ran: list[tuple[int, int]] = []
        self.fault = ""

    @property
    def where(self) -> str:
        return "a double"

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        if self.fault:
            raise BackendError(self.fault)
        self.ran.append((first, limit))
        self.clock.now += self.launch + max((limit - first) * self.item, self.alone) + self.cold
        self.cold = 0.0
        return RangeOutcome(limit - first, 0, None)


class Launch:
    """A launch with two places, `first` and `other`, and the ranges that it has put off."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, expected: float, found: float, first: float = 0.5
    ) -> None:
        """The time of an item over that in order: on the other place as expected and found, and on
        the first one."""
        self.clock = clock = Clock()
        self.first = Runner(clock, 1e-4, first * IN_ORDER)
        self.other = Runner(clock, 1e-4, found * IN_ORDER)
        self.compiled: list[int] = []
        first_model, other = (
            CostModel(1e-4, ratio, 0.0, 0.1, CALIBRATED) for ratio in (0.5, expected)
        )
        self.set_models(first_model, other)
        self.rest: list[tuple[int, int]] = []
        monkeypatch.setattr(
            chooser, "put_off", lambda _, first, end: self.rest.append((first, end))
        )

    def set_models(self, first: CostModel, other: CostModel) -> None:
        """Begin anew with these."""
        self.places = [LaunchPlace("first", first, self.first), LaunchPlace("other", other)]
        self.places[0].activity.state = "ready"
        self.ranges = PlacedRanges(self.places, self._compile, self.clock)
        self.ranges.worth(IN_ORDER)

    def _compile(
        self, machine: Machine, number: int, receive: Callable[[RangeRunner | str], None]
    ) -> None:
        self.compiled.append(number)
        receive(self.other)

    def time_in_order(self, items: int = 1000) -> None:
        """Time items in order, as often as it takes before a launch may stay in the code around
        it."""
        for _ in range(2):
            self.ranges.timed(items, items * IN_ORDER)

    def run(self, times: int, items: int = 100_000) -> None:
        """Launch so many items, so many times."""
        for _ in range(times):
            self.rest = [(0, items)]
            while self.rest:
                self.ranges.run(MACHINE, *self.rest.pop())


def test_a_quicker_place_is_compiled_once_the_launch_took_as_long_as_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=0.1)
    launch.run(1)  # 50 ms
    assert not launch.compiled
    assert launch.places[1].activity.state == (
        "not compiled yet: that takes 0.1 s, and is begun once the launch took 0.1 s; "
        "it took 0 s so far"
    )
    launch.run(3)
    assert launch.compiled == [1]
    launch.run(1)
    assert launch.other.ran[0] == (0, 12_500)  # a trial
    assert launch.other.ran[-1] == (0, 100_000)  # the whole launch
    assert launch.ranges.places[1].trials == 2


def test_a_place_that_is_expected_to_be_slower_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=2.5, found=0.1)
    launch.run(50)
    assert not launch.compiled
    assert launch.ranges.places[1].state == (
        "not compiled: it is expected to take 5.0 times as long as first"
    )


def test_a_place_that_is_expected_to_be_somewhat_slower_is_compiled_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=1.0, found=0.1)
    launch.run(15)  # 0.75 s
    assert not launch.compiled
    launch.run(15)
    assert launch.compiled == [1]
    assert launch.other.ran[-1] == (0, 100_000)


def test_a_place_that_is_slower_than_expected_runs_trials_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=1.5)
    launch.run(60)
    assert launch.other.ran[0] == (0, 12_500)
    assert len(launch.other.ran) <= 4
    assert launch.ranges.places[1].seconds < 0.2 * launch.clock.now
    learned = launch.ranges.places[1].learned
    # The first may have been cold.
    assert learned == "14.0 times longer than expected in run 2: 18.8 ms, expected 1.35 ms"
    assert len(launch.first.ran) >= 57


def test_one_cold_run_does_not_rule_a_place_out(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=0.1)
    launch.other.cold = 1.0
    launch.run(20)
    assert launch.places[1].activity.trials == 3  # a cold part, a part, all
    assert launch.other.ran[-1] == (0, 100_000)


@pytest.mark.parametrize(
    ("items", "in_order", "on_cores", "on_card", "at_least"),
    [
        pytest.param(4096, 0.62e-3, 70e-3, 43e-3, 43e-3, id="nbody"),
        pytest.param(10_240, 139e-6, 12.6e-3, 4.2e-3, 3.5e-3, id="dft"),
        pytest.param(32_000, 51e-6, 61e-3, 8.5e-3, 7e-3, id="spectralnorm"),
    ],
)
def test_a_card_with_fewer_items_than_lanes_is_chosen_within_a_second(
    items: int,
    in_order: float,
    on_cores: float,
    on_card: float,
    at_least: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=1.0, found=1.0)
    whole = on_cores / items / in_order  # all as measured on an H100 and 16 cores
    card = CostModel(355e-6, 1e-3, 1e-4, 0.3, CALIBRATED, 0.5 * at_least / in_order)
    launch.set_models(CostModel(185e-6, whole, 0.0, 0.3, CALIBRATED), card)
    launch.first.launch, launch.first.item = 185e-6, on_cores / items
    launch.other = Runner(launch.clock, on_card - at_least, 1e-3 * in_order, at_least)
    launch.ranges.worth(in_order)
    while launch.clock.now < 1.0:
        launch.run(1, items)
    before = len(launch.other.ran)
    launch.run(10, items)
    assert len(launch.other.ran) >= before + 9  # and a trial
    assert launch.other.ran[0] == (0, items)  # a part of them takes as long
    assert launch.places[1].expected(items, in_order) == pytest.approx(on_card, rel=0.1)


def test_a_trial_finds_a_place_that_is_quicker_than_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=0.55, found=0.1)
    launch.run(40)
    other = launch.ranges.places[1]
    assert other.trials == 2  # of a part, then of a whole launch
    assert launch.other.ran[:2] == [(0, 12_500), (0, 100_000)]
    assert launch.first.ran == [(0, 100_000)] * 3 + [(12_500, 100_000)]


def test_trials_get_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.55, found=0.8)
    launch.run(200)
    assert 3 <= launch.ranges.places[1].trials <= 8
    assert launch.ranges.places[1].seconds < 0.1 * launch.clock.now


def test_the_same_times_give_the_same_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for _ in range(2):
        launch = Launch(monkeypatch, expected=0.55, found=0.45)
        launch.run(30)
        found.append((launch.first.ran, launch.other.ran))
    assert found[0] == found[1]


def test_one_disturbed_run_changes_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.6, found=0.6)
    launch.run(5)
    launch.first.item *= 20
    launch.run(1)
    launch.first.item /= 20
    before = len(launch.first.ran)
    launch.run(5)
    assert len(launch.first.ran) >= before + 4  # and a trial


def test_a_place_whose_device_fails_is_left_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=0.1)
    launch.run(5)
    launch.other.fault = "the device is lost"
    launch.run(2)
    assert launch.first.ran[-2:] == [(0, 100_000)] * 2
    assert launch.places[1].state is PlaceState.GONE
    assert launch.ranges.places[1].state == "not usable: the device is lost"


def test_out_of_order_pays_from_the_time_of_a_launch_on(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.6, found=0.6)
    launch.time_in_order()
    assert launch.ranges.worth(IN_ORDER) == 300  # 300 us in order, or half and 150 us besides
    launch.run(1)
    assert launch.ranges.worth(1e-9) == pytest.approx(300, abs=2)  # of what was learned
    slow = LaunchPlace("slow", CostModel(1e-4, 1.0, 0.0, 0.0, CALIBRATED), launch.first)
    ranges = PlacedRanges([slow], launch._compile)
    assert ranges.worth(1e-6) == int(UNTIMED_WORTH / 1e-6)
    for _ in range(2):
        ranges.timed(1000, 1e-3)
    assert ranges.worth(1e-6) == int(MOST_WORTH / 1e-6)
    assumed = LaunchPlace("assumed", model.assumed("it is not calibrated", 2, 0, 0), launch.first)
    assert PlacedRanges([assumed], launch._compile).worth(1e-6) is None


def test_items_in_order_are_tried_and_then_left_to_the_code_around(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=1.0, found=1.0, first=1.2)  # cores that are not free
    assert launch.ranges.in_order(100_000) == 0
    launch.run(3)
    assert launch.ranges.worth(IN_ORDER) == 8  # of 2.4 us, by its model
    assert launch.ranges.in_order(5_000) == 5_000
    launch.ranges.timed(5_000, 5_000 * IN_ORDER)
    assert launch.ranges.worth(IN_ORDER) == int(UNTIMED_WORTH / IN_ORDER)
    assert launch.ranges.in_order(5_000) == 5_000  # not a trial
    launch.ranges.timed(5_000, 5_000 * IN_ORDER)
    assert launch.ranges.worth(IN_ORDER) == int(MOST_WORTH / IN_ORDER)
    alone = launch.ranges.places[-1]
    assert (alone.name, alone.trials, alone.items) == ("in order", 1, 10_000)


def test_a_cold_launch_and_cheap_first_items_do_not_leave_a_launch_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Mandelbrot of 192 x 192 on 16 cores: the first items take 15 ns in order, all of them 8 ms.
    launch = Launch(monkeypatch, expected=1.0, found=2.0)
    launch.set_models(
        CostModel(185e-6, 1 / 40, 0.0, 0.3, CALIBRATED), CostModel(1e-4, 1.0, 0.0, 0.1, CALIBRATED)
    )
    items, first_items, mean = 36_864, 15e-9, 8e-3 / 36_864
    launch.first.launch, launch.first.item = 90e-6, mean / 40
    launch.first.cold = 0.7e-3
    for _ in range(50):
        if launch.ranges.worth(first_items) > items:
            break
        if launch.ranges.in_order(items):
            launch.clock.now += items * mean
            launch.ranges.timed(items, items * mean)
        else:
            launch.run(1, items)
    assert len(launch.first.ran) >= 40
    assert launch.ranges.worth(first_items) < items / 4


def test_leaving_code_counts_against_every_place_but_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=1.0, found=1.0)
    launch.first.launch = 1e-5  # 30 us on one thread, 50 us in order, 50 us for leaving the code
    for _ in range(20):
        if launch.ranges.in_order(50):
            launch.ranges.timed(50, 50 * IN_ORDER)
        else:
            launch.run(1, items=50)
    assert launch.ranges.places[-1].items >= 500
    assert launch.ranges.worth(IN_ORDER) > 50


def test_a_place_that_gets_slower_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.3, found=0.3)
    launch.run(100)  # the decision is made for several ranges now
    launch.other.item *= 10
    before = len(launch.other.ran)
    launch.run(40)
    assert len(launch.other.ran) - before <= 8


def test_short_ranges_teach_the_time_of_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=1.0, found=1.0)
    launch.first.launch = 1.5e-4
    launch.run(1, items=100)
    assert launch.places[0].launch_seconds == pytest.approx(1.5e-4)
    launch.time_in_order()
    assert launch.ranges.worth(IN_ORDER) == pytest.approx(400, abs=1)
    launch.first.launch = 5e-3  # no launch takes that long: it is the items
    launch.run(1, items=100)
    assert launch.places[0].launch_seconds == pytest.approx(1.5e-4)
    assert launch.places[0].item_seconds == pytest.approx(49e-6)


def _calibration(backend: str, device: str, factor: float, **changes: object) -> Calibration:
    compiler = FunctionCompiler(compile_by_llvm)
    seconds = dict.fromkeys(CLASSES, factor * 1e-9)
    found = Calibration(
        backend, device, calibration.versions(compiler, device), 1e-4, 1e-5, 0.0, 0.0, 0.5,
        seconds, dict.fromkeys(CLASSES, 1e-9),
    )  # fmt: skip
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]  # fields by name


def test_explain_shows_expected_and_found_times_of_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=2.5, found=1.0, first=2.0)
    launch.run(2)
    first, other, _ = launch.ranges.places
    assert place_lines(first) == [
        "place first: ready, expected 200.1 ms (calibrated)",
        "ran 2 times: 200000 items in 400.2 ms, expected 250.2 ms",
        "4.0 times longer than expected in run 1: 200 ms, expected 50.1 ms",
    ]
    (line,) = place_lines(other)
    assert line.endswith("5.0 times as long as first, expected 1000.1 ms (calibrated)")


def test_the_model_weighs_classes_and_adds_copies() -> None:
    base = _calibration("llvm", "", 0.5)
    seconds = {"float": 1e-10, "integer": 1e-9, "memory": 1e-9, "control": 5e-9}
    card = _calibration("opencl", "card", 1.0, seconds=seconds, to_device=1e9, to_host=5e8)
    mix = model.weights(floats=0.6, integers=0.1, memory=0.1, control=0.2)
    found = model.calibrated(card, base, mix, 0, True, bytes_read=1000, bytes_written=2000)
    assert found.ratio == pytest.approx(0.6 * 0.1 + 0.1 + 0.1 + 0.2 * 5)
    assert found.copy_seconds == pytest.approx(1e-6 + 4e-6)
    assert found.expected(1000, 1e-6) == pytest.approx(1e-4 + 5e-6 + 1e-3 * found.ratio)
    assert found.expected(1000, 1e-6, is_resident=True) == pytest.approx(1e-4 + 1e-3 * found.ratio)
    assert model.calibrated(base, base, mix, 2, False, 0, 0).ratio == pytest.approx(0.5)
    long = dataclasses.replace(card, alone=dict.fromkeys(CLASSES, 5e-9))
    found = model.calibrated(long, base, mix, 0, True, bytes_read=0, bytes_written=0)
    assert found.work(1) == found.work(3) == pytest.approx(5.0)  # as one item takes
    assert found.work(1000) == pytest.approx(1000 * found.ratio)


@pytest.mark.usefixtures("empty_cache")
def test_a_calibration_is_kept_for_each_device(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = _calibration("double", "one", 1.0), _calibration("double", "other", 2.0)
    calibration.store(one)
    calibration.store(other)
    assert calibration.load("double") == DeviceCalibrations({"one": one, "other": other}, "")
    assert calibration.staleness(one, FunctionCompiler(compile_by_llvm)) == ""
    changed = FunctionCompiler(compile_by_llvm)
    monkeypatch.setattr(changed, "version", "9")
    assert "backend was" in calibration.staleness(one, changed)


@pytest.mark.usefixtures("empty_cache")
def test_a_stale_or_forged_calibration_is_refused_with_the_command() -> None:
    command = "run `ferry doctor --calibrate`"
    assert calibration.load("nobody") == DeviceCalibrations(
        {}, f"nobody is not calibrated; {command}"
    )
    old = _calibration("double", "old", 1.0)
    calibration.store(dataclasses.replace(old, versions={**old.versions, "processors": "0"}))
    assert calibration.load("double").why_not == (
        f"the calibration of double on old is stale: processors was 0, is {cpus()}; {command}"
    )
    path = calibration._entry("double").path
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"processors": "0"', b'"processors": "1"'))
    assert calibration.load("double").why_not == (
        "the calibration of double is refused: it is damaged, or was not stored with this user's "
        f"key; {command}"
    )
    calibration._entry("double").store(b'{"format": 99}')
    assert "it has format 99, and 2 is read here" in calibration.load("double").why_not
    for wrong in (b"[", b'{"format": 2, "devices": [{}]}', b'{"format": 2}'):
        calibration._entry("double").store(wrong)
        assert "cannot be used" in calibration.load("double").why_not


def test_llvm_names_its_version() -> None:
    assert calibration.versions(LLVM, "").keys() >= {"LLVM", "backend", "processor", "processors"}


def test_launches_are_deferred_while_a_decision_holds_for_their_number_of_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=0.1)
    launch.other.deferral = "its memory"
    launch.run(4)
    assert launch.ranges.deferral_of(100_000) is None  # the winner is not settled
    launch.run(12)
    while launch.ranges.deferral_of(100_000) is None:
        launch.run(1)
    learned = launch.places[1].unit, launch.places[1].activity.times
    assert launch.ranges.deferral_of(100_000) == "its memory"
    assert launch.ranges.deferral_of(99_999) is None
    launch.other.cold = 5.0
    for _ in range(20):  # a sequence, which counts as one range
        assert launch.ranges.deferral_of(100_000) == "its memory"
        launch.ranges.run_deferred(MACHINE, 0, 100_000)
    launch.ranges.write_back(MACHINE)
    assert (launch.places[1].unit, launch.places[1].activity.times) == learned
    assert place_lines(launch.places[1].activity)[-1] == (
        "20 times further, 2000000 items, not timed: results stayed there until launches behind "
        "them had run"
    )
    while launch.ranges.deferral_of(100_000):
        launch.ranges.run_deferred(MACHINE, 0, 100_000)
        launch.ranges.write_back(MACHINE)
    launch.run(1)  # decided anew, by its time
    assert launch.places[1].activity.times == learned[1] + 1


def test_a_place_that_has_lost_results_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Launch(monkeypatch, expected=0.1, found=0.1)
    launch.other.deferral = "its memory"
    launch.run(24)
    assert launch.ranges.lost("unplugged")
    assert launch.places[1].activity.state == "not usable: unplugged"
    assert launch.ranges.deferral_of(100_000) is None
    launch.run(1)
    assert launch.first.ran[-1] == (0, 100_000)
