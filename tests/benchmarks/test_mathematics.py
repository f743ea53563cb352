# SPDX-License-Identifier: Apache-2.0
"""The benchmark of mathematical functions compares what it says."""

import json
from pathlib import Path

import numpy
import pytest
from benchmarks import mathematics
from benchmarks.__main__ import main
from benchmarks.mathematics import goal, library, speed
from benchmarks.mathematics.operand import operands
from benchmarks.mathematics.repeated import CHUNK_BYTES, repeated
from benchmarks.mathematics.size import size
from click.testing import CliRunner

from ferryvm.isa.mathematics import FUNCTIONS

EXP, POW = FUNCTIONS["f64.exp"], FUNCTIONS["f32.pow"]


def test_a_repeated_chunk_is_one_memory() -> None:
    array = repeated(numpy.arange(CHUNK_BYTES // 8, dtype=numpy.float64), 3)
    array[1] = 7.5
    size = CHUNK_BYTES // 8
    assert array.size == 3 * size
    assert array[[1, size + 1, 2 * size + 1]].tolist() == [7.5] * 3


def test_names_of_functions_in_libraries_have_type_lanes_and_operands() -> None:
    names = [one.symbols(each, 512)[0] for one in library.LIBRARIES for each in (EXP, POW)]
    assert names == [
        "Sleef_expd8_u10avx512f",
        "Sleef_powf16_u10avx512f",
        "__svml_exp8_ha_z0",
        "__svml_powf16_ha_z0",
        "_ZGVeN8v_exp",
        "_ZGVeN16vv_powf",
    ]


def test_glibc_called_in_a_loop_adds_its_results() -> None:
    given = operands(EXP, 1)
    assert given.count == CHUNK_BYTES // 8
    library.sum_loop(library.scalar_function(EXP), given)()


def _row(name: str, **nanoseconds: list[float]) -> speed.Row:
    return speed.Row(FUNCTIONS[name], {key.replace("_", " "): v for key, v in nanoseconds.items()})


def test_ratios_are_to_the_fastest_library_of_one_unit_and_without_the_loop() -> None:
    row = _row(
        "f64.exp", llvm_lanes=[3.0, 3.0], sleef=[2.0, 2.0], libmvec=[1.0, 1.0], glibc=[4.0, 2.0]
    )
    row.nanoseconds |= {speed.THREADED: [10.0, 10.0], speed.LOOP: [6.0, 6.0]}
    assert row.best == "sleef"
    assert row.lanes_ratio() == 1.5
    assert row.threaded_ratio() == 1.5
    assert row.scalar_ratio() is None
    assert goal.means([row])["f64 lanes over the best library"] == pytest.approx(1.5)
    assert goal.means([row])["f32 lanes over the best library"] is None


def test_goals_hold_each_type_to_its_own_bound() -> None:
    rows = [_row(f"{t}.exp", llvm_lanes=[1.8], svml=[1.0]) for t in ("f64", "f32")]
    found = goal.goals(rows, {"wall_ratio": 0.4}, {"ms": 50.0}, {"f64.exp": 1.2, "f32.exp": 9.0})
    met = {target.name: target.is_met for target in found}
    assert met == {
        "f64 lanes over the best library, geometric mean": False,
        "f32 lanes over the best library, geometric mean": True,
        "scalar over glibc, geometric mean": None,
        "threaded over glibc, geometric mean": None,
        "prices, llvm over gcc": True,
        "a region with ten functions": True,
        "f64 on the device over the driver's, geometric mean": True,
    }


def test_size_counts_operations_and_bytes_of_machine_code() -> None:
    found = size(EXP)
    assert 20 < found.operations < 80
    assert 8 * 10 < found.scalar < 2_000


@pytest.mark.nightly
def test_a_quick_run_measures_all_parts_and_holds_no_goals(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    arguments = ["math", "--quick", "--rounds", "1", "--functions", "f64.exp,f32.hypot"]
    result = CliRunner().invoke(main, [*arguments, "--json", str(path)])
    assert result.exit_code == 0, result.output
    report = json.loads(path.read_text())
    assert set(report["functions"]) == {"f64.exp", "f32.hypot"}
    nanoseconds = report["functions"]["f64.exp"]["nanoseconds"]
    assert {speed.LANES, speed.SCALAR, speed.GLIBC, speed.THREADED, speed.LOOP} <= set(nanoseconds)
    assert report["prices"]["processor_ratio"] > 0.0
    assert report["sizes"]["f32.hypot"]["operations"] > 10
    assert report["targets"] == []
    assert set(mathematics.PARTS) == {"speed", "prices", "sizes", "device"}
