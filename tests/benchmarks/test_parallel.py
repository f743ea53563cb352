# SPDX-License-Identifier: Apache-2.0
"""The data-parallel programs of the benchmark give the same bits in all languages."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks import parallel
from benchmarks.__main__ import main
from benchmarks.parallel import contender, device_time, goal, speed
from benchmarks.parallel.contender import CC, GCC, LLVM, OPENCL, OPENCL_C, OPENCL_COPIES, PLACED
from benchmarks.parallel.placement import PlacementRow, PlacementTable
from benchmarks.parallel.program import BY_NAME, TWINS, Twin, Work
from benchmarks.parallel.task import Make, Task
from benchmarks.peers.peer import MissingError
from click.testing import CliRunner
from rich.console import Console

import ferryvm


def _ignore(_line: str) -> None:
    """Progress that nobody reads."""


def interpreted(twin: Twin, work: Work) -> Task:
    """A program in Skiff on an interpreter: as the launch of llvm, but nothing is compiled."""
    path = twin.path("skiff")
    program = ferryvm.compile(path.read_text(encoding="utf-8"), file=str(path))
    call = ferryvm.Engine("threaded").instantiate(program).exports["work"]
    if twin.makes:
        return Task(lambda: work.made.append(call(*work.arguments)))
    return Task(lambda: call(*work.arguments))


def cheap() -> Mapping[str, Make]:
    return {"threaded": interpreted, GCC: contender.contenders()[GCC]}


@pytest.mark.rotate("twin", most=4)
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_c_and_skiff_store_the_same_bits(twin: Twin) -> None:
    (row,) = speed.measure([twin], cheap(), 1, "tiny", _ignore)
    assert {*row.seconds, *row.missing} == {"threaded", GCC}
    assert "threaded" in row.seconds
    work = twin.make(twin.tiny)
    assert work.bits() != _done(twin, work).bits()


def _done(twin: Twin, work: Work) -> Work:
    mine = work.fresh()
    interpreted(twin, mine).run()
    return mine


def test_results_that_differ_in_one_bit_are_a_fault_and_not_timed() -> None:
    def wrong(twin: Twin, work: Work) -> Task:
        task = interpreted(twin, work)

        def run() -> None:
            task.run()
            work.array(work.results[0]).view("u1")[7] ^= 1

        return Task(run)

    (row,) = speed.measure(TWINS[:1], {"threaded": interpreted, "wrong": wrong}, 1, "tiny", _ignore)
    assert row.faults == {"wrong": "its results are not those of threaded"}
    assert [*row.seconds] == ["threaded"]
    figures = parallel.Figures(parallel.Settings(), [row], {}, {})
    assert figures.faults() == ["daxpy: wrong: its results are not those of threaded"]


def test_a_report_names_sizes_ratios_and_missing_contenders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_twin: Twin, _work: Work) -> Task:
        raise MissingError("llvm is not usable")

    monkeypatch.setattr(parallel, "contenders", lambda: {**cheap(), LLVM: missing})
    monkeypatch.setattr(parallel.launching, "measure", lambda _rounds: {"over": 2.0})
    path = tmp_path / "report.json"
    done = CliRunner().invoke(
        main,
        [
            "parallel",
            "--size",
            "tiny",
            "--rounds",
            "2",
            "--programs",
            "daxpy",
            "--json",
            str(path),
            "--peers",
            f"threaded,{GCC},{LLVM}",
            "--processor",
        ],
    )
    assert done.exit_code == 0, done.output
    assert "daxpy: llvm is missing: llvm is not usable" in done.output
    found = json.loads(path.read_text())
    assert (found["kind"], found["size"], found["targets"]) == ("parallel", "tiny", [])
    row = found["programs"]["daxpy"]
    assert (row["size"], len(row["seconds"]["threaded"])) == (300, 2)
    assert row["missing"][LLVM] == "llvm is not usable"


def test_goals_are_the_mean_and_the_worst_of_the_programs_that_ran() -> None:
    rows = [
        speed.Row(BY_NAME[name], {GCC: [1.0, 2.0], LLVM: [ratio, 2 * ratio]})
        for name, ratio in (("daxpy", 2.0), ("dft", 0.5), ("mandelbrot", 0.125), ("stencil", 1.1))
    ]
    found = {target.name: target for target in goal.goals(rows, {"over": 6.0})}
    assert found["llvm over gcc, geometric mean"].found == pytest.approx(0.5)
    assert found["llvm over gcc, worst program (daxpy)"].is_met is False
    assert found["llvm over gcc, mandelbrot"].is_met
    rows = [speed.Row(BY_NAME["dft"], {PLACED: [3.0], LLVM: [2.0], OPENCL: [4.0]})]
    (placed,) = (t for t in goal.goals(rows, {}) if t.name.startswith("default policy"))
    assert (placed.found, placed.is_met) == (1.5, False)
    assert found["launch of 1,000 items over a plain call"].is_met is False
    assert [target.found for target in goal.goals([], {})] == [None] * 6


def test_whole_runs_on_a_device_with_own_memory_are_held_to_kernels_with_copies() -> None:
    seconds = {OPENCL: [3.0], OPENCL_C: [1.0]}
    for more, ratio in (({}, 3.0), ({OPENCL_COPIES: [4.0]}, 0.75)):
        rows = [speed.Row(BY_NAME["dft"], seconds | more)]
        (found,) = (each for each in goal.goals(rows, {}) if each.name.startswith("opencl over "))
        assert found.found == pytest.approx(ratio)


def test_kernels_alone_have_means_and_a_goal_of_no_bytes_in_a_second_run() -> None:
    rows = [
        speed.Row(BY_NAME[name], {OPENCL: [mine], OPENCL_C: [1.0]})
        for name, mine in (("dft", 2.0), ("daxpy", 0.5))
    ]
    copied = {"dft": (100, 0), "daxpy": (200, 8)}
    found = [each.found for each in device_time.DeviceTimes(rows, copied).targets()]
    assert found == [pytest.approx(1.0), None, 8]
    assert device_time.DeviceTimes(rows, copied, is_full=False).targets() == []


@pytest.mark.nightly
def test_the_clock_of_a_device_times_kernels_by_hand_and_ours(tmp_path: Path) -> None:
    path = tmp_path / "kernels.json"
    command = [sys.executable, "-m", "benchmarks", "kernels", "--quick", "--rounds", "1"]
    command += ["--programs", "dft,reduction", "--json", str(path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = json.loads(path.read_text())["programs"]
    assert {*rows} == {"dft", "reduction"}
    for row in rows.values():
        assert all(0 < row["seconds"][name][0] < 10 for name in (OPENCL, OPENCL_C))


@pytest.mark.nightly
def test_compilers_and_hand_written_kernels_store_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contender, "SETTLING", 0.1)
    for row in speed.measure(TWINS, contender.contenders(), 1, "tiny", _ignore):
        # A plugin, and copies, of which a processor needs none.
        expected = {*contender.contenders()} - {contender.CC, contender.OPENCL_COPIES}
        if not row.twin.path("cl").exists():
            expected.discard(contender.OPENCL_C)
        assert {*row.seconds} - {contender.CC} == expected, row.missing
    assert parallel.launching.measure(1)["launch"] > 0


def test_the_table_of_placements_compares_with_the_fastest_one() -> None:
    row = PlacementRow(BY_NAME["daxpy"], "tiny", {"in order": 2.0, "llvm": 1.0, PLACED: 1.5})
    assert (row.fastest, row.ratio) == ("llvm", 1.5)
    other = PlacementRow(BY_NAME["dft"], "full", {PLACED: 1.0})
    assert (other.fastest, other.ratio) == (None, None)
    target = PlacementTable([row, other], {}).target()
    assert (target.found, target.is_met) == (1.5, False)


def test_the_table_shows_opencl_over_kernels_by_hand_for_each_program() -> None:
    seconds = {GCC: [1.0], CC: [2.0], OPENCL: [3.0], OPENCL_C: [2.0]}
    rows = [speed.Row(BY_NAME[name], seconds) for name in ("daxpy", "dft")]
    console = Console(width=200, file=io.StringIO(), record=True)
    settings = parallel.Settings(contenders=(GCC, CC, OPENCL, OPENCL_C))
    parallel.Figures(settings, rows, {}, {}).show(console)
    shown = [line.split() for line in console.export_text().splitlines()]
    (cells,) = [line for line in shown if "dft" in line]
    assert "".join(cells) == "│dft│1000.0│2000.0(2.00)│3000.0(3.00)│2000.0(2.00)│1.50│"
