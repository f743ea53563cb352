# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the opencl backend: its checks, its arithmetic, its goals."""

from __future__ import annotations

import io
import os
import sys

import pytest
from benchmarks import opencl, startup
from benchmarks.__main__ import main
from benchmarks.benchmark import BY_NAME, BenchmarkError, Scale
from benchmarks.comparison import compare
from benchmarks.opencl import (
    device,
    entering,
    form,
    mixed,
    native,
    overlap,
    part,
    program,
    residency,
    short,
    starting,
)
from benchmarks.opencl.peer import MixedPeer, middle, runs_for
from benchmarks.opencl.watched import Built, Spent, Watched, result_of, total
from benchmarks.report import Suite, Target
from click.testing import CliRunner
from rich.console import Console

import ferryvm
from ferryvm.backend import Activity, Compiler, Options
from ferryvm.engine import Engine
from ferryvm.isa import INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm_backends.opencl import BACKEND
from ferryvm_backends.opencl.device import ENVIRONMENT, devices, find

from ..double.peer import BOTH, FakePeer

SPENT = Spent(1.0, 0.25, 0.5, 0.125, 3, 4096, 8192)
MARKS = {row.opcode for row in INSTRUCTIONS if row.mnemonic in ("enter_jit", "leave_jit")}


def region_text() -> str:
    """The text of the kernel of an empty scope."""
    compiler = Registry().get("opencl")
    assert isinstance(compiler, Compiler)
    return compiler.show(entering.scope(3), Options(), "opencl")


def marks(text: str) -> int:
    """How many marks the program of a text has."""
    return sum(int(opcode) in MARKS for opcode in ferryvm.compile(text).code.opcodes)


# --- devices --------------------------------------------------------------------------------------


def test_device_that_is_not_there_is_one_error_that_lists_those_that_are() -> None:
    outcome = CliRunner().invoke(main, ["opencl", "--device", "abacus"])
    assert isinstance(outcome.exception, BenchmarkError)
    message = str(outcome.exception)
    assert message.startswith("opencl: there is no device 'abacus' (FERRYVM_OPENCL_DEVICE); there")
    assert str(find()) in message
    assert "\n" not in message
    assert outcome.output == ""


def test_device_is_named_for_the_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with device.chosen(str(find())) as on:
        assert os.environ[ENVIRONMENT] == str(on)
    assert ENVIRONMENT not in os.environ


def test_every_device_is_listed_the_measured_one_first() -> None:
    lines = device.listed(find())
    assert len(lines) == len(devices())
    assert lines[0].startswith(f"measured: {find()} ")
    assert find().driver in lines[0]
    assert all(line.startswith("not measured: ") for line in lines[1:])


def test_caches_are_empty_folders_meanwhile() -> None:
    before = {name: os.environ.get(name) for name in device.CACHES}
    with device.empty_caches():
        folders = {os.environ[name] for name in device.CACHES}
        assert len(folders) == len(device.CACHES)
        assert not any(os.path.exists(folder) for folder in folders)
    assert {name: os.environ.get(name) for name in device.CACHES} == before


# --- programs -------------------------------------------------------------------------------------


def test_plain_form_has_no_marks_and_the_same_result() -> None:
    sizes = program.PLAIN.at(Scale.TINY)
    marked, plain = program.MARKED.skiff(sizes), program.PLAIN.skiff(sizes)
    assert (marks(marked), marks(plain)) == (2, 0)
    results = [ferryvm.run(ferryvm.compile(text), "reference").output for text in (marked, plain)]
    assert results == ["60\n", "60\n"]


def test_text_without_marks_has_none_to_take_away() -> None:
    with pytest.raises(BenchmarkError, match=r"expected '\(enter-jit \(' in the program"):
        program.unmarked("(* 6 7)")


def test_printed_number_is_the_result_of_a_program_without_a_value() -> None:
    found = ferryvm.run(ferryvm.compile("(print! 60)"), "reference")
    assert found.value is None
    assert result_of(program.LOOPTEST, found) == 60


# --- goals ----------------------------------------------------------------------------------------


def targets(suite: Suite, *peers: FakePeer) -> list[Target]:
    """The goals of a suite on two programs."""
    return compare(suite, BOTH, {peer.name: peer for peer in peers}, 3).targets()


def test_whole_programs_are_held_to_llvm_and_the_loop_to_folding() -> None:
    mean, folded = targets(native.WHOLE, FakePeer("opencl", 0.0022), FakePeer("llvm", 0.002))
    assert mean.found == pytest.approx(1.1)
    assert mean.bound == 1.10
    assert str(folded) == "target: opencl folds loop: at most 1 ms, found 2.20 ms: NOT met"


def test_loops_that_fold_are_in_no_mean() -> None:
    assert native.WHOLE.not_in_means == {"loop", "looptest"}


def test_mean_is_not_known_where_a_program_failed() -> None:
    mean, _ = targets(native.WHOLE, FakePeer("opencl", 1.0, lacks=("fib",)), FakePeer("llvm", 1.0))
    assert mean.is_met is None


def test_unoptimised_bytecode_is_held_to_optimised_for_each_form() -> None:
    found = targets(form.SUITE, FakePeer("unoptimised", 1.1), FakePeer("optimised", 1.0))
    assert [target.found for target in found] == [pytest.approx(1.1)] * 2
    assert [target.is_met for target in found] == [False, False]


def test_loops_that_do_not_fold_are_held_to_c() -> None:
    found = targets(native.NATIVE, FakePeer("opencl", 1.04), FakePeer("gcc", 1.0))
    assert [target.is_met for target in found] == [True, True]


def test_small_sizes_are_not_held_against_the_goals() -> None:
    peers = {"opencl": FakePeer("opencl", 1.0), "llvm": FakePeer("llvm", 1.0)}
    assert compare(native.WHOLE, BOTH, peers, 1, Scale.QUICK).targets() == []


# --- what ran -------------------------------------------------------------------------------------


def test_what_another_backend_compiled_is_an_error() -> None:
    watched = Watched(Engine("llvm"), "opencl")
    watched.engine.start(ferryvm.compile("(* 6 7)")).run()
    with pytest.raises(BenchmarkError, match="asked for opencl, compiled by llvm"):
        watched.built()


def test_program_of_which_nothing_was_compiled_is_an_error() -> None:
    policy = mixed.hot_to_opencl()
    peer = MixedPeer("opencl", "opencl", "mixed", policy)
    run = peer.prepare(BY_NAME["fib"], Scale.TINY)
    with pytest.raises(BenchmarkError, match="opencl compiled nothing: nothing got hot"):
        run()


def test_code_that_was_not_entered_is_an_error() -> None:
    watched = Watched(Engine("opencl"), "opencl")
    watched.engine.start(ferryvm.compile("(* 6 7)")).run()
    assert watched.built().regions == 1
    with pytest.raises(BenchmarkError, match="the code of opencl was never entered"):
        watched.spent(1.0, 0.0, watched.activity())


def test_whole_program_on_opencl_is_built_entered_and_as_on_llvm() -> None:
    found = native.over_llvm([BY_NAME["fib"]], 1, Scale.TINY, lambda _line: None)
    assert found.faults() == []
    opencl_details, llvm_details = found.details
    assert opencl_details.built["fib"].seconds > 0
    assert {"lift", "print", "load"} <= opencl_details.built["fib"].steps.keys()
    assert [spent.entries for spent in opencl_details.spent["fib"]] == [1]
    assert llvm_details.built["fib"].regions == 1
    assert found.as_json()["programs"]["fib"]["opencl"]["result"] == 21


@pytest.mark.nightly
def test_marked_scope_alone_is_a_kernel_in_mixed_form() -> None:
    found = form.forms(1, Scale.TINY, lambda _line: None)
    assert found.faults() == []
    for details in found.details:
        assert [details.spent[name][0].entries for name in ("plain", "mixed")] == [1, 1]


def test_hot_code_goes_to_opencl_and_its_time_is_told_apart() -> None:
    found = mixed.mixed([BY_NAME["loop"]], 1, Scale.QUICK, lambda _line: None)
    assert found.faults() == []
    (spent,) = found.details[0].spent["loop"]
    assert spent.entries >= 1
    assert spent.whole > spent.build > 0 < spent.kernel


@pytest.mark.nightly
def test_copies_are_told_apart_from_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BACKEND, "_wraps", False)  # as on a device with memory of its own
    found = native.over_llvm([BY_NAME["sieve"]], 1, Scale.TINY, lambda _line: None)
    assert found.faults() == []
    (spent,) = found.details[0].spent["sieve"]
    assert 0 < spent.transfer < spent.whole > spent.kernel > 0
    assert spent.to_device > 0 < spent.to_host


# --- arithmetic -----------------------------------------------------------------------------------


def test_rest_of_a_run_is_what_nothing_else_took() -> None:
    assert SPENT.rest == 0.125
    assert Spent(1.0, 0.0, 2.0, 0.0, 1, 0, 0).rest == 0.0


def test_activities_add_up() -> None:
    one = Activity(2, 0.5, 10, {}, 100, 200, 0.25)
    found = total([one, one])
    assert (found.entries, found.seconds, found.transfer_seconds) == (4, 1.0, 0.5)
    assert (found.to_device, found.to_host) == (200, 400)


@pytest.mark.parametrize(("seconds", "runs"), [(0.5, 1), (0.002, 5), (0.00001, 20), (0.0, 20)])
def test_short_runs_are_measured_together(seconds: float, runs: int) -> None:
    assert runs_for(seconds) == runs


def test_run_in_the_middle_is_told_of() -> None:
    found = [Spent(whole, 0.0, 0.0, 0.0, 1, 0, 0) for whole in (3.0, 1.0, 2.0)]
    assert middle(found).whole == 2.0


def test_building_transfers_and_kernels_are_columns_of_their_own() -> None:
    details = part.Details("gpu")
    details.built["loop"] = Built(1.5, {"print": 0.25, "build": 1.0}, 2, 1)
    details.spent["loop"] = [SPENT]
    details.refusals["loop"] = ["main/loop.1 refused: too large"]
    text = io.StringIO()
    Console(width=200, file=text).print(part.apart(details))
    row = next(line for line in text.getvalue().splitlines() if "loop" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == [
        *("loop", "2 (1 cached)", "1500.00", "250.00", "1000.00"),
        *("500.00", "125.00", "125.00", "3", "4", "8"),
    ]
    assert details.as_json()["spent"]["loop"][0]["to_host"] == 8192
    assert details.refused() == ["note: loop: gpu: main/loop.1 refused: too large"]


def test_part_that_cannot_be_measured_is_a_fault_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*_given: object) -> part.Part:
        raise BenchmarkError("out of luck")

    monkeypatch.setitem(opencl.PARTS, "whole", breaks)
    monkeypatch.setitem(opencl.PARTS, "forms", breaks)
    settings = opencl.Settings([], 1, None)
    found = list(opencl.measure(["whole", "forms"], settings, find(), lambda _line: None))
    assert [each.faults() for each in found] == [["whole: out of luck"], ["forms: out of luck"]]
    written = opencl.as_json(found, settings, find())
    assert written["parts"]["whole"] == {"failure": "out of luck"}
    assert written["device"]["driver"] == find().driver


def test_unknown_part_is_a_usage_error_that_lists_the_known_ones() -> None:
    outcome = CliRunner().invoke(main, ["opencl", "--parts", "hole"])
    assert outcome.exit_code == 2
    assert "'hole' is none of whole, forms, mixed, entering" in " ".join(outcome.output.split())


# --- entering -------------------------------------------------------------------------------------


def test_empty_kernel_has_the_arguments_of_a_regions_kernel() -> None:
    source = region_text()
    empty = entering.empty_kernel(source)
    assert entering.parameters(empty) == entering.parameters(source)
    assert entering.header(empty) == entering.header(source)
    assert len(entering.parameters(empty)) == 9
    assert "reqd_work_group_size(1, 1, 1)" in empty
    assert empty.endswith(")\n{\n}\n")
    assert entering.kernel_name(empty) == "ferry_region"


def test_text_without_a_kernel_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="has no kernel"):
        entering.header("static int f(void) { return 0; }")


@pytest.mark.nightly
def test_kernel_is_entered_each_time_round_and_timed_against_pyopencl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert entering.entering(find(), 1, 10, lambda _line: None).targets == []  # too few to say
    monkeypatch.setattr(entering, "TIMES", 20)
    found = entering.entering(find(), 1, 20, lambda _line: None)
    assert {"ferryvm_us", "pyopencl_us", "ratio"} <= found.metrics.keys()
    assert [len(values) for values in found.rounds.values()] == [1, 1]
    (target,) = found.as_json()["targets"]
    assert target["at_most"] == 1.10


def test_ratio_of_entries_is_the_median_of_the_rounds_ratios() -> None:
    assert entering.over([1.0, 1.5, 3.0], [1.0, 1.0, 1.5]) == 1.5


# --- starting -------------------------------------------------------------------------------------


def test_process_with_another_result_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup, "ferry", lambda: [sys.executable, "-c", "print(99)"])
    with pytest.raises(BenchmarkError, match="exited with 0 and gave '99'"):
        starting.first_result("opencl")


def test_code_that_was_not_in_the_cache_is_an_error() -> None:
    tried = [{"backend": "opencl", "region": "program", "entries": 1, "outcome": "compiled"}]
    with pytest.raises(BenchmarkError, match="opencl did not find in its cache: program"):
        starting.check_cached("opencl", tried)


def test_program_that_another_backend_ran_is_an_error() -> None:
    tried = [{"backend": "llvm", "region": "program", "entries": 1, "outcome": "from the cache"}]
    with pytest.raises(BenchmarkError, match=r"opencl did not run looptest\.skiff"):
        starting.check_cached("opencl", tried)


def test_a_second_call_with_the_same_arrays_copies_none_of_their_bytes() -> None:
    found = residency.residency(residency.QUICK_BYTES, lambda _line: None)
    counted = [found.metrics[f"{name}_array_bytes"] for name in ("first", "second", "stored")]
    assert counted == [2 * residency.QUICK_BYTES, 0, 4096]
    assert [target.is_met for target in found.targets] == [True, True]


@pytest.mark.nightly
def test_two_launches_give_the_same_with_copies_beside_kernels() -> None:
    found = overlap.overlap(1 << 16, overlap.QUICK_STEPS, 1, lambda _line: None)
    assert {"beside_ms", "in_sequence_ms", "ratio"} <= set(found.metrics)


@pytest.mark.nightly
def test_short_launches_have_the_results_of_those_by_hand() -> None:
    found = short.short(find(), short.QUICK_SIZES, 1, lambda _line: None)
    assert len(found.targets) == 6
    assert all(isinstance(value, float) and value > 0 for value in found.metrics.values())
