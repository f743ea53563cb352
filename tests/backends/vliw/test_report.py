# SPDX-License-Identifier: Apache-2.0
"""What a run took: every figure from counts, no code and no machine forgotten, none mixed up."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine, Execution
from ferryvm.errors import Position
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy import Options as Chosen
from ferryvm.policy.predicate import read
from ferryvm_backends.vliw import ENVIRONMENT, VliwBackend
from ferryvm_backends.vliw.code.program import LoopSummary, Program
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.report import report
from ferryvm_backends.vliw.statistics import ProgramMetrics, Totals

from ...double.registry import registry
from ...tier import sample
from .program import compiled, run, whole
from .test_backend import MANY, with_registers

TEXT = """
(define v (make-array f64 40)) (define i 0) (define s 0.0)
(while (< i 40) (array-set! v i (/ (f64 i) 3.0)) (set! i (+ i 1)))
(define (total n) (define j 0) (while (< j n) (set! s (+ s (array-ref v j))) (set! j (+ j 1))) j)
(print! (total 40))
"""


def machines(execution: Execution) -> list[dict[str, Any]]:
    found: Any = execution.metrics()["vliw"]["machines"]
    return found


def ran(engine: Engine, text: str = TEXT) -> Execution:
    execution = engine.start(ferryvm.compile(text, "p.skiff"))
    execution.run()
    return execution


@pytest.mark.parametrize("name", sample(shipped(), 1))
def test_the_figures_of_a_run_fit_together(name: str) -> None:
    (found,) = machines(ran(Engine("vliw", device=name)))
    machine, total = find(name), found["total"]
    assert (found["machine"], found["device"]) == (name, name)
    assert total["cycles"] > 500
    assert total["milliseconds"] == pytest.approx(total["cycles"] / machine.clock / 1e3)
    groups = total["units"]
    assert set(groups) == {unit.group for unit in machine.units}
    for group, metrics in groups.items():
        each = metrics["each"]
        assert list(each) == [unit.name for unit in machine.units if unit.group == group]
        assert metrics["operations"] == sum(one["operations"] for one in each.values())
        for one in each.values():
            assert one["utilization"] == round(one["operations"] / total["cycles"], 6)
            assert one["utilization"] <= one["occupancy"] <= 1
    assert total["operations"] == sum(metrics["operations"] for metrics in groups.values())
    assert total["operations_per_cycle"] == round(total["operations"] / total["cycles"], 6)
    assert total["stall_cycles"] == sum(total["stalls"].values())
    assert 0 < total["stall_cycles"] < total["cycles"]
    transfers = total["transfers"]
    assert transfers["bytes_to_device"] > 0 < transfers["bytes_to_host"]
    assert transfers["cycles"] >= transfers["bytes_to_device"] / machine.transfer.bytes_per_cycle


@pytest.mark.nightly
def test_the_total_of_a_machine_is_that_of_its_regions() -> None:
    """The program goes on behind each host call in code of its own."""
    calling = "(define k 0) (while (< k 200) (print! k) (set! k (+ k 1)))"
    (found,) = machines(ran(Engine("vliw"), f"{TEXT}\n{calling}"))
    assert len(found["regions"]) > 1
    for key in ("entries", "cycles", "operations", "stall_cycles"):
        assert found["total"][key] == sum(region[key] for region in found["regions"])
    assert found["regions"][0]["region"] == "program"
    assert found["regions"][0]["position"].startswith("p.skiff:2:")


def test_cycles_with_nothing_issued_are_those_of_the_empty_bundles() -> None:
    part = whole(TEXT.replace("(print!", "(+ 1"))
    program = compiled(part, find("dsp4"))
    counts = run(program, part, is_native=True).counts
    empty = np.array([not bundle for bundle in program.bundles])
    found = metrics(program, counts.bundles)["total"]
    assert found["stall_cycles"] == counts.bundles[empty].sum()
    assert found["cycles"] == counts.cycles
    assert found["operations"] == counts.issued.total()
    assert found["stalls"]["branch_delay"] > 0


def metrics(program: Program, bundles: np.ndarray[Any, Any]) -> Any:
    """Of a program whose bundles were fetched so many times, in one entry."""
    totals = Totals(bundles, entries=1, cycles=int(bundles.sum()))
    places = {3: Position("p.skiff", 7, 1)}
    return report([ProgramMetrics(program, "here", 0, places, totals)])["machines"][0]


def test_a_divider_that_takes_no_more_is_occupied_and_hardly_used() -> None:
    part = whole("(define d 3) (define i 0) (while (< i 50) (set! d (/ 900 d)) (set! i (+ i 1))) d")
    program = compiled(part, find("multi16"))
    units = metrics(program, run(program, part, is_native=True).counts.bundles)["total"]["units"]
    assert units["alu"]["each"]["alu0"]["occupancy"] > 0.5
    assert units["alu"]["each"]["alu0"]["utilization"] < 0.3


def test_spills_are_counted_as_they_were_done() -> None:
    part = whole(MANY)
    for machine in (find("single"), with_registers(find("single"), 6)):
        program = compiled(part, machine)
        counts = run(program, part, is_native=True).counts
        spills = metrics(program, counts.bundles)["total"]["spills"]
        assert spills["registers"] == program.spilled
    assert spills["registers"] > 10
    assert spills["loads"] > 20
    assert spills["stores"] > 20


def test_a_loop_is_told_with_its_bounds_its_line_and_the_passes_that_were_run() -> None:
    part = whole("(define i 0) (while (< i 100) (set! i (+ i 1)))")
    program = compiled(part, find("multi16"))
    loops = (
        LoopSummary("b3", 3, 2, 10, 14, 2, 3, 1, "alu", 2),
        LoopSummary("b9", 5, 1, 16, 19, 1, 1, 2, "slots", 3, "a call is in it"),
    )
    bundles = np.zeros(len(program.bundles), np.int64)
    bundles[10:14] = 7, 7, 6, 6
    bundles[16:19] = 5
    some = next(each for each in program.bundles if each)
    filled = tuple(each or some for each in program.bundles)  # kernels do something
    forged = dataclasses.replace(program, loops=loops, bundles=filled)
    found = metrics(forged, bundles)["regions"][0]["loops"]
    page = (Path(__file__).parents[3] / "docs" / "vliw.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in page for key in found[0])
    assert found == [
        {
            "block": "b3",
            "pc": 3,
            "position": "p.skiff:7:1",
            "initiation_interval": 2,
            "resource_mii": 1,
            "resource": "alu",
            "recurrence_mii": 2,
            "stages": 3,
            "unrolled": 2,
            "expanded": 2,
            "passes": 13,
            "cycles": 26,
            "not_pipelined": "",
        },
        {
            "block": "b9",
            "pc": 5,
            "position": None,
            "initiation_interval": 3,
            "resource_mii": 2,
            "resource": "slots",
            "recurrence_mii": 3,
            "stages": 1,
            "unrolled": 1,
            "expanded": 1,
            "passes": 5,
            "cycles": 15,
            "not_pipelined": "a call is in it",
        },
    ]


# --- machines and codes ---------------------------------------------------------------------


def rule(when: dict[str, Any], device: str) -> Rule:
    choice = Choice("vliw", Chosen(background=False, device=device))
    return Rule(when=read(when, ("when",), print), backends=(choice,))


@pytest.mark.nightly
def test_two_machines_of_one_run_are_told_apart_even_by_one_name(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text(shipped()["single"].read_text().replace("clock = 100", "clock = 50"))
    rules = rule({"kind": "function"}, str(path)), rule({}, "single")
    engine = Engine(policy=Policy(profile=Profile(True, 10, 1), rules=rules))
    first, second = sorted(machines(ran(engine)), key=lambda each: each["device"] == "single")
    assert (first["device"], first["clock_mhz"]) == (str(path), 50)
    assert (second["device"], second["clock_mhz"]) == ("single", 100)
    assert first["machine"] == second["machine"] == "single"
    assert [region["region"] for region in first["regions"]] == ["total"]
    assert {region["region"] for region in second["regions"]} >= {"main/loop.1"}
    for one in (first, second):
        cycles = sum(region["cycles"] for region in one["regions"])
        assert one["total"]["cycles"] == cycles > 100


def test_the_machine_that_the_environment_names_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "wide16")
    (found,) = machines(ran(Engine("vliw")))
    assert (found["machine"], found["device"]) == ("wide16", "wide16")


def test_what_code_took_that_is_lost_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    """More of the heap is in use after some entries than the machine's memory holds."""
    backend = VliwBackend(dataclasses.replace(find("multi16"), memory=100_000))
    backend.name = "tight"
    chain = (Choice("tight", Chosen(background=False)),)
    policy = Policy(profile=Profile(True, 10, 5), rules=(Rule(backends=chain),))
    execution = ran(
        Engine(policy=policy, registry=registry(backend)),
        """(define (fill n) (define v (make-array i64 n)) (array-set! v 1 n) (array-ref v 1))
        (define i 0) (while (< i 40) (print! (fill 400)) (set! i (+ i 1)))""",
    )
    found: Any = execution.metrics()["tight"]["machines"]
    (region,) = [one for one in found[0]["regions"] if one["region"] == "fill"]
    assert region["entries"] > 4
    assert region["cycles"] > 100
    assert "backend 'tight' failed on region fill" in caplog.text
    assert found[0]["total"]["cycles"] >= region["cycles"]


def test_an_account_is_a_copy_that_later_entries_do_not_change() -> None:
    code = VliwBackend(find("single")).compile(whole("1"), Options())
    metrics = code.metrics()
    assert isinstance(metrics, ProgramMetrics)
    assert metrics.totals.bundles is not code.totals.bundles  # type: ignore[attr-defined]  # of this backend
    assert metrics.totals is not code.totals  # type: ignore[attr-defined]  # of this backend


def test_the_figures_are_what_json_can_hold() -> None:
    found = ran(Engine("vliw")).metrics()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_machine_without_a_run_has_figures_of_nothing() -> None:
    program = compiled(whole("1"), find("multi16"))
    total = metrics(program, np.zeros(len(program.bundles), np.int64))["total"]
    assert (total["cycles"], total["operations_per_cycle"]) == (0, 0.0)
