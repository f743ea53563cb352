# SPDX-License-Identifier: Apache-2.0
"""The nine programs: their twins, their sizes and the peers that run them."""

from __future__ import annotations

import re
import runpy
import sys

import pytest
from benchmarks import loading
from benchmarks.benchmark import BENCHMARKS, BY_NAME, Benchmark, BenchmarkError, Scale
from benchmarks.peers import NOT_DEFAULT, interpreters
from benchmarks.peers.bytecode import code_bytes, opcode_header
from benchmarks.peers.ferry import ListingPeer, assembled, compiled
from benchmarks.peers.lua import LUAJIT_LACKS
from benchmarks.peers.peer import MissingError, measured, tool, twin

import ferryvm
from ferryvm.isa import I64, INSTRUCTIONS
from ferryvm.program import Function, Program, Signature, Static


@pytest.mark.parametrize("suffix", ["skiff", "c", "lua", "py", "numba.py", "mjs"])
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
    expected = runpy.run_path(str(benchmark.path("py")))["work"](*benchmark.at(Scale.TINY))
    found = ferryvm.run(compiled(benchmark, Scale.TINY), backend="reference").value
    assert found == expected
    assert isinstance(found, float if benchmark.is_float else int)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_skiff_twin_of_the_interpreters_is_the_file_as_it_stands(benchmark: Benchmark) -> None:
    assert benchmark.skiff(benchmark.at(Scale.INTERPRETERS)) == benchmark.path("skiff").read_text(
        encoding="utf-8"
    )


def test_listing_gives_the_python_twins_result_at_each_size() -> None:
    loop = BY_NAME["loop"]
    expected = runpy.run_path(str(loop.path("py")))["work"](*loop.at(Scale.TINY))
    assert ferryvm.run(assembled(loop, Scale.TINY), backend="reference").value == expected
    assert ListingPeer("threaded").prepare(loop, Scale.TINY)().result == expected
    assert loop.listing(loop.at(Scale.INTERPRETERS)) == loop.path("fasm").read_text("utf-8")


def test_listing_is_missing_where_there_is_none() -> None:
    with pytest.raises(MissingError, match=r"no twin fib\.fasm"):
        ListingPeer("threaded").prepare(BY_NAME["fib"], Scale.TINY)


def test_size_that_the_skiff_twin_does_not_state_is_refused() -> None:
    stray = Benchmark("fib", "", BY_NAME["sieve"].sizes)
    with pytest.raises(BenchmarkError, match=r"expected '\(define N 5000000\)' once, found 0"):
        stray.skiff((10,))


def test_reference_takes_part_only_if_it_is_named() -> None:
    assert NOT_DEFAULT == ("reference",)
    assert "reference" in interpreters()


@pytest.mark.parametrize("scale", [Scale.INTERPRETERS, Scale.SCALAR])
def test_reference_takes_no_part_at_full_size(scale: Scale) -> None:
    with pytest.raises(MissingError, match="too slow at full size"):
        interpreters()["reference"].prepare(BY_NAME["fib"], scale)


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
