# SPDX-License-Identifier: Apache-2.0
"""The rule that applies to a region: the first one whose predicate holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.policy.fact import Value, Values
from ferryvm.policy.machine import MachineFacts
from ferryvm.policy.model import Policy, Rule
from ferryvm.region.fact import Facts

MOST_EXPLAINED = 100
"""The number of rules for which a decision has the reason why they do not match a region: reasons
for all would take most of the time and memory."""


@dataclasses.dataclass(frozen=True)
class Passed:
    """A rule that did not match."""

    index: int
    """Its index in the policy's rules, from 0."""
    name: str
    reason: str
    """The condition that failed, with the value found; one line."""

    def __str__(self) -> str:
        return f"{_title(self.index, self.name)} does not match: {self.reason}"


@dataclasses.dataclass(frozen=True)
class Decision:
    """The decision of a policy about one region."""

    rule: Rule | None
    """The rule that matched; None: the region is interpreted."""
    index: int | None
    """Its index in the policy's rules, from 0."""
    reason: str
    """The reason that it matched, or that there is none; one line."""
    passed: tuple[Passed, ...] = ()
    """The rules before it, or all; the first MOST_EXPLAINED of them."""
    unexplained: int = 0
    """Number of further rules that did not match."""

    def lines(self) -> tuple[str, ...]:
        """The rules that did not match, a line each, and the number of those omitted."""
        rest = (f"{self.unexplained} more rules do not match",) if self.unexplained else ()
        return (*map(str, self.passed), *rest)


def choose(
    policy: Policy, facts: Facts, machine: MachineFacts, extra: Mapping[str, Value]
) -> Decision:
    """As `ferryvm.policy.choose`."""
    values = Values(facts, machine, extra)
    passed: list[Passed] = []
    for index, rule in enumerate(policy.rules):
        if index >= MOST_EXPLAINED and not rule.when.holds(values):
            continue
        verdict = rule.when.judge(values)
        if verdict.holds:
            reason = f"{_title(index, rule.name)}: {verdict.because}"
            return Decision(rule, index, reason, tuple(passed), index - len(passed))
        passed.append(Passed(index, rule.name, verdict.because))
    reason = "no rule matches" if policy.rules else "the policy has no rules"
    return Decision(None, None, reason, tuple(passed), len(policy.rules) - len(passed))


def _title(index: int, name: str) -> str:
    return f"rule {index + 1} {name!r}" if name else f"rule {index + 1}"
