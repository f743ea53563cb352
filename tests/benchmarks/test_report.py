# SPDX-License-Identifier: Apache-2.0
"""Reports of peers against each other: ratios, what is missing, faults, goals."""

from __future__ import annotations

import io
import json

import pytest
from benchmarks import table
from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.comparison import compare
from benchmarks.interpreter import SUITE
from benchmarks.peers.peer import Measurement, Task
from benchmarks.report import Report, identity
from rich.console import Console

from ..double.peer import BOTH, FakePeer, compared


def shown(report: Report) -> str:
    text = io.StringIO()
    table.show(report, Console(width=200, file=text))
    return text.getvalue()


def test_ratios_are_over_the_baseline_of_the_same_program() -> None:
    report = compared(FakePeer("gcc", 0.5), FakePeer("switch", 4.0))
    assert report.ratio("loop", "switch", "gcc") == 8.0
    assert report.ratio("loop", "gcc", "gcc") == 1.0


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("switch", 1.0))
    cells = report.cells["loop"]
    cells["gcc"].seconds, cells["switch"].seconds = [1.0, 1.0, 1.0, 1.5, 1.5], [1.0, 1.5, 1.5, 1.5]
    assert report.seconds("loop", "switch") == 1.5
    assert report.ratio("loop", "switch", "gcc") == 1.25  # of 1, 1.5, 1.5 and 1
    cells["switch"].failure = "ended"
    assert report.ratio("loop", "switch", "gcc") is None


def test_mean_covers_the_programs_that_both_ran_and_says_how_many() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("luajit", 3.0, lacks=("fib",)))
    mean, programs = report.mean("luajit", "gcc")
    assert mean == pytest.approx(3.0)
    assert programs == 1


def test_missing_peer_is_listed_with_its_reason() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("wasm3", 1.0, installed=False))
    assert report.missing == {"wasm3": "wasm3 is not installed"}
    assert "missing: WASM3: wasm3 is not installed" in shown(report)
    assert report.as_json()["peers"]["wasm3"]["missing"] == "wasm3 is not installed"


def test_skipped_program_is_listed_with_its_reason() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("luajit", 1.0, lacks=("loop", "fib")))
    assert table.absences(report) == [
        "missing: LUAJIT on loop: lacks loop",
        "missing: LUAJIT on fib: lacks fib",
    ]
    assert report.as_json()["programs"]["fib"]["luajit"] == {"missing": "lacks fib"}


def test_peers_that_disagree_are_a_fault() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("wasm3", 1.0, result=8))
    assert report.faults() == [
        "loop: the peers' results differ: gcc 7, wasm3 8",
        "fib: the peers' results differ: gcc 7, wasm3 8",
    ]
    assert "FAULT loop" in shown(report)


def test_zeros_of_other_signs_are_other_results() -> None:
    assert identity(0.0) != identity(-0.0)
    assert identity(1) != identity(1.0)
    assert identity(float("nan")) == identity(float("nan"))


def test_programs_whose_results_differ_in_a_sign_are_a_fault() -> None:
    report = compared(FakePeer("gcc", 1.0, 0.0), FakePeer("lua", 1.0, -0.0))
    assert report.faults()[0] == "loop: the peers' results differ: gcc 0.0, lua -0.0"


def test_result_that_changes_between_rounds_is_a_fault() -> None:
    class Unsteady(FakePeer):
        def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
            results = iter([1, 2, 2])
            return lambda: Measurement(1.0, next(results))

    report = compared(Unsteady("lua", 1.0))
    assert report.faults()[0] == "loop: lua failed: it gave 1, then 2"
    assert report.seconds("loop", "lua") is None


def test_peer_that_fails_is_a_fault_and_the_others_go_on() -> None:
    class Broken(FakePeer):
        def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
            if benchmark.name == "fib":
                raise BenchmarkError("does not compile")
            return self._fail

        def _fail(self) -> Measurement:
            raise BenchmarkError("exited with 139")

    report = compared(Broken("lua", 1.0), FakePeer("gcc", 0.5))
    assert report.faults() == [
        "loop: lua failed: exited with 139",
        "fib: lua failed: does not compile",
    ]
    assert report.seconds("loop", "gcc") == 0.5
    assert report.as_json()["programs"]["fib"]["lua"] == {"failure": "does not compile"}


def test_target_is_not_known_without_its_peers() -> None:
    targets = compared(FakePeer("switch", 1.0), FakePeer("cpp-switch", 1.5)).targets()
    assert [(target.found, target.is_met) for target in targets] == [
        (1.5, True),
        (None, None),
        (None, None),
        (None, None),
    ]


def test_target_of_threaded_is_two_and_a_half_times_computed_goto() -> None:
    threaded, listing = FakePeer("threaded", 1.0), FakePeer("threaded-listing", 0.9)
    report = compared(threaded, listing, FakePeer("cpp-goto", 2.4))
    assert [target.is_met for target in report.targets()] == [None, False, True, None]


def test_small_sizes_are_not_held_against_targets() -> None:
    report = compare(SUITE, BOTH, {"switch": FakePeer("switch", 1.0)}, 1, Scale.QUICK)
    assert report.targets() == []


def test_table_shows_medians_and_json_every_round() -> None:
    report = compared(FakePeer("gcc", 0.25), FakePeer("lua", 2.5))
    assert "2.5000" in shown(report)
    whole = json.loads(json.dumps(report.as_json()))
    assert whole["programs"]["loop"]["lua"]["seconds"] == [2.5, 2.5, 2.5]
    assert whole["programs"]["loop"]["lua"]["over_gcc"] == 10.0
    assert whole["peers"]["lua"]["version"] == "lua 1.0"
    assert whole["geometric_means"]["lua"]["over_gcc"]["programs"] == 2
    assert {"date", "commit", "machine", "rounds", "targets"} <= set(whole)
