# SPDX-License-Identifier: Apache-2.0
"""The sample of random programs that every run of the tests tries; campaigns try many more."""

from __future__ import annotations

import os

import pytest

from ferryvm.backend import Forcing
from ferryvm.testing import Schedule
from ferryvm.testing.fuzz import FINDINGS, Campaign, CampaignPlan, Report, TrialOutcome
from ferryvm.testing.generate import ProgramKind

from ..tier import sample

SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261121"))  # campaigns take others
NATIVE = ("switch", "threaded")
RAN = (TrialOutcome.HALTED, TrialOutcome.TRAPPED, TrialOutcome.STOPPED)


def run(
    kind: ProgramKind,
    programs: int,
    schedules: tuple[Schedule, ...] = (Schedule.NONE,),
    first: int = 0,
) -> Report:
    """A campaign that found nothing, in which every program was compared or refused."""
    plan = CampaignPlan(SEED, NATIVE, kinds=(kind,), schedules=schedules)
    report = Campaign(plan, 1, programs, first=first).run()
    assert not report.findings, [str(group[0]) for group in report.groups]
    assert report.programs == programs
    assert not any(report.outcomes[kind, outcome] for outcome in FINDINGS)
    assert not report.outcomes[kind, TrialOutcome.UNSUPPORTED]
    return report


@pytest.mark.parametrize("programs", sample([6, 2500], 1))
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_random_programs_run_alike_on_every_backend(kind: ProgramKind, programs: int) -> None:
    report = run(kind, programs)
    assert sum(report.outcomes[kind, outcome] for outcome in RAN) == programs
    assert report.outcomes[kind, TrialOutcome.HALTED] > programs // 3


@pytest.mark.parametrize("programs", sample([3, 25], 1))
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_random_programs_moved_at_every_boundary_end_as_those_that_stay(
    kind: ProgramKind, programs: int
) -> None:
    report = run(kind, programs, (Schedule.NONE, Schedule.EVERY_BOUNDARY), first=2500)
    assert sum(report.outcomes[kind, outcome] for outcome in RAN) == programs


@pytest.mark.parametrize("programs", sample([6, 100], 1))
def test_random_programs_moved_at_random_end_as_those_that_stay(programs: int) -> None:
    report = run(ProgramKind.BYTECODE, programs, (Schedule.NONE, Schedule.RANDOM), first=2600)
    assert sum(report.outcomes[ProgramKind.BYTECODE, outcome] for outcome in RAN) == programs


@pytest.mark.parametrize("programs", sample([2, 150], 1))
def test_random_programs_collected_at_every_boundary_end_as_those_that_are_not(
    programs: int,
) -> None:
    report = run(ProgramKind.BYTECODE, programs, (Schedule.NONE, Schedule.COLLECT), first=2800)
    assert sum(report.outcomes[ProgramKind.BYTECODE, outcome] for outcome in RAN) == programs


@pytest.mark.nightly
def test_random_kernels_moved_and_suspended_in_their_middle_end_as_those_that_stay() -> None:
    schedules = (Schedule.NONE, Schedule.RANDOM, Schedule.SUSPEND, Schedule.INDEPENDENCE)
    report = run(ProgramKind.KERNEL, 150, schedules)
    assert report.outcomes[ProgramKind.KERNEL, TrialOutcome.HALTED] > 75


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["llvm", "opencl", "vliw"])
def test_random_kernels_run_alike_in_compiled_code(backend: str) -> None:
    plan = CampaignPlan(
        SEED,
        (backend,),
        kinds=(ProgramKind.KERNEL,),
        forcing=frozenset({Forcing.HOT}),
        patience=60,
    )
    report = Campaign(plan, 1, 20 if backend == "llvm" else 4).run()
    assert not report.findings, [str(group[0]) for group in report.groups]


@pytest.mark.parametrize("images", sample([12, 3000], 1))
def test_mutated_images_are_refused_or_run_alike_on_every_backend(images: int) -> None:
    report = run(ProgramKind.IMAGE, images)
    ran = sum(report.outcomes[ProgramKind.IMAGE, outcome] for outcome in RAN)
    assert ran > images // 5
    assert ran + report.outcomes[ProgramKind.IMAGE, TrialOutcome.REFUSED] == images
