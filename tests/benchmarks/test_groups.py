# SPDX-License-Identifier: Apache-2.0
"""The kernels whose items cooperate in groups store what their oracles say, wherever they run."""

from __future__ import annotations

import pytest
from benchmarks.groups.sample import Sample
from benchmarks.groups.table import SAMPLES

import ferryvm
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.verify import verify

from ..tier import nightly

INTERPRETERS = ("switch", "threaded", "reference")
COMPILERS = ("llvm", "opencl", "vliw")
QUICK = {"llvm": "reduction", "opencl": "transpose", "vliw": "reduction"}
"""The kernel that each compiler runs by default; each takes it tenths of a second."""
MOVED = (Schedule.SUSPEND, Schedule.EVERY_BOUNDARY, Schedule.RANDOM, Schedule.COLLECT)


def _is_default(number: int, sample: Sample, backend: str) -> bool:
    if backend in INTERPRETERS:
        return INTERPRETERS[number % len(INTERPRETERS)] == backend
    return QUICK[backend] == sample.name


PAIRS = [
    (sample, backend) if _is_default(number, sample, backend) else nightly((sample, backend))
    for number, sample in enumerate(SAMPLES)
    for backend in (*INTERPRETERS, *COMPILERS)
]


@pytest.mark.parametrize(("sample", "backend"), PAIRS, ids=str)
def test_results_are_those_of_the_oracle(sample: Sample, backend: str) -> None:
    work = sample.make(sample.tiny)
    mine = work.fresh()
    program = sample.program(sample.tiny)
    ferryvm.Engine(backend).instantiate(program).exports["work"](*mine.arguments)
    results = [mine.array(position) for position in mine.results]
    assert sample.difference(results, sample.oracle(work, sample.tiny)) == ""


def test_a_result_that_differs_is_named() -> None:
    sample = SAMPLES[0]
    right = sample.oracle(sample.make(sample.tiny), sample.tiny)
    wrong = [right[0].copy()]
    wrong[0][5] += 1
    assert "result 0 differs in 1 of 64 elements: element 5 is" in sample.difference(wrong, right)
    with pytest.raises(ValueError, match=r"matmul\.skiff does not define the constant TILES once"):
        sample.text({"TILES": 2})


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
    for comparison in Differ([*INTERPRETERS[:2], *COMPILERS]).compare(program, schedule):
        assert comparison.verdict is Verdict.AGREE, comparison
