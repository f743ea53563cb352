# SPDX-License-Identifier: Apache-2.0
"""A sample of random programs on compiled code that is entered early and left often."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import pytest

from ferryvm.backend import Forcing
from ferryvm.engine import Engine, Execution, TrapError
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.machine.control import Status
from ferryvm.machine.state import Snapshot
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.generate import LIMITS, ProgramKind
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import Verified

from ...random_program import small_programs
from ...tier import sample

SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261121"))  # campaigns take others
PROGRAMS = 4
"""A program has a dozen regions, each compiled in two forms: one takes half a second."""

COUNTS = pytest.mark.parametrize("count", sample([PROGRAMS // 2, PROGRAMS], 1))


@functools.cache
def programs(kind: ProgramKind, count: int, first: int) -> Sequence[Verified]:
    return small_programs(SEED, kind, first, count)


@COUNTS
@pytest.mark.rotate("forcing", "kind", most=1)
@pytest.mark.parametrize("forcing", [(), (Forcing.HOT,), (Forcing.HOT, Forcing.DEOPT)])
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_random_programs_run_alike_counting_and_not(
    kind: ProgramKind, forcing: tuple[Forcing, ...], count: int
) -> None:
    differ = Differ(["llvm"], limits=LIMITS, forcing=frozenset(forcing))
    for program in programs(kind, count, 100 * len(forcing)):
        for comparison in differ.compare(program):
            assert comparison.verdict is Verdict.AGREE, (SEED, comparison)


@pytest.mark.rotate("kind", most=1)
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_random_programs_that_move_between_backends_end_as_those_that_stay(
    kind: ProgramKind,
) -> None:
    differ = Differ(["llvm"], limits=LIMITS, forcing=frozenset({Forcing.HOT}))
    for number, program in enumerate(programs(kind, PROGRAMS // 2, 300)):
        (comparison,) = differ.compare(program, Schedule.RANDOM, SEED + number)
        assert comparison.verdict is Verdict.AGREE, (SEED, comparison)


MOST = 2_000_000
"""Fuel of a run: a program that runs longer is compared there."""


def ended(execution: Execution, fuel: int | None) -> tuple[Snapshot, bytes, int | None]:
    """How a run ends: state, what it wrote, and what is left of its fuel."""
    output: list[bytes] = []
    execution.output = output.append
    try:
        execution.run(fuel)
    except TrapError:
        assert execution.machine.status is Status.TRAP
    left = execution.machine.control.fuel if fuel is not None else None
    return execution.machine.snapshot(), b"".join(output), left


@pytest.mark.nightly
def test_random_programs_run_alike_where_code_speculates() -> None:
    options = Options(background=False, speculate=True, guard_limit=2, recompile_limit=4)
    rule = Rule(backends=(Choice("llvm", options),))
    policy = Policy(profile=Profile(True, 10, 10, 1), rules=(rule,))
    guards = 0
    chosen = (
        *programs(ProgramKind.BYTECODE, 2 * PROGRAMS, 411),
        *programs(ProgramKind.SKIFF, PROGRAMS, 411),
    )
    for program in chosen:
        expected = Engine("threaded", limits=LIMITS).start(program)
        execution = Engine(policy=policy, limits=LIMITS).start(program)
        wanted = ended(expected, MOST)
        assert ended(execution, MOST) == wanted, SEED
        if wanted[0].status is not Status.FUEL:
            assert ended(execution.again(), None)[:2] == wanted[:2], SEED
        ((_, artifact),) = execution._prepared.values()
        assert isinstance(artifact, MixedArtifact)
        for placement in artifact.journal.placements:
            guards += sum(attempt.guards for attempt in placement.attempts)
    assert guards > 0
