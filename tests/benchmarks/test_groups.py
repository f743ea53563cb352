# SPDX-License-Identifier: Apache-2.0
"""The kernels whose items cooperate in groups store what their oracles say, wherever they run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from benchmarks import groups
from benchmarks.__main__ import main
from benchmarks.groups import compiling, finance, goal
from benchmarks.groups.contender import INTEL_C, LLVM, OPENCL, OPENCL_C, Subject
from benchmarks.groups.cycles import Cycles
from benchmarks.groups.sample import Sample, Work
from benchmarks.groups.table import BY_NAME, SAMPLES
from benchmarks.parallel import speed
from benchmarks.parallel.contender import launching
from benchmarks.parallel.task import Task
from benchmarks.peers.peer import MissingError
from click.testing import CliRunner

import ferryvm
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.verify import verify

from ..tier import nightly

INTERPRETERS = ("switch", "threaded", "reference")
COMPILERS = ("llvm", "opencl", "vliw", "cc")
QUICK = {"llvm": "matvec", "opencl": "transpose", "vliw": "matvec"}
"""The kernel that each compiler runs by default; each takes it tenths of a second."""
MOVED = (Schedule.SUSPEND, Schedule.EVERY_BOUNDARY, Schedule.RANDOM, Schedule.COLLECT)


def _is_default(number: int, sample: Sample, backend: str) -> bool:
    if backend in INTERPRETERS:
        return INTERPRETERS[number % len(INTERPRETERS)] == backend
    return QUICK.get(backend) == sample.name


PAIRS = [
    (sample, backend) if _is_default(number, sample, backend) else nightly((sample, backend))
    for number, sample in enumerate(SAMPLES)
    for backend in (*INTERPRETERS, *COMPILERS)
]


@pytest.mark.rotate("sample", most=14)
@pytest.mark.parametrize(("sample", "backend"), PAIRS, ids=str)
def test_results_are_those_of_the_oracle(sample: Sample, backend: str) -> None:
    if backend == "cc":
        pytest.importorskip("ferryvm_cc")
    work = sample.make(sample.tiny)
    mine = work.fresh()
    program = sample.program(sample.tiny)
    engine = ferryvm.Engine(backend) if backend in INTERPRETERS else launching(backend, threads=1)
    engine.instantiate(program).exports["work"](*mine.arguments)
    results = [mine.array(position) for position in mine.results]
    assert sample.difference(results, sample.oracle(work, sample.tiny)) == ""


def test_the_oracle_of_random_numbers_has_the_words_of_their_authors() -> None:
    """The first line for philox4x32 of kat_vectors of Random123: counter and key of zeros."""
    words = [int(word[0]) for word in finance.philox(numpy.zeros(1), 0, 0)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_a_result_that_differs_is_named() -> None:
    sample = SAMPLES[0]
    right = sample.oracle(sample.make(sample.tiny), sample.tiny)
    wrong = [right[0].copy()]
    wrong[0][5] += 1
    assert "result 0 differs in 1 of 64 elements: element 5 is" in sample.difference(wrong, right)
    with pytest.raises(ValueError, match=r"matmul\.skiff does not define the constant TILES once"):
        sample.text({"TILES": 2})


def test_a_report_names_missing_contenders_and_holds_no_goal_to_small_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_subject: Subject, _work: Work) -> Task:
        raise MissingError("no Intel here")

    def interpreted(subject: Subject, work: Work) -> Task:
        program = subject.sample.program(subject.sizes)
        call = ferryvm.Engine("switch").instantiate(program).exports["work"]
        return Task(lambda: call(*work.arguments))

    known = {LLVM: interpreted, OPENCL: interpreted, INTEL_C: missing}
    monkeypatch.setattr(groups, "contenders", lambda _device, _limit: known)
    path = tmp_path / "report.json"
    options = ["--quick", "--rounds", "2", "--kernels", "dot,minimum", "--parts", "speed"]
    peers = f"{LLVM},{OPENCL},{INTEL_C}"
    done = CliRunner().invoke(main, ["groups", *options, "--peers", peers, "--json", str(path)])
    assert done.exit_code == 0, done.output
    assert "dot: OpenCL C on Intel is missing: no Intel here" in done.output
    found = json.loads(path.read_text())
    assert (found["kind"], found["targets"]) == ("groups", [])
    assert len(found["kernels"]["minimum"]["seconds"][LLVM]) == 2
    assert found["kernels"]["dot"]["missing"] == {INTEL_C: "no Intel here"}


def test_goals_are_means_over_the_kernels_that_both_ran() -> None:
    rows = [
        speed.Row(Subject(BY_NAME[name], {}), {LLVM: [1.0, 2.0], OPENCL: [over, 2 * over]})
        for name, over in (("matmul", 2.0), ("dct", 8.0))
    ]
    rows[0].seconds[OPENCL_C] = [2.0, 4.0]
    ran = [Cycles("multi16", 19_000), Cycles("single", 190_000)]
    found = {each.name: each for each in goal.goals(rows, ran, [])}
    assert found["llvm over opencl, geometric mean of 2"].found == pytest.approx(0.25)
    assert found["opencl over OpenCL C, geometric mean of 1"].is_met
    assert found["dct in groups on multi16"].is_met
    assert found["dct in groups, single over multi16"].found == pytest.approx(10.0)
    assert found["vliw compiles a kernel, median of 0"].is_met is None


@pytest.mark.parametrize(("kernel", "launches"), [("matmul", 1), ("scan-tiles", 3)])
def test_launches_inside_of_items_are_not_compiled_by_themselves(
    kernel: str, launches: int
) -> None:
    sample = BY_NAME[kernel]
    assert len(compiling.outer_launches(sample, sample.full)) == launches


@pytest.mark.nightly
@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_items_are_independent_between_barriers(sample: Sample) -> None:
    program = verify(sample.whole(sample.tiny))
    (found,) = Differ(["switch"]).compare(program, Schedule.INDEPENDENCE)
    assert found.verdict is Verdict.AGREE, found


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("sample", "schedule"),
    [(sample, MOVED[number % len(MOVED)]) for number, sample in enumerate(SAMPLES)],
    ids=str,
)
def test_programs_are_moved_inside_groups(sample: Sample, schedule: Schedule) -> None:
    program = verify(sample.whole(sample.tiny))
    for comparison in Differ([*INTERPRETERS[:2], *COMPILERS[:3]]).compare(program, schedule):
        assert comparison.verdict is Verdict.AGREE, comparison
