# SPDX-License-Identifier: Apache-2.0
"""Whole runs, transfers and their goals."""

from __future__ import annotations

import ctypes
import itertools

import pytest
from benchmarks import compiling, transfer, whole
from benchmarks.benchmark import BENCHMARKS, BY_NAME, Benchmark, BenchmarkError, Scale
from benchmarks.comparison import compare
from benchmarks.peers.peer import Peer
from benchmarks.report import Report

from ferryvm.backend import Artifact, Interpreter
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.region.region import RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import Verified

from ..double.peer import BOTH, FakePeer


def at(scale: Scale, *peers: Peer) -> Report:
    return compare(whole.suite(scale), BOTH, {peer.name: peer for peer in peers}, 1)


def test_long_runs_are_held_to_native_code_alone() -> None:
    report = at(Scale.LONG, FakePeer("mixed", 2.4), FakePeer("llvm", 2.0))
    (target,) = report.targets()
    assert target.name == "default policy over llvm, worst of 2 programs over 1 s (long)"
    assert (target.found, target.is_met) == (pytest.approx(1.2), False)


def test_long_runs_that_take_less_than_a_second_do_not_count() -> None:
    (target,) = at(Scale.LONG, FakePeer("mixed", 0.9), FakePeer("llvm", 0.5)).targets()
    assert target.found is None


@pytest.mark.parametrize("scale", [Scale.BRIEF, Scale.SHORT])
def test_brief_runs_are_held_to_the_interpreter_alone(scale: Scale) -> None:
    (target,) = at(scale, FakePeer("mixed", 0.0103), FakePeer("threaded", 0.01)).targets()
    assert (target.found, target.is_met) == (pytest.approx(1.03), True)


def test_brief_runs_of_more_than_50_ms_do_not_count() -> None:
    report = at(Scale.SHORT, FakePeer("mixed", 0.2), FakePeer("threaded", 0.06))
    assert report.targets()[0].found is None


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_sizes_grow_from_scale_to_scale(benchmark: Benchmark) -> None:
    rising = (Scale.BRIEF, Scale.SHORT, Scale.SCALAR)
    for smaller, larger in itertools.pairwise(rising):
        assert benchmark.at(smaller) < benchmark.at(larger)
    assert benchmark.at(Scale.SCALAR) <= benchmark.at(Scale.LONG)


@pytest.mark.nightly
def test_whole_run_has_seconds_from_engine_to_result() -> None:
    benchmark = BY_NAME["fib"]
    (report,) = whole.compare_whole([Scale.BRIEF], [benchmark], 1, False, lambda _line: None)
    cell = report.cell("fib", "threaded")
    assert cell is not None
    assert cell.failure is None
    assert cell.result == 196418
    assert cell.median is not None
    assert cell.median > cell.compile_seconds[0]


def test_head_of_the_loop_is_that_of_the_scope() -> None:
    (scope,) = [r for r in regions(transfer.loop(3)) if r.kind is RegionKind.SCOPE]
    assert scope.entry == transfer.HEAD


@pytest.mark.parametrize("name", ["threaded", "switch"])
def test_installed_code_is_entered_each_time_round(name: str) -> None:
    backend = Registry().get(name)
    assert isinstance(backend, Interpreter)
    transfer.check_entered(backend)


def test_code_that_is_not_entered_is_an_error() -> None:
    class Deaf(Interpreter):
        name = "deaf"

        def prepare(self, program: Verified) -> Artifact:
            artifact = Registry().get("switch")
            assert isinstance(artifact, Interpreter)
            prepared = artifact.prepare(program)
            prepared.install = lambda pc, address, counting: None  # type: ignore[method-assign]  # the fault
            return prepared

    with pytest.raises(BenchmarkError, match="'deaf' entered compiled code 0 times in 1000"):
        transfer.check_entered(Deaf())


def test_transfer_times_a_c_function_and_a_compilers_code() -> None:
    found = transfer.measure(["switch"], "llvm", 1, 1000, lambda _line: None)
    assert {"switch_c_ns", "switch_llvm_ns", "target_ns"} <= set(found)


def test_compiling_has_its_steps_and_the_cache_is_found() -> None:
    found = compiling.measure("llvm", 1, lambda _line: None)
    assert 0 < found["cached_ms"] < found["compile_ms"]
    assert "of that lift_ms" in found


def test_interpreter_compiles_nothing() -> None:
    with pytest.raises(BenchmarkError, match="'switch' is no compiler"):
        compiling.measure("switch", 1, lambda _line: None)


def test_empty_region_leaves_where_it_was_entered() -> None:
    empty = transfer.empty_region()
    control = ControlBlock(pc=17, sp=5)
    function = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(empty.address)
    assert function(ctypes.addressof(control)) == Status.LEAVE == control.status
    assert (control.pc, control.sp) == (17, 5)


def test_backend_that_is_not_there_cannot_be_timed() -> None:
    with pytest.raises(BenchmarkError, match="nosuch"):
        transfer.measure(["nosuch"], "llvm", 1, 10, lambda _line: None)
