# SPDX-License-Identifier: Apache-2.0
"""The suite of the compilers: memory, compile times, its goals, and twins that need a compiler."""

from __future__ import annotations

import io
import runpy
import shutil
import sys

import pytest
from benchmarks import peers, table
from benchmarks.__main__ import main
from benchmarks.benchmark import BENCHMARKS, BY_NAME, Benchmark, BenchmarkError, Scale
from benchmarks.comparison import compare
from benchmarks.peers import process
from benchmarks.peers.njit import ENVIRONMENT, NumbaPeer
from benchmarks.peers.peer import MissingError, Task, measured
from benchmarks.scalar import SUITE
from click.testing import CliRunner
from rich.console import Console

from ..double.peer import BOTH, CompilingPeer, FakePeer, compared

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.mark.rotate("benchmark", "name", most=3)
@pytest.mark.parametrize("name", ["gcc", "clang", "luajit", "node", "pypy"])
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_peer_gives_the_python_twins_result(benchmark: Benchmark, name: str) -> None:
    expected = runpy.run_path(str(benchmark.path("py")))["work"](*benchmark.at(Scale.TINY))
    peer = peers.compilers(None, {})[name]
    try:
        peer.version()
        found = peer.prepare(benchmark, Scale.TINY)()
    except MissingError as error:
        pytest.skip(str(error))
    assert found.result == expected
    assert found.seconds >= 0


def test_ferry_in_a_process_of_its_own_gives_result_and_preparation() -> None:
    found = peers.compilers(None, {})["switch"].prepare(BY_NAME["fib"], Scale.TINY)()
    assert found.result == 21
    assert found.compile_seconds is not None
    assert found.compile_seconds > 0


# --- memory and compile times ---------------------------------------------------------------------


@needs_gcc
def test_peak_is_the_childs_own_and_not_the_harness() -> None:
    ballast = bytearray(256 << 20)
    for at in range(0, len(ballast), 4096):
        ballast[at] = 1
    code = "import sys; data = b'x' * (64 << 20); print('0.5', len(data) >> 26)"
    found = measured(BY_NAME["fib"], [sys.executable, "-c", code])
    assert found.result == 1
    assert found.peak is not None
    assert 64 << 20 < found.peak < 200 << 20 < len(ballast)


@needs_gcc
def test_launcher_ends_as_the_command_does() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert process.run([sys.executable, "-c", code], 60.0, {}).exit_code == 128 + 11
    assert process.run([sys.executable, "-c", "raise SystemExit(3)"], 60.0, {}).exit_code == 3


def test_first_compile_is_told_from_those_that_find_a_cache() -> None:
    peer = CompilingPeer("llvm", 1.0, [0.5, 0.1, 0.3, 0.2], 5 << 20)
    report = compared(peer, rounds=4)
    cell = report.cell("fib", "llvm")
    assert cell is not None
    assert (cell.first_compile, cell.later_compile) == (0.5, 0.2)
    assert cell.peak == 5 << 20
    text = io.StringIO()
    table.show_compilers(report, Console(width=200, file=text))
    assert "500.0 / 200.0" in text.getvalue()
    assert "5.0" in text.getvalue()
    assert report.as_json()["programs"]["fib"]["llvm"]["compile_seconds"] == peer.compiling


def test_peer_that_cannot_tell_compiling_apart_shows_none() -> None:
    report = compared(FakePeer("node", 1.0))
    cell = report.cell("fib", "node")
    assert cell is not None
    assert (cell.first_compile, cell.later_compile, cell.peak) == (None, None, None)


# --- goals ----------------------------------------------------------------------------------------


def test_folded_loop_is_in_no_mean() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("llvm", 2.0), suite=SUITE)
    assert report.ratios("llvm", "gcc") == {"fib": 2.0}
    assert report.mean("llvm", "gcc") == (pytest.approx(2.0), 1)
    assert report.as_json()["not_in_means"] == ["loop"]


@pytest.mark.parametrize(("seconds", "met"), [(0.0009, True), (0.04, False)])
def test_loop_is_folded_if_it_takes_less_than_a_millisecond(seconds: float, met: bool) -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("llvm", seconds), suite=SUITE)
    assert report.targets()[2].is_met is met


def test_goals_are_upper_bounds_on_mean_and_worst_program() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("llvm", 1.2), suite=SUITE)
    mean, worst, _ = report.targets()
    assert (mean.is_met, worst.is_met) == (False, True)
    assert str(mean) == (
        "target: llvm over gcc -O3, geometric mean: at most 1.05x, found 1.20x: NOT met"
    )
    assert mean.as_json()["at_most"] == 1.05


def test_goals_are_not_known_where_llvm_failed_on_a_program() -> None:
    report = compared(FakePeer("gcc", 1.0), FakePeer("llvm", 1.0, lacks=("fib",)), suite=SUITE)
    assert [target.is_met for target in report.targets()[:2]] == [None, None]


def test_small_sizes_are_not_held_against_the_goals() -> None:
    assert compare(SUITE, BOTH, {"llvm": FakePeer("llvm", 1.0)}, 1, Scale.QUICK).targets() == []


# --- Numba ----------------------------------------------------------------------------------------


def test_numba_without_a_python_says_how_to_name_one() -> None:
    with pytest.raises(MissingError, match=f"--numba or {ENVIRONMENT}"):
        NumbaPeer(None).version()


def test_python_without_numba_is_missing_with_its_own_words() -> None:
    with pytest.raises(MissingError, match=r"has no Numba: ModuleNotFoundError: .*numba"):
        NumbaPeer(sys.executable).version()


def test_numba_of_a_python_that_is_not_there_is_missing() -> None:
    with pytest.raises(MissingError, match="no/such/python cannot be run"):
        NumbaPeer("/no/such/python").version()


# --- the command ----------------------------------------------------------------------------------


def test_unknown_peer_is_a_usage_error_that_lists_the_known_ones() -> None:
    outcome = CliRunner().invoke(main, ["scalar", "--peers", "rustc"])
    assert outcome.exit_code == 2
    assert "'rustc' is none of gcc, clang, llvm, mixed" in " ".join(outcome.output.split())


def test_failing_peer_is_a_fault_and_the_command_fails() -> None:
    class Broken(FakePeer):
        def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
            raise BenchmarkError("out of luck")

    report = compared(Broken("llvm", 1.0), suite=SUITE)
    assert report.faults() == ["loop: llvm failed: out of luck", "fib: llvm failed: out of luck"]
