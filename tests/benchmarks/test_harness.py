# SPDX-License-Identifier: Apache-2.0
"""The benchmark harness: its statistics, what it says of missing peers, and the twins."""

from __future__ import annotations

import io
import json
import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks is not installed

from benchmarks import interpreter, interrupt, loading, table
from benchmarks.__main__ import main
from benchmarks.benchmark import BENCHMARKS, BY_NAME, Benchmark, BenchmarkError
from benchmarks.measure import geometric_mean, interleave, median
from benchmarks.peers import DEFAULT, all_peers
from benchmarks.peers.bytecode import code_bytes, opcode_header
from benchmarks.peers.ferry import compiled
from benchmarks.peers.lua import LUAJIT_LACKS
from benchmarks.peers.peer import Measurement, MissingError, Peer, Task, measured, tool, twin
from benchmarks.report import Report

import ferryvm
from ferryvm.isa import I64, INSTRUCTIONS
from ferryvm.program import Function, Program, Signature, Static
from ferryvm.verify import verify

BOTH = [BY_NAME["loop"], BY_NAME["fib"]]


class FakePeer(Peer):
    """Takes a fixed time; refuses the programs that it is told to."""

    def __init__(
        self,
        name: str,
        seconds: float,
        result: int = 7,
        lacks: tuple[str, ...] = (),
        installed: bool = True,
    ) -> None:
        self.name, self.label = name, name.upper()
        self.seconds, self.result, self.lacks, self.installed = seconds, result, lacks, installed

    def version(self) -> str:
        if not self.installed:
            raise MissingError(f"{self.name} is not installed")
        return f"{self.name} 1.0"

    def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
        if benchmark.name in self.lacks:
            raise MissingError(f"lacks {benchmark.name}")
        return lambda: Measurement(self.seconds, self.result)


def compared(*peers: FakePeer, rounds: int = 3) -> Report:
    return interpreter.compare(BOTH, {peer.name: peer for peer in peers}, rounds)


def shown(report: Report) -> str:
    text = io.StringIO()
    table.show(report, Console(width=200, file=text))
    return text.getvalue()


# --- statistics -------------------------------------------------------------------------------


def test_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


def test_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean([]) is None


def test_rounds_are_interleaved_and_a_slow_task_sits_out() -> None:
    tasks: dict[str, Callable[[], int]] = {"a": lambda: 1, "b": lambda: 2, "slow": lambda: 3}
    order = [key for key, _ in interleave(tasks, 3, {"slow": 1})]
    assert order == ["a", "b", "slow", "a", "b", "a", "b"]


# --- reports ----------------------------------------------------------------------------------


def test_ratios_are_over_the_baseline_of_the_same_program() -> None:
    report = compared(FakePeer("gcc", 0.5), FakePeer("switch", 4.0))
    assert report.ratio("loop", "switch", "gcc") == 8.0
    assert report.ratio("loop", "gcc", "gcc") == 1.0


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


def test_result_that_changes_between_rounds_is_a_fault() -> None:
    class Unsteady(FakePeer):
        def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
            results = iter([1, 2, 2])
            return lambda: Measurement(1.0, next(results))

    report = compared(Unsteady("lua", 1.0))
    assert report.faults()[0] == "loop: lua failed: it gave 1, then 2"
    assert report.seconds("loop", "lua") is None


def test_peer_that_fails_is_a_fault_and_the_others_go_on() -> None:
    class Broken(FakePeer):
        def prepare(self, benchmark: Benchmark, sizes: tuple[int, ...], is_full: bool) -> Task:
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
    ]


def test_target_of_threaded_is_two_and_a_half_times_computed_goto() -> None:
    report = compared(FakePeer("threaded", 1.0), FakePeer("cpp-goto", 2.4))
    assert [target.is_met for target in report.targets()] == [None, False, None]


def test_small_sizes_are_not_held_against_targets() -> None:
    report = interpreter.compare(BOTH, {"switch": FakePeer("switch", 1.0)}, 1, is_full=False)
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


# --- programs and peers -----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["skiff", "c", "lua", "py"])
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_program_has_its_twin(benchmark: Benchmark, suffix: str) -> None:
    assert twin(benchmark, suffix).read_text(encoding="utf-8").count("SPDX-License-Identifier") == 1


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_luajit_has_a_twin_in_its_own_dialect_or_a_stated_reason(benchmark: Benchmark) -> None:
    if benchmark.name in LUAJIT_LACKS:
        assert LUAJIT_LACKS[benchmark.name]
        return
    text = twin(benchmark, "luajit.lua", "lua").read_text(encoding="utf-8")
    code = re.sub(r"--.*", "", text).replace("~=", "")
    assert not re.search(r"[~&|]|//|>>|<<", code)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_skiff_twin_gives_the_python_twins_result(benchmark: Benchmark) -> None:
    expected = runpy.run_path(str(benchmark.path("py")))["work"](*benchmark.tiny)
    found = ferryvm.run(compiled(benchmark, benchmark.tiny), backend="reference").value
    assert found == expected
    assert isinstance(found, float if benchmark.is_float else int)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_full_skiff_twin_is_the_file_as_it_stands(benchmark: Benchmark) -> None:
    assert benchmark.skiff(benchmark.full) == benchmark.path("skiff").read_text(encoding="utf-8")


def test_size_that_the_skiff_twin_does_not_state_is_refused() -> None:
    stray = Benchmark("fib", "", BY_NAME["sieve"].sizes)
    with pytest.raises(BenchmarkError, match=r"expected '\(define N 5000000\)' once, found 0"):
        stray.skiff((10,))


def test_every_default_peer_exists_and_all_but_reference_are_default() -> None:
    assert set(all_peers()) - set(DEFAULT) == {"reference"}


def test_reference_takes_no_part_at_full_size() -> None:
    with pytest.raises(MissingError, match="too slow at full size"):
        all_peers()["reference"].prepare(BY_NAME["fib"], BY_NAME["fib"].full, True)


def test_tool_that_is_not_installed_is_missing() -> None:
    with pytest.raises(MissingError, match="no-such-tool is not installed"):
        tool("no-such-tool")


def test_driver_that_fails_is_an_error_with_its_last_line() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('out of luck')"]
    with pytest.raises(BenchmarkError, match="exited with 1: out of luck"):
        measured(BY_NAME["fib"], command)


def test_result_of_another_kind_is_refused() -> None:
    with pytest.raises(BenchmarkError, match=r"fib: expected an i64, found '1\.5'"):
        BY_NAME["fib"].read("1.5")


def test_float_results_are_read_exactly() -> None:
    value = 0.1 + 0.2
    assert BY_NAME["nbody"].read(f"{value:.17g}") == value


def test_opcode_header_numbers_every_instruction() -> None:
    header = opcode_header()
    for row in INSTRUCTIONS:
        assert f"    OP_{row.mnemonic.replace('.', '_')} = {row.opcode},\n" in header
    assert f"OPCODES = {len(INSTRUCTIONS)}\n" in header


def test_code_file_is_statics_entry_locals_and_the_records_as_they_are() -> None:
    program = Program(
        code=loading.generate(300).code,
        functions=(Function("main", 3, 0, (I64, I64)),),
        signatures=(Signature(),),
        statics=(Static("a", I64, 5), Static("b", I64, 6)),
    )
    content = code_bytes(program)
    words = [int.from_bytes(content[at : at + 8], "little") for at in range(0, 40, 8)]
    assert words == [2, 3, 2, 5, 6]
    assert content[40:] == program.code.tobytes()


# --- loading and the command line -------------------------------------------------------------


@pytest.mark.parametrize("instructions", [300, 2_000])
def test_generated_program_is_valid_and_exactly_as_long_as_asked(instructions: int) -> None:
    program = loading.generate(instructions)
    assert len(program.code) == instructions
    verified = verify(program)
    assert all(verified.is_reachable(pc) for pc in range(instructions))


def test_generated_program_is_the_same_every_time() -> None:
    assert loading.generate(600).code.tobytes() == loading.generate(600).code.tobytes()


def test_unknown_program_is_a_usage_error_that_lists_the_known_ones() -> None:
    outcome = CliRunner().invoke(main, ["interpreters", "--programs", "sheve"])
    assert outcome.exit_code == 2
    assert "'sheve' is none of loop, loopmix, fib, sieve" in " ".join(outcome.output.split())


def test_interrupt_measures_and_checks_that_states_go_on() -> None:
    found = interrupt.measure("switch", 3, 1, lambda _line: None)
    assert found["interruptions"] == 3
    assert 0 < found["median_ms"] <= found["p99_ms"] <= found["longest_ms"]


def test_interrupt_says_which_backend_it_could_not_measure() -> None:
    with pytest.raises(BenchmarkError, match=r"nosuch, loop: .*nosuch"):
        interrupt.measure("nosuch", 3, 1, lambda _line: None)
