# SPDX-License-Identifier: Apache-2.0
"""Backends' own metrics of a run are found by name, whatever became of their code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import ferryvm
from ferryvm.backend import Activity, Code, Compiler, Options, RefusalError
from ferryvm.engine import Engine, Execution
from ferryvm.engine.observer import Observer
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.policy import Choice, Policy, Profile, Rule, Shadow
from ferryvm.policy import Options as Chosen
from ferryvm.region.region import Region
from ferryvm.registry import Registry

from ..double.code import PythonCode
from ..double.registry import registry

TWO_LOOPS = ferryvm.compile(
    "(define i 0) (while (< i 99) (set! i (+ i 1))) (while (> i 0) (set! i (- i 1))) (print! i)"
)


class Leaving(PythonCode):
    """Code that goes nowhere, and counts how often it was entered; lost after some times."""

    def __init__(self, region: Region, metrics: Callable[[Leaving], object], lasts: int) -> None:
        super().__init__(self._enter, {"total": 0.0})
        self.region, self.entered = region.name, 0
        self._metrics, self._lasts = metrics, lasts

    @property
    def lost(self) -> str:
        return "worn out" if self.entered >= self._lasts else ""

    def _enter(self, control: ControlBlock) -> int:
        self.entered += 1
        control.status = Status.LOST if self.lost else Status.LEAVE
        return control.status

    def activity(self) -> Activity:
        return Activity(self.entered)

    def metrics(self) -> object:
        return self._metrics(self)


def entries(code: Leaving) -> object:
    return code.region, code.entered


def counted(
    metrics: Callable[[Leaving], object] = entries,
    report: Callable[[Sequence[object]], Any] = lambda all_metrics: {"codes": list(all_metrics)},
    lasts: int = 1 << 30,
) -> Registry:
    """Ours, and a compiler `mine`."""

    class Mine(Compiler):
        name, version = "mine", "1"

        def compile(self, region: Region, options: Options) -> Code:
            if "nest" in region.name:
                raise RefusalError("no nests")
            return Leaving(region, metrics, lasts)

        def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
            result: Mapping[str, object] = report(all_metrics)
            return result

    return registry(Mine, name="mine")


def run(found: Registry, shadow: Shadow | None = None) -> Execution:
    chain = (Choice("mine", Chosen(background=False)),)
    policy = Policy(profile=Profile(True, 20, 20), rules=(Rule(backends=chain),), shadow=shadow)
    execution = Engine(policy=policy, registry=found).start(TWO_LOOPS)
    execution.run()
    return execution


def test_the_report_is_made_of_what_all_codes_of_a_backend_gave() -> None:
    codes: Any = run(counted()).metrics()["mine"]["codes"]
    assert [region for region, _ in codes] == ["main/loop.1", "main/loop.2"]
    assert all(79 <= entered <= 81 for _, entered in codes)  # 99 rounds, hot after 20


def test_what_was_done_by_code_that_is_lost_is_in_it() -> None:
    found = run(counted(lasts=7)).metrics()
    assert found == {"mine": {"codes": [("main/loop.1", 7), ("main/loop.2", 7)]}}


def test_code_behind_a_shadow_gives_its_own() -> None:
    codes: Any = run(counted(), Shadow("switch")).metrics()["mine"]["codes"]
    assert [region for region, _ in codes] == ["main/loop.1", "main/loop.2"]


def test_an_observed_run_has_them_too() -> None:
    rule = Rule(backends=(Choice("mine", Chosen(background=False)),))
    engine = Engine(policy=Policy(profile=Profile(True, 20, 20), rules=(rule,)), registry=counted())
    Observer(transfers=True).watch(engine)
    execution = engine.start(TWO_LOOPS)
    execution.run()
    assert "mine" in execution.metrics()


def test_who_keeps_none_is_left_out() -> None:
    assert run(counted(metrics=lambda code: None)).metrics() == {}
    assert Engine("switch").start(TWO_LOOPS).metrics() == {}
    execution = Engine("llvm").start(TWO_LOOPS)
    execution.run()
    assert execution.metrics() == {}


def test_they_are_those_of_the_last_run_s_backends() -> None:
    execution = run(counted())
    execution = execution.again()
    execution.run(backend="switch")
    assert execution.metrics() == {}


def fails(*_: object) -> object:
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("metrics", "report", "said"),
    [
        (fails, dict, "its metrics raised ValueError: no idea"),
        (entries, fails, "its report raised ValueError: no idea"),
        (entries, list, "its report returned a list, not a mapping"),
        (entries, lambda _: {"x": object()}, "nothing that JSON can hold"),
        (entries, lambda _: {"x": float("nan")}, "nothing that JSON can hold"),
    ],
)
def test_a_backend_that_fails_to_give_any_is_told_in_their_place(
    metrics: Callable[[Leaving], object], report: Callable[[Sequence[object]], Any], said: str
) -> None:
    found = run(counted(metrics, report)).metrics()
    assert list(found) == ["mine"]
    (what,) = found["mine"].values()
    assert said in str(what)
