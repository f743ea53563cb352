# SPDX-License-Identifier: Apache-2.0
"""Random launches on threads and in lanes: the states are those of the loop."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest

from ferryvm.backend import Forcing
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.state import Machine
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import LIMITS, ProgramKind, generate
from ferryvm.testing.generate.weights import Weights
from ferryvm.verify import verify

from ..tier import sample
from .generate.settled import settled

WEIGHTS = Path(__file__).parents[1] / "fuzz" / "threads.toml"

SEED = 20261203


@functools.cache
def weights() -> Weights:
    return Weights.load(WEIGHTS)


LAUNCHING = (0, 2, 6, 11)
"""Programs of settled instructions some of whose launches run out of order; in the others an item
may throw, or none is reached."""


@pytest.mark.parametrize("number", sample([*LAUNCHING, *range(60, 160)], default=1))
def test_random_launches_on_threads_end_in_the_state_of_the_loop(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges: list[tuple[int, int]] = []
    run = ThreadedRanges.run

    def noted(self: ThreadedRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        ranges.append((first, limit))
        return run(self, machine, first, limit)

    monkeypatch.setattr(ThreadedRanges, "run", noted)
    # Suspended items need room.
    limits = dataclasses.replace(LIMITS, objects=64 << 20)
    differ = Differ(["llvm"], limits=limits, forcing=frozenset({Forcing.PARALLEL}))
    differ.form = False  # counted runs are in order
    drawn = settled(weights()) if number in LAUNCHING else weights()
    (comparison,) = differ.compare(verify(generate(SEED, number, weights=drawn)))
    assert comparison.verdict in (Verdict.AGREE, Verdict.DIVERGE), comparison
    assert ranges or number not in LAUNCHING


@pytest.mark.nightly
@pytest.mark.parametrize("number", range(20))
def test_random_maps_and_reductions_on_threads_end_in_the_state_of_the_loop(number: int) -> None:
    limits = dataclasses.replace(LIMITS, objects=64 << 20)
    differ = Differ(["llvm"], limits=limits, forcing=frozenset({Forcing.PARALLEL}), patience=300)
    differ.form = False
    program = verify(generate(SEED, number, ProgramKind.SKIFF, weights()))
    (comparison,) = differ.compare(program)
    assert comparison.verdict is not Verdict.DISAGREE, comparison
