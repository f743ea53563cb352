# SPDX-License-Identifier: Apache-2.0
"""Conditions and rules that can never decide anything, which their author probably did not intend.

A condition that contradicts itself is an error. A rule without effect because of other parts of the
file is a warning, since that may be intended for a while.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from ferryvm.policy.fact import Fact, vocabulary
from ferryvm.policy.model import Action, LaunchPlacing, Policy
from ferryvm.policy.predicate import When
from ferryvm.toml.fault import Path, TomlFault, show

_WHOLE = "program"
"""The kind of region of a whole program."""
_LAUNCH = "launch"
"""The kind of region that is compiled for launches within it."""


def unreached(policy: Policy) -> Iterator[TomlFault]:
    """A warning for each rule, or key, without effect."""
    if policy.rules and not policy.profile.enabled and not policy.whole_program:
        found = "no rule is ever asked: nothing is counted, and whole_program is off"
        yield TomlFault(("profile", "enabled"), found, is_warning=True)
    facts = _facts_of_regions(policy)
    aside = f": this policy asks its rules about {', '.join(facts['kind'].values or ())} only"
    always: int | None = None
    seen: dict[When, int] = {}
    for index, rule in enumerate(policy.rules):
        path: Path = ("rule", index)
        if always is not None:
            found = f"never reached: rule[{always + 1}] takes everything"
            yield TomlFault(path, found, is_warning=True)
        elif rule.when in seen:
            found = f"never reached: rule[{seen[rule.when] + 1}] has the same condition"
            yield TomlFault(path, found, is_warning=True)
        else:
            outcomes = rule.when.outcomes(facts)
            if outcomes == {False}:
                yield from contradiction(rule.when, (*path, "when"), facts, aside)
            seen[rule.when] = index
            if outcomes == {True}:
                always = index
    yield from _ineffective(policy)
    if policy.whole_program and not any(_takes_programs(rule.when) for rule in policy.rules):
        found = "no rule takes a region of kind 'program'"
        yield TomlFault(("whole_program",), found, is_warning=True)


def _ineffective(policy: Policy) -> Iterator[TomlFault]:
    """A warning for each key of a rule that its `place` makes pointless."""
    for index, rule in enumerate(policy.rules):
        path: Path = ("rule", index)
        if rule.place is LaunchPlacing.FIRST or rule.action is not Action.COMPILE:
            continue
        for number, choice in enumerate(rule.backends[1:], 1):
            for key, default in (("threshold", None), ("required", False)):
                if getattr(choice.options, key) != default:
                    found = (
                        f"no effect: with place = {show(rule.place.value)} the first backend "
                        "compiles the region, and the others the items of its launches"
                    )
                    yield TomlFault((*path, "backends", number, key), found, is_warning=True)


def _facts_of_regions(policy: Policy) -> Mapping[str, Fact]:
    """The facts, with the kinds of regions that occur under this policy."""
    kinds = _kinds()
    if not policy.whole_program:
        kinds = tuple(kind for kind in kinds if kind != _WHOLE)
    elif not policy.profile.enabled:
        kinds = (_LAUNCH, _WHOLE)
    return _with_kinds(kinds)


def _takes_programs(when: When) -> bool:
    return True in when.outcomes(_with_kinds((_WHOLE,)))


def _kinds() -> tuple[str, ...]:
    kinds = vocabulary()["kind"].values
    assert kinds is not None
    return kinds


def _with_kinds(kinds: tuple[str, ...]) -> Mapping[str, Fact]:
    facts = vocabulary()
    return {**facts, "kind": dataclasses.replace(facts["kind"], values=kinds)}


def contradiction(
    when: When, path: Path, facts: Mapping[str, Fact], aside: str = ""
) -> Iterator[TomlFault]:
    """A fault if the predicate never holds, or one for each test that is the cause by itself.

    `aside`: text for the message if a part of the policy outside the predicate is a cause; the
    fault is a warning then.
    """
    if when.outcomes(facts) != {False}:
        return
    alone = [test for test in when.tests if test.outcomes(facts) == {False}]
    for test in alone:
        found = f"{test.wanting} never holds{aside}"
        yield TomlFault((*path, test.fact), found, is_warning=bool(aside))
    if not alone:
        yield TomlFault(path, f"never holds{aside}", is_warning=bool(aside))
