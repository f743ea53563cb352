# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign."""

from __future__ import annotations

import dataclasses
from collections import Counter

from ferryvm.engine.runnable import MIXED
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz.outcome import Finding, TrialOutcome
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.generate import Corner, ProgramKind

_COMPARED = (Verdict.AGREE, Verdict.DISAGREE, Verdict.DIVERGE)


@dataclasses.dataclass
class Report:
    """The results of a campaign so far."""

    plan: CampaignPlan
    jobs: int
    outcomes: Counter[tuple[ProgramKind, TrialOutcome]] = dataclasses.field(default_factory=Counter)
    verdicts: Counter[tuple[str, Verdict]] = dataclasses.field(default_factory=Counter)
    """Comparisons of single backends."""
    findings: list[Finding] = dataclasses.field(default_factory=list)
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)
    """For each backend that could not run a program: one reason why."""
    corners: Counter[Corner] = dataclasses.field(default_factory=Counter)
    """Programs in bytecode that had it, by what is rare."""
    compiled: int = 0
    """Regions that compilers have made code of."""
    seconds: float = 0.0
    """Seconds since the first worker was ready."""
    is_interrupted: bool = False

    @property
    def programs(self) -> int:
        """Trials that ended, successfully or not."""
        return self.outcomes.total()

    @property
    def rate(self) -> float:
        """Programs a second and a job."""
        return self.programs / self.jobs / self.seconds if self.seconds else 0.0

    @property
    def groups(self) -> list[list[Finding]]:
        """Groups of findings that probably have one cause, in the order of their first ones."""
        groups: dict[tuple[str, ...], list[Finding]] = {}
        for finding in sorted(self.findings, key=lambda finding: finding.number):
            groups.setdefault(finding.signature, []).append(finding)
        return list(groups.values())

    @property
    def uncompared(self) -> list[str]:
        """Backends that were not compared on any program."""
        compared = {
            name for (name, verdict), n in self.verdicts.items() if n and verdict in _COMPARED
        }
        return [name for name in self.plan.backends if name not in compared]

    @property
    def is_idle(self) -> bool:
        """True if mixed execution was under test and no compiler compiled anything."""
        return MIXED in self.plan.backends and not self.compiled
