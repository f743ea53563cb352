# SPDX-License-Identifier: Apache-2.0
"""What it costs an interpreter to count at loop heads and function entries.

Each program runs alone, with the default policy's counts and rules that say "go on interpreting"
when they are reached, and with counts that nothing reaches, so that every cell stays to the end.
"""

from __future__ import annotations

import dataclasses

from benchmarks.benchmark import Benchmark, BenchmarkError, Scale
from benchmarks.peers.ferry import FerryPeer, compiled
from benchmarks.peers.peer import Measurement, Peer, Task
from benchmarks.report import Report, Suite, Target
from ferryvm import policy
from ferryvm.engine import Engine
from ferryvm.engine.site import NEVER
from ferryvm.errors import FerryError
from ferryvm.policy import Action, Policy, Profile, Rule
from ferryvm.verify import verify

MOST = 1.05
ALONE = "alone"


class ProfiledPeer(FerryPeer):
    """An interpreter in this process under one profile. A run sets its own cells."""

    def __init__(self, name: str, label: str, interpreter: str, profile: Profile) -> None:
        super().__init__(name)
        self.label = label
        self._policy = Policy(interpreter, profile, (Rule("all", action=Action.INTERPRET),))
        self.engine = Engine(policy=self._policy)

    def version(self) -> str:
        return f"{self._policy.interpreter}, {self._policy.profile}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        program = compiled(benchmark, scale)

        def run() -> Measurement:
            verified = verify(program)  # anew: what analyses find is kept with it
            try:
                result = self.engine.start(verified).run()
            except FerryError as error:
                raise BenchmarkError(str(error)) from error
            if result.value is None:
                raise BenchmarkError(f"{benchmark.name}: the Skiff twin has no result")
            return Measurement(result.statistics.seconds.run, result.value)

        return run


def peers(interpreter: str) -> dict[str, Peer]:
    """The interpreter under each profile."""
    usual = policy.default().profile
    profiles = {
        ALONE: Profile(enabled=False),
        "counted": usual,
        "kept": dataclasses.replace(
            usual, loop_threshold=NEVER, function_threshold=NEVER, scope_threshold=NEVER
        ),
    }
    return {
        name: ProfiledPeer(name, f"{interpreter} {name}", interpreter, profile)
        for name, profile in profiles.items()
    }


def goals(report: Report) -> list[Target]:
    """What counting may cost a whole run, on the worst program."""
    ratios = report.ratios("counted", ALONE).values()
    return [Target("counted over alone, worst program", max(ratios, default=None), MOST, True)]


def suite(scale: Scale) -> Suite:
    """The suite at a scale."""
    return Suite("profile", scale, (ALONE,), goals)
