# SPDX-License-Identifier: Apache-2.0
"""Launches whose rule has several backends as places: compiled when they pay, same results."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import BackendError, Capabilities, Compiler, RefusalError
from ferryvm.calibrator import calibrate
from ferryvm.engine import launching
from ferryvm.engine.execution import Execution
from ferryvm.engine.launch_place import calibration, chooser
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration, DeviceCalibrations
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.item_range import PlaceActivity, RangeOutcome
from ferryvm.machine.chunk import ChunkLoop
from ferryvm.machine.state import Machine
from ferryvm.policy import Choice, LaunchPlacing, Options, Policy, Profile, Rule, default
from ferryvm.policy.machine import here
from ferryvm_backends.opencl import OpenClBackend

from ..double.compiler import LLVM, Compile, FunctionCompiler, compile_by_llvm
from ..double.registry import registry
from .mixing import placements
from .parallel_program import BODIES, HEAD, ITEMS, STORE, TRAPPING

MANY = HEAD.replace(f"i64.const {ITEMS}", "i64.const 600000").replace("i64.const 4", "i64.const 9")
"""Nine launches with more items than a sample has."""

MORE = MANY.replace("600000", "900000")
"""The same with half as many items more: a sample leaves enough in any case."""

FEWER = MANY.replace("600000", "60000")
"""A tenth of those items, for items that take longer."""


_QUICK = ("stores", "prints where it is divisible by 100")


class Native(FunctionCompiler):
    """Compiles as llvm does, for threads."""

    capabilities = Capabilities(native=True, references=True)

    def chunk_loop(self) -> ChunkLoop | None:
        return LLVM.chunk_loop()


def _calibrated(compiler: Compiler, factor: float) -> Calibration:
    """The backend's calibration: an instruction on two threads takes so many times its time in
    order."""
    whole = factor * 1e-9 * 2 / max(here().cpus, 2)  # calibrations are of all processors
    seconds, alone = dict.fromkeys(CLASSES, whole), dict.fromkeys(CLASSES, 1e-9)
    versions = calibration.versions(compiler, "")
    return Calibration(compiler.name, "", versions, 0.0, 0.0, 0.0, 0.0, 0.0, seconds, alone)


def _started(
    monkeypatch: pytest.MonkeyPatch, body: str = STORE, compile_: Compile = compile_by_llvm,
    factor: float = 0.1, place: LaunchPlacing = LaunchPlacing.MEASURED, head: str = "",
) -> Execution:  # fmt: skip
    monkeypatch.setattr(chooser, "EXIT", 0.0)
    monkeypatch.setattr(chooser, "_FIRST_IN_ORDER", 1 << 40)
    mine = Native(compile_)
    known = {"llvm": _calibrated(LLVM, 0.5), "mine": _calibrated(mine, factor)}
    monkeypatch.setattr(
        calibration,
        "load",
        lambda name: DeviceCalibrations({"": known[name]} if name in known else {}, ""),
    )
    options = Options(background=False, cache=False, threads=2)
    choices = Choice("llvm", options), Choice("mine", options)
    rule = Rule(backends=choices, place=place)
    policy = Policy(profile=Profile(loop_threshold=2), rules=(rule,))
    return Engine(policy=policy, registry=registry(mine)).start(
        ferryvm.assemble((head or MANY) + body)
    )


def _places(execution: Execution) -> tuple[PlaceActivity, ...]:
    (launch,) = [one for each in placements(execution) for one in each.launches]
    return launch.places


def test_a_launch_moves_to_the_place_that_is_expected_to_be_quicker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = _started(monkeypatch, head=MORE)
    expected = Engine("threaded").start(ferryvm.assemble(MORE + STORE)).run()
    assert execution.run().value == expected.value
    first, other, alone = _places(execution)
    assert first.name.startswith("llvm on 2 threads")
    assert (other.name, alone.name) == ("mine", "in order")
    assert (first.source, other.source, other.state) == ("calibrated", "calibrated", "compiled")
    assert other.items >= 40_000  # an eighth of what a sample leaves
    assert other.trials >= 1


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize(
    "name", ["prints where it is divisible by 100", "makes an object now and then"]
)
def test_items_that_suspend_on_any_place_keep_the_order(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = BODIES[name]
    expected = Engine("threaded").start(ferryvm.assemble(FEWER + body)).run()
    found = _started(monkeypatch, body, head=FEWER).run()
    assert (found.value, found.output) == (expected.value, expected.output)


def test_a_place_that_refuses_is_left_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> ferryvm.backend.Code:
        raise RefusalError("not on a Sunday")

    execution = _started(monkeypatch, compile_=refuse)
    execution.run()
    assert _places(execution)[1].state == "not usable: not on a Sunday"


def test_a_place_whose_calibration_is_stale_is_left_with_what_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = _started(monkeypatch)
    monkeypatch.setattr(Native, "version", "2")
    execution.run()
    assert _places(execution)[1].state == (
        "not usable: the calibration of mine is stale: backend was 1, is 2; "
        "run `ferry doctor --calibrate`"
    )


def test_a_place_that_is_expected_to_be_slower_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = _started(monkeypatch, factor=2.0)
    execution.run()
    assert _places(execution)[1].state.startswith("not compiled: it is expected to take ")
    attempts = [one for each in placements(execution) for one in each.attempts]
    assert {one.backend for one in attempts} == {"llvm"}


def test_without_a_calibration_the_default_policy_asks_llvm_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "it is not calibrated; run `ferry doctor --calibrate`"
    monkeypatch.setattr(calibration, "load", lambda _: DeviceCalibrations({}, why))
    execution = Engine(policy=default()).start(ferryvm.assemble(MANY + STORE))
    execution.run()
    for place in [one for each in placements(execution) for one in each.launches]:
        for source in [one.source for one in place.places]:
            assert source == f"defaults: {why}"
    attempts = [one for each in placements(execution) for one in each.attempts]
    assert {one.backend for one in attempts} <= {"llvm"}


@pytest.mark.parametrize(
    "name",
    [name if name in _QUICK else pytest.param(name, marks=pytest.mark.nightly) for name in BODIES],
)
def test_a_split_launch_has_the_output_and_the_state_of_the_loop(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = Engine("threaded").start(ferryvm.assemble(HEAD + BODIES[name]))
    expected = reference.run()
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    execution = _started(monkeypatch, BODIES[name], place=LaunchPlacing.SPLIT, head=HEAD)
    found = execution.run()
    assert (found.value, found.output) == (expected.value, expected.output)
    assert execution.machine.snapshot() == reference.machine.snapshot()
    if name == "stores":
        first, other, _ = _places(execution)
        assert first.items > 0
        assert other.items > 0


def test_the_trap_of_a_split_launch_is_that_of_the_lowest_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    execution = _started(monkeypatch, TRAPPING, place=LaunchPlacing.SPLIT, head=HEAD)
    with pytest.raises(ferryvm.TrapError, match=r"division by zero, in item 411\n"):
        execution.run()


def test_the_part_of_a_place_that_fails_runs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, machine: Machine, first: int, limit: int) -> RangeOutcome:
        if first:
            raise BackendError("the device is lost")
        return run(self, machine, first, limit)  # type: ignore[arg-type]  # a ThreadedRanges

    run = ThreadedRanges.run
    execution = _started(monkeypatch, place=LaunchPlacing.SPLIT)
    expected = Engine("threaded").start(ferryvm.assemble(MANY + STORE)).run()
    monkeypatch.setattr(ThreadedRanges, "run", fail)
    assert execution.run().value == expected.value
    assert _places(execution)[1].state == "not usable: the device is lost"


_MANY_LINES = ("prints always", "prints where it is divisible by 100")


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*BODIES])
def test_a_launch_is_split_over_threads_and_a_device(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    program = ferryvm.assemble((FEWER if name in _MANY_LINES else MANY) + BODIES[name])
    reference = Engine("threaded").start(program)
    expected = reference.run()
    options = Options(background=False, threads=2)
    choices = Choice("llvm", options), Choice("opencl", options)
    rule = Rule(backends=choices, place=LaunchPlacing.SPLIT)
    policy = Policy(profile=Profile(loop_threshold=2), rules=(rule,))
    execution = Engine(policy=policy).start(program)
    found = execution.run()
    assert (found.value, found.output) == (expected.value, expected.output)
    assert execution.machine.snapshot() == reference.machine.snapshot()
    if name in ("stores", "updates elements that others update"):
        assert min(place.items for place in _places(execution)[:2]) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("wraps", [True, False])
def test_a_device_is_calibrated_with_its_copies(wraps: bool) -> None:
    found = calibrate(OpenClBackend(wraps=wraps), "")
    assert (found.to_device > 0, found.to_host > 0) == (not wraps, not wraps)
    assert min(found.seconds.values()) > 0
    assert found.launch_seconds > 0
    assert found.in_order == {}
