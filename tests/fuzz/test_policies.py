# SPDX-License-Identifier: Apache-2.0
"""The policies for campaigns do what they are for; a sample of what campaigns try with them."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest

from ferryvm import policy as policies
from ferryvm.backend import Forcing
from ferryvm.engine import Engine, TrapError
from ferryvm.engine.journal import Attempt, Event, Placement
from ferryvm.engine.runnable import mixed
from ferryvm.registry import Registry
from ferryvm.testing import Schedule
from ferryvm.testing.fuzz import Campaign, CampaignPlan
from ferryvm.testing.generate import LIMITS, generate
from ferryvm.testing.generate.weights import Weights

from ..testing.generate.settled import settled
from ..tier import sample

SEED = 20261127
SPECULATION = Path(__file__).with_name("speculation.toml")
SHADOW = Path(__file__).with_name("shadow.toml")
LOOPS = Path(__file__).with_name("loops.toml")

WITH_GUARDS = (63, 71, 152)
"""Numbers of programs made with the weights in which a guard fails."""


@pytest.mark.rotate("policy", "programs", most=1)
@pytest.mark.parametrize("programs", sample([3, 20], 1))
@pytest.mark.parametrize(
    ("policy", "forcing"), [(SPECULATION, frozenset()), (SHADOW, frozenset([Forcing.HOT]))]
)
def test_random_programs_run_alike_under_the_policy(
    policy: Path, forcing: frozenset[Forcing], programs: int
) -> None:
    schedules = (Schedule.NONE, Schedule.RANDOM)
    plan = CampaignPlan(SEED, ("mixed",), policy=str(policy), schedules=schedules, forcing=forcing)
    report = Campaign(plan, 1, programs).run()
    assert not report.findings, [str(group[0]) for group in report.groups]
    assert not report.uncompared
    assert report.compiled > programs // 2


def test_guards_fail_and_code_is_made_again_without_them() -> None:
    registry, seen, guards = Registry(), Counter[Event](), 0

    def listen(event: Event, _: Placement, what: object) -> None:
        nonlocal guards
        seen[event] += 1
        guards += what.guards if isinstance(what, Attempt) else 0

    policy = policies.load(SPECULATION, registry.names)
    engine = Engine("threaded", limits=LIMITS, output=lambda _: None, registry=registry)
    engine.backend = mixed(registry, policy, listeners=(listen,))
    weights = settled(Weights.load(LOOPS))
    for number in WITH_GUARDS:
        with contextlib.suppress(TrapError):
            engine.start(generate(SEED, number, weights=weights)).run(20_000)
    assert guards >= len(WITH_GUARDS)
    assert seen[Event.GUARD] == len(WITH_GUARDS)
