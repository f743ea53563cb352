# SPDX-License-Identifier: Apache-2.0
"""The benchmark of Python functions: its programs have the results of the other twins."""

import pytest
from benchmarks.benchmark import BENCHMARKS, Benchmark, Scale
from benchmarks.parallel.contender import GCC, contenders
from benchmarks.parallel.program import BY_NAME, Twin, Work
from benchmarks.parallel.speed import Row, measure
from benchmarks.parallel.task import Task
from benchmarks.peers.peer import MissingError, twin
from benchmarks.python import PROGRAMS, Figures, Settings, mapping, scalar
from benchmarks.python.item import OF, loaded
from benchmarks.report import Report

import ferryvm


def _interpreted(of: Twin, work: Work) -> Task:
    """A map on an interpreter: nothing is compiled."""
    items = OF[of.name](work.arguments)
    function = ferryvm.function(backend="threaded")(loaded(of.path("py")).item)
    outs = tuple(work.array(position) for position in items.outs)
    out = outs[0] if len(outs) == 1 else outs or None
    return Task(lambda: ferryvm.map(function, *items.elements, out=out, **items.arguments))


@pytest.mark.rotate("name", most=3)
@pytest.mark.parametrize("name", OF)
def test_maps_have_the_bits_of_c(name: str) -> None:
    known = {GCC: contenders()[GCC], "map": _interpreted}
    (row,) = measure([BY_NAME[name]], known, 1, "tiny", lambda _line: None)
    assert not row.faults
    assert "map" in row.seconds


@pytest.mark.parametrize("of", BENCHMARKS, ids=lambda of: of.name)
def test_functions_have_the_results_of_cpython(of: Benchmark) -> None:
    source = twin(of, "numpy.py", "py")
    call = ferryvm.function(backend="threaded")(loaded(source).work)
    sizes = of.at(Scale.TINY)
    assert call(*sizes) == loaded(of.path("py")).work(*sizes)
    assert "CPython" not in str(call.explain())


def test_cpython_maps_a_part_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "CPYTHON_SECONDS", 0.0)
    assert mapping.cpython_seconds("kmeans", "tiny", 1) > 0.0


def test_without_numba_the_reason_is_said() -> None:
    row, figures = Row(BY_NAME["daxpy"], {GCC: [2.0], mapping.MAP: [1.0]}), Figures(Settings())
    figures.rows, figures.cpython = [row], {"daxpy": 300.0}
    found = {target.name: target.is_met for target in figures.targets()}
    assert [*found.values()] == [False, True, None]
    with pytest.raises(MissingError, match="--numba"):
        mapping.peer("numba", row.twin, row.twin.make(8), None)


def test_scalar_programs_are_measured_by_processor_time() -> None:
    peers = scalar.peers("", None, is_processor=True)
    task = peers[scalar.FUNCTION].prepare(PROGRAMS["collatz"], Scale.TINY)
    assert task().result == 9
    clocks = [peer.clock for peer in peers.values()]  # type: ignore[attr-defined]  # all have one
    assert clocks == [["--processor"]] * 3


def test_a_part_of_the_scalar_programs_has_no_goals() -> None:
    report = Report(scalar.SUITE, 1, Scale.SCALAR, {})
    assert not Figures(Settings(programs=("fib",)), report).targets()
    without_loop = tuple(name for name in PROGRAMS if name != "loop")
    assert len(Figures(Settings(programs=without_loop), report).targets()) == 2
