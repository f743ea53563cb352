# SPDX-License-Identifier: Apache-2.0
"""The sample of random programs that every run of the tests tries; campaigns try many more."""

from __future__ import annotations

import os

import pytest

from ferryvm.testing import Schedule
from ferryvm.testing.fuzz import FINDINGS, Campaign, Outcome, Plan, Report
from ferryvm.testing.generate import Kind

SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261121"))  # campaigns take others
NATIVE = ("switch", "threaded")
RAN = (Outcome.HALTED, Outcome.TRAPPED, Outcome.STOPPED)


def run(
    kind: Kind, programs: int, schedules: tuple[Schedule, ...] = (Schedule.NONE,), first: int = 0
) -> Report:
    """A campaign that found nothing, in which every program was compared or refused."""
    plan = Plan(SEED, NATIVE, kinds=(kind,), schedules=schedules)
    report = Campaign(plan, 2, programs, first=first).run()
    assert not report.findings, [str(group[0]) for group in report.groups]
    assert report.programs == programs
    assert not any(report.outcomes[kind, outcome] for outcome in FINDINGS)
    assert not report.outcomes[kind, Outcome.UNSUPPORTED]
    return report


@pytest.mark.parametrize("kind", [Kind.BYTECODE, Kind.SKIFF])
def test_random_programs_run_alike_on_every_backend(kind: Kind) -> None:
    report = run(kind, 2500)
    assert sum(report.outcomes[kind, outcome] for outcome in RAN) == 2500
    assert report.outcomes[kind, Outcome.HALTED] > 1000


@pytest.mark.parametrize("kind", [Kind.BYTECODE, Kind.SKIFF])
def test_random_programs_moved_at_every_boundary_end_as_those_that_stay(kind: Kind) -> None:
    report = run(kind, 50, (Schedule.NONE, Schedule.EVERY_BOUNDARY), first=2500)
    assert sum(report.outcomes[kind, outcome] for outcome in RAN) == 50


def test_random_programs_moved_at_random_end_as_those_that_stay() -> None:
    report = run(Kind.BYTECODE, 200, (Schedule.NONE, Schedule.RANDOM), first=2600)
    assert sum(report.outcomes[Kind.BYTECODE, outcome] for outcome in RAN) == 200


def test_mutated_images_are_refused_or_run_alike_on_every_backend() -> None:
    report = run(Kind.IMAGE, 3000)
    ran = sum(report.outcomes[Kind.IMAGE, outcome] for outcome in RAN)
    assert ran > 600
    assert ran + report.outcomes[Kind.IMAGE, Outcome.REFUSED] == 3000
