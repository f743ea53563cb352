# SPDX-License-Identifier: Apache-2.0
"""Launches whose rule has several backends as places: compiled when they pay, same results."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Capabilities, RefusalError
from ferryvm.engine.execution import Execution
from ferryvm.engine.launch_place import calibration, chooser
from ferryvm.engine.launch_place.calibration import CLASSES, Calibration
from ferryvm.item_range import PlaceActivity
from ferryvm.policy import Choice, LaunchPlacing, Options, Policy, Profile, Rule, default

from ..double.compiler import LLVM, Compile, FunctionCompiler, compile_by_llvm
from ..double.registry import registry
from .mixing import placements
from .parallel_program import BODIES, HEAD, ITEMS, STORE

pytestmark = pytest.mark.usefixtures("empty_cache")


MANY = HEAD.replace(f"i64.const {ITEMS}", "i64.const 60000").replace("i64.const 4", "i64.const 9")
"""Nine launches with more items than a sample has."""


class Native(FunctionCompiler):
    """Compiles as llvm does, for threads."""

    capabilities = Capabilities(native=True, references=True)


def _calibrate(compiler: FunctionCompiler, factor: float) -> None:
    """The backend is calibrated: an instruction takes so many times its time in order."""
    name, seconds = compiler.name, dict.fromkeys(CLASSES, factor * 1e-9)
    versions = calibration.versions(compiler, "")
    alone = dict.fromkeys(CLASSES, 1e-9)
    calibration.store(Calibration(name, "", versions, 0.0, 0.0, 0.0, 0.0, 0.0, seconds, alone))


def _started(
    monkeypatch: pytest.MonkeyPatch, body: str = STORE, compile_: Compile = compile_by_llvm,
    factor: float = 0.1,
) -> Execution:  # fmt: skip
    monkeypatch.setattr(chooser, "EXIT", 0.0)
    monkeypatch.setattr(chooser, "_FIRST_IN_ORDER", 1 << 40)
    mine = Native(compile_)
    for compiler, ratio in ((LLVM, 0.5), (mine, factor)):
        _calibrate(compiler, ratio)  # type: ignore[arg-type]  # any compiler
    options = Options(background=False, cache=False, threads=2)
    choices = Choice("llvm", options), Choice("mine", options)
    rule = Rule(backends=choices, place=LaunchPlacing.MEASURED)
    policy = Policy(profile=Profile(loop_threshold=2), rules=(rule,))
    return Engine(policy=policy, registry=registry(mine)).start(ferryvm.assemble(MANY + body))


def _places(execution: Execution) -> tuple[PlaceActivity, ...]:
    (launch,) = [one for each in placements(execution) for one in each.launches]
    return launch.places


def test_a_launch_moves_to_the_place_that_is_expected_to_be_quicker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = _started(monkeypatch)
    expected = Engine("threaded").start(ferryvm.assemble(MANY + STORE)).run()
    assert execution.run().value == expected.value
    first, other, alone = _places(execution)
    assert first.name.startswith("llvm on 2 threads")
    assert (other.name, alone.name) == ("mine", "in order")
    assert (first.source, other.source, other.state) == ("calibrated", "calibrated", "compiled")
    assert other.items >= 7_500  # an eighth of a launch, at least
    assert other.trials >= 1


@pytest.mark.parametrize(
    "name", ["prints where it is divisible by 100", "makes an object now and then"]
)
def test_items_that_suspend_on_any_place_keep_the_order(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = BODIES[name]
    expected = Engine("threaded").start(ferryvm.assemble(MANY + body)).run()
    found = _started(monkeypatch, body).run()
    assert (found.value, found.output) == (expected.value, expected.output)


def test_a_place_that_refuses_is_left_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> ferryvm.backend.Code:
        raise RefusalError("not on a Sunday")

    execution = _started(monkeypatch, compile_=refuse)
    execution.run()
    assert _places(execution)[1].state == "not usable: not on a Sunday"


def test_a_place_that_is_expected_to_be_slower_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    execution = _started(monkeypatch, factor=2.0)
    execution.run()
    assert _places(execution)[1].state.startswith("not compiled: it is expected to take ")
    attempts = [one for each in placements(execution) for one in each.attempts]
    assert {one.backend for one in attempts} == {"llvm"}


def test_without_a_calibration_the_default_policy_asks_llvm_alone() -> None:
    execution = Engine(policy=default()).start(ferryvm.assemble(MANY + STORE))
    execution.run()
    for place in [one for each in placements(execution) for one in each.launches]:
        for source in [one.source for one in place.places]:
            assert source.startswith("defaults: ")
            assert source.endswith("is not calibrated; run `ferry doctor --calibrate`")
    attempts = [one for each in placements(execution) for one in each.attempts]
    assert {one.backend for one in attempts} <= {"llvm"}
