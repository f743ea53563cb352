# SPDX-License-Identifier: Apache-2.0
"""Which rule a region falls under: the first that matches, with the reasons for all others."""

from __future__ import annotations

import pytest

from ferryvm import policy
from ferryvm.policy import Action, Policy, Rule, match
from ferryvm.policy.fact import Values
from ferryvm.policy.match import Decision, Passed
from ferryvm.policy.predicate import MatchResult, When

from .sample import LOOP, MACHINE, check, loop, when

THREE = """
[[rule]]
name = "big"
when = { work = ">= 1000" }
backends = ["opencl"]
[[rule]]
when = { marked = true }
backends = ["llvm"]
[[rule]]
name = "loops"
when = { kind = ["loop", "nest"], machine.cpus = ">= 2" }
backends = ["llvm", { name = "opencl", threshold = 100000 }]
"""


def _policy(text: str) -> Policy:
    read = check(text).policy
    assert read is not None
    return read


def test_the_first_rule_that_matches_wins() -> None:
    rules = _policy(THREE)
    assert policy.choose(rules, loop(work=1000, marked=True), MACHINE).index == 0
    assert policy.choose(rules, loop(marked=True), MACHINE).index == 1
    assert policy.choose(rules, LOOP, MACHINE).rule == rules.rules[2]


def test_a_decision_says_what_held_and_what_failed_in_the_rules_before() -> None:
    decision = policy.choose(_policy(THREE), LOOP, MACHINE)
    reason = "rule 3 'loops': kind is \"loop\"; machine.cpus is 4, wanted >= 2"
    assert decision.reason == reason
    assert decision.passed == (
        Passed(0, "big", "work is 300, wanted >= 1000"),
        Passed(1, "", "marked is false, wanted true"),
    )
    assert [str(passed) for passed in decision.passed] == [
        "rule 1 'big' does not match: work is 300, wanted >= 1000",
        "rule 2 does not match: marked is false, wanted true",
    ]


def test_what_no_rule_matches_has_no_rule_and_all_reasons() -> None:
    decision = policy.choose(_policy(THREE), loop(kind="function"), MACHINE)
    assert (decision.rule, decision.index, decision.reason) == (None, None, "no rule matches")
    assert [passed.index for passed in decision.passed] == [0, 1, 2]


def test_a_policy_without_rules_says_so() -> None:
    decision = policy.choose(Policy.for_interpreter("switch"), LOOP, MACHINE)
    assert decision == Decision(None, None, "the policy has no rules")


def test_a_rule_can_ask_for_a_fact_of_a_plugin() -> None:
    text = '[[rule]]\nwhen = { plugin.gpu.devices = ">= 1" }\nbackends = ["opencl"]\n'
    rules = _policy(text)
    with_device = {"plugin.gpu.devices": 2}
    assert policy.choose(rules, LOOP, MACHINE, with_device).reason == (
        "rule 1: plugin.gpu.devices is 2, wanted >= 1"
    )
    without = policy.choose(rules, LOOP, MACHINE)
    assert without.rule is None
    assert without.passed[0].reason == "plugin.gpu.devices is not known here, wanted >= 1"


def test_of_very_many_rules_the_first_are_told_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count = 10 * match.MOST_EXPLAINED
    made: list[When] = []
    judge = When.judge

    def judged(one: When, values: Values) -> MatchResult:
        made.append(one)
        return judge(one, values)

    monkeypatch.setattr(When, "judge", judged)
    rules = tuple(
        Rule(when=when(f"work = '> {1_000_000 + number}'"), action=Action.INTERPRET)
        for number in range(count)
    )
    decision = policy.choose(Policy(rules=rules), LOOP, MACHINE)
    assert (decision.rule, len(decision.passed)) == (None, match.MOST_EXPLAINED)
    assert decision.lines()[-1] == f"{9 * match.MOST_EXPLAINED} more rules do not match"
    assert len(made) == match.MOST_EXPLAINED
    last = Rule("last", when("kind = 'loop'"), Action.INTERPRET)
    decision = policy.choose(Policy(rules=(*rules, last)), LOOP, MACHINE)
    assert decision.reason == f"rule {count + 1} 'last': kind is \"loop\""
    assert decision.unexplained == 9 * match.MOST_EXPLAINED
