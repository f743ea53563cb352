# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the vliw backend: its programs, its checks, its goals."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks import vliw
from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError, Scale
from benchmarks.vliw import simulation
from benchmarks.vliw.figure import Building, Figure, Kernel, LoopFigure
from benchmarks.vliw.program import BY_NAME, FULL, PROGRAMS, Simulated
from benchmarks.vliw.report import Simulations
from benchmarks.vliw.simulation import Runs, Whole, check_stays, code_for, kernel_of, machine_of
from click.testing import CliRunner
from rich.console import Console

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine.journal import Attempt, Outcome
from ferryvm.hooks import TransferEvent
from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify
from ferryvm_backends.vliw import VliwBackend
from ferryvm_backends.vliw.code.program import LoopSummary

from ..tier import nightly
from .vliw_model import MODELS, pixels, transformed

LOOP = LoopSummary("b3", 12, 2, 40, 52, 3, 4, 4, "memory", 2)
KERNEL = Kernel(3000, 3)
EACH = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


def loop(function: str = "dot", interval: int = 4, bound: int = 4, reason: str = "") -> LoopFigure:
    """A loop's figure."""
    made = dataclasses.replace(
        LOOP, end=LOOP.start + 3 * interval, resource_bound=bound, reason=reason
    )
    return LoopFigure(made, function, f"{function}.skiff:9:3", 600)


def figure(*loops: LoopFigure, kernel: Kernel = KERNEL, seconds: float = 1e-4) -> Figure:
    """A figure of a program."""
    return Figure(1, kernel, Building(60, 0.5, 0.25), 4000, 800, 6000, [seconds], list(loops))


def found(metrics: dict[str, dict[str, Figure]], scale: Scale = FULL) -> Simulations:
    """A report with these metrics."""
    machines = list(dict.fromkeys(machine for on in metrics.values() for machine in on))
    return Simulations(list(metrics), machines, 1, scale, metrics)


def said(metrics: dict[str, dict[str, Figure]], start: str) -> str:
    """What is said of the goal that begins so."""
    lines = [str(target) for target in found(metrics).targets()]
    (line,) = [line for line in lines if line.startswith(f"target: {start}")]
    return line


def verified(program: Simulated) -> Verified:
    return verify(ferryvm.compile(program.skiff(program.at(Scale.TINY))))


def runs(name: str, is_whole: bool, expected: int | float | None = None) -> Runs:
    """Runs of a tiny program on multi16."""
    program = BY_NAME[name]
    right = MODELS[name](*program.at(Scale.TINY)) if expected is None else expected
    return Runs(program, verified(program), "multi16", right, is_whole)


# --- programs -------------------------------------------------------------------------------------


@EACH
def test_program_gives_what_the_model_gives_on_the_reference(program: Simulated) -> None:
    expected = MODELS[program.name](*program.at(Scale.TINY))
    value = simulation.run_on("reference", program, verified(program))
    assert (type(value), value) == (type(expected), expected)


@pytest.mark.parametrize(
    "program",
    [
        nightly(each)
        if each.name in ("dct", "dct-launch", "matmul", "fir", "dot", "sort")
        else each
        for each in PROGRAMS
    ],
    ids=lambda program: program.name,
)
def test_program_is_right_on_the_machine(program: Simulated) -> None:
    (stay,) = runs(program.name, is_whole=True).run()
    assert stay.region == ("program" if program.name == "looptest" else "work")


@EACH
def test_kernel_is_a_function_of_the_program(program: Simulated) -> None:
    assert program.kernel in [function.name for function in verified(program).program.functions]


@EACH
def test_full_size_is_the_file_as_it_stands(program: Simulated) -> None:
    text = program.path("skiff").read_text(encoding="utf-8")
    assert program.skiff(program.at(FULL)) == text


def test_model_of_the_transform_is_the_transform() -> None:
    image = pixels(8)
    basis = [
        [math.sqrt((1 + (u > 0)) / 8) * math.cos((2 * k + 1) * u * math.pi / 16) for k in range(8)]
        for u in range(8)
    ]
    expected = np.array(basis) @ np.array(image).reshape(8, 8) @ np.array(basis).T
    assert np.allclose(np.array(transformed(image, 8)).reshape(8, 8), expected, atol=1e-3)


# --- what ran -------------------------------------------------------------------------------------


def test_kernel_is_called_as_often_as_the_program_says() -> None:
    kernel = kernel_of(runs("dot", is_whole=False))
    assert kernel.calls == BY_NAME["dot"].at(Scale.TINY)[1]
    assert kernel.each * kernel.calls == kernel.cycles > 0


@pytest.mark.nightly
def test_each_run_takes_the_same_cycles_and_rounds_are_its_seconds() -> None:
    whole = Whole(runs("fir", is_whole=True))
    first = whole.round(KERNEL, None)
    assert whole.round(KERNEL, first) is first
    assert len(first.seconds) == 2
    assert first.operations > 0 < first.speed


@pytest.mark.nightly
def test_other_cycles_than_before_are_an_error() -> None:
    with pytest.raises(BenchmarkError, match=r"it took 4000 cycles, then \d+"):
        Whole(runs("fir", is_whole=True)).round(KERNEL, figure())


def test_wrong_result_is_an_error() -> None:
    with pytest.raises(BenchmarkError, match="expected 61, found 60 on multi16"):
        runs("looptest", is_whole=True, expected=61).run()


def test_what_compiled_code_leaves_to_the_interpreter_is_an_error() -> None:
    def stay(status: Status, exit_pc: int) -> TransferEvent:
        return TransferEvent("vliw", "dot", 5, exit_pc, status, 0.0, 1.0)

    def is_left(pc: int) -> bool:
        return pc > 20

    check_stays([stay(Status.LEAVE, 30), stay(Status.LEAVE, 30)], False, is_left)
    check_stays([stay(Status.HALT, 30)], True, is_left)
    with pytest.raises(BenchmarkError, match="never entered"):
        check_stays([], False, is_left)
    with pytest.raises(BenchmarkError, match=r"dot left its work .* at pc 10, with LEAVE"):
        check_stays([stay(Status.LEAVE, 10)], False, is_left)
    for status in (Status.LEAVE, Status.GROW):
        with pytest.raises(BenchmarkError, match=f"at pc 30, with {status.name}"):
            check_stays([stay(status, 30), stay(Status.HALT, 40)], True, is_left)


def test_code_that_is_not_of_the_machine_asked_for_is_an_error() -> None:
    part = region(verify(ferryvm.compile("(* 6 7)")), "program")
    code = VliwBackend(machine_of("single")).compile(part, Options())
    made = Attempt("vliw", "program", Outcome.COMPILED, "", 0.0, 1.0, code)
    failed = Attempt("vliw", "program", Outcome.REFUSED, "too large", 0.0, 1.0)
    assert code_for([made], machine_of("single")) is code
    with pytest.raises(BenchmarkError, match="asked for the machine multi16, compiled for single"):
        code_for([made], machine_of("multi16"))
    with pytest.raises(BenchmarkError, match="vliw has no code of program: too large"):
        code_for([failed], machine_of("single"))
    for attempts in ([], [made, made]):
        with pytest.raises(BenchmarkError, match="one region was to be compiled"):
            code_for(attempts, machine_of("single"))


@pytest.mark.nightly
def test_loops_that_were_run_are_told_with_their_cycles() -> None:
    watched = runs("dot", is_whole=True)
    watched.run()
    code = watched.code()
    size = len(code.program.bundles)
    whole = dataclasses.replace(LOOP, start=0, end=size, copies=1, pc=watched.entry)
    empty = dataclasses.replace(whole, start=size)
    code.program = dataclasses.replace(code.program, loops=(whole, empty))
    round_ = Whole(watched).round(KERNEL, None)
    (only,) = round_.loops
    assert (only.function, only.cycles) == ("work", round_.cycles)


# --- goals ----------------------------------------------------------------------------------------


def test_bound_is_the_larger_of_the_two_and_the_ratio_is_to_it() -> None:
    assert (loop().loop.interval, loop().bound, loop().ratio) == (4, 4, 1.0)
    assert (loop(bound=1).bound, loop(bound=1).ratio) == (2, 2.0)


def test_program_without_loops_misses_its_goal() -> None:
    line = said({"sort": {"multi16": figure()}}, "sort on multi16")
    assert line.endswith("interval of loops over their bound: no loop reported: NOT met")


def test_loop_that_is_not_pipelined_misses_the_goal_with_the_reason() -> None:
    one = loop("sort", reason="it has a call")
    line = said({"sort": {"multi16": figure(one, one)}}, "sort on multi16")
    assert line.endswith(": sort.skiff:9:3 is not pipelined (it has a call), and 1 more: NOT met")


@pytest.mark.parametrize(("program", "most"), [("dot", "1x"), ("fir", "1x"), ("crc32", "1.2x")])
def test_loops_are_held_to_their_bounds_and_some_exactly(program: str, most: str) -> None:
    far = figure(loop(program, interval=5, bound=4))
    line = said({program: {"multi16": far}}, f"{program} on multi16")
    assert line.endswith(f"at most {most}, found 1.25x: NOT met")
    near = figure(loop(program, interval=12, bound=11))
    line = said({program: {"multi16": near}}, f"{program} on multi16")
    assert line.endswith("NOT met" if most == "1x" else "found 1.09x: met")


def test_loops_at_the_bound_are_those_of_the_kernel() -> None:
    both = figure(loop("dot"), loop("fill!", interval=8))
    assert said({"dot": {"multi16": both}}, "dot on multi16").endswith("found 1.00x: met")


def test_loops_elsewhere_that_are_not_pipelined_are_no_part_of_the_goal() -> None:
    both = figure(loop("sort"), loop("fill!", interval=8, reason="too long"))
    assert said({"sort": {"multi16": both}}, "sort on multi16").endswith("found 1.00x: met")


def test_calls_of_the_transform_are_held_to_cycles_and_to_one_unit() -> None:
    metrics = {
        "dct": {
            "single": figure(kernel=Kernel(10_500_000, 2)),
            "multi16": figure(kernel=Kernel(2_000_000, 2)),
        }
    }
    line = said(metrics, "dct on multi16, a call")
    assert line.endswith("at most 1,020,000 cycles, found 1,000,000: met")
    launched = {"dct-launch": {"multi16": figure(kernel=Kernel(220_010, 10))}}
    line = said(launched, "dct-launch on multi16, a call")
    assert line.endswith("at most 22,000 cycles, found 22,001: NOT met")
    assert said(metrics, "dct, single over multi16").endswith("found 5.25x: met")
    del metrics["dct"]["single"]
    assert said(metrics, "dct, single over multi16").endswith("found -: not known")


def test_slowest_simulation_counts() -> None:
    metrics = {
        "dot": {"multi16": figure(seconds=1e-4)},
        "fir": {"multi16": figure(seconds=5e-4)},
    }
    line = said(metrics, "simulation of multi16")
    assert line.endswith("at least 10 million cycles/s, found 8.00 million cycles/s: NOT met")


def test_looptest_has_to_end() -> None:
    metrics = {"looptest": {"multi16": figure()}}
    line = said(metrics, "looptest on multi16, to")
    assert line == "target: looptest on multi16, to its end: 4,000 cycles: met"
    missing = Simulations(["looptest"], ["multi16"], 1, FULL)
    assert str(missing.targets()[-1]).endswith("to its end: no figure: NOT met")


def test_small_sizes_are_not_held_against_the_goals() -> None:
    assert found({"dot": {"multi16": figure()}}, Scale.QUICK).targets() == []


# --- the report -----------------------------------------------------------------------------------


def test_report_shows_cycles_loops_and_ratios() -> None:
    on = {"single": figure(kernel=Kernel(9000, 3)), "multi16": figure(loop(reason="too long"))}
    report = found({"dot": on})
    text = io.StringIO()
    report.show(Console(width=200, file=text))
    lines = [
        [c.strip() for c in line.strip("│").split("│")] for line in text.getvalue().split("\n")
    ]
    assert ["dot", "dot", "3", "1,000", "4,000", "800", "1.50", "40.0"] in lines
    assert ["dot", "60", "0.75", "0.25"] in lines
    assert ["dot", "3.00", "1.00"] in lines
    place = "dot, dot.skiff:9:3"
    cells = ["dot", place, "15.0", "2", "4", "4 (memory)", "2", "1.00", "4", "too long"]
    assert [cell for cell in cells if cell] in [[c for c in line if c] for line in lines]
    assert any(line[:2] == ["dot", "no loop reported"] for line in lines)
    assert "dot: dot, 1,000 multiply-adds" in text.getvalue()


def test_record_has_every_round_and_every_loop() -> None:
    written = json.loads(json.dumps(found({"dot": {"multi16": figure(loop())}}).as_json()))
    one = written["programs"]["dot"]["multi16"]
    assert one["seconds"] == [1e-4]
    assert one["kernel"]["cycles_of_a_call"] == 1000
    assert (one["loops"][0]["interval"], one["loops"][0]["bound"]) == (4, 4)
    assert written["targets"][0]["is_met"] is True


@pytest.mark.nightly
def test_command_measures_small_sizes_and_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    arguments = ["vliw", "--quick", "--programs", "looptest", "--machines", "multi16"]
    outcome = CliRunner().invoke(main, [*arguments, "--rounds", "2", "--json", str(path)])
    assert outcome.exit_code == 0, outcome.output
    one = json.loads(path.read_text(encoding="utf-8"))["programs"]["looptest"]["multi16"]
    assert one["result"] == 20_000
    assert len(one["seconds"]) == 2


@pytest.mark.nightly
def test_program_that_fails_is_a_fault_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_on = simulation.run_on
    wrong = {"looptest": 1}

    def expected(backend: str, program: Simulated, text: Verified) -> int | float:
        return wrong.get(program.name) or run_on(backend, program, text)

    monkeypatch.setattr(vliw, "run_on", expected)
    programs = [BY_NAME["looptest"], BY_NAME["dot"]]
    report = vliw.measure(programs, ["multi16"], 1, Scale.TINY, lambda _line: None)
    assert report.failures == ["looptest on multi16: expected 1, found 60 on multi16"]
    assert list(report.metrics) == ["dot"]


def test_machine_that_is_not_there_is_an_error() -> None:
    outcome = CliRunner().invoke(main, ["vliw", "--machines", "mulit16"])
    assert isinstance(outcome.exception, BenchmarkError)
    assert "no machine 'mulit16'; did you mean 'multi16'?" in str(outcome.exception)
