# SPDX-License-Identifier: Apache-2.0
"""A policy as text with all keys, including those that its file omitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.policy.condition import Condition, Is, Like, read
from ferryvm.policy.fact import Fact, find
from ferryvm.policy.model import Action, Choice, Policy, Rule
from ferryvm.policy.predicate import ANY, NOT, Test, When
from ferryvm.toml.fault import quote


def write(policy: Policy) -> str:
    """TOML that reads as an equal policy."""
    return "".join(f"{line}\n" for line in _lines(policy))


def _lines(policy: Policy) -> Iterator[str]:
    yield f"interpreter = {quote(policy.interpreter)}"
    yield f"whole_program = {_scalar(policy.whole_program)}"
    yield "\n[profile]"
    yield from _keys(policy.profile)
    if policy.shadow is not None:
        yield "\n[shadow]"
        yield from _keys(policy.shadow)
    for rule in policy.rules:
        yield "\n[[rule]]"
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"name = {quote(rule.name)}"
    yield f"when = {_when(rule.when)}"
    yield f"action = {quote(rule.action.value)}"
    if rule.action is Action.COMPILE:
        yield "backends = ["
        for choice in rule.backends:
            yield f"    {{ {', '.join(_choice(choice))} }},"
        yield "]"
        yield f"place = {quote(rule.place.value)}"


def _choice(choice: Choice) -> Iterator[str]:
    yield f"name = {quote(choice.backend)}"
    yield from _keys(choice.options)


def _keys(part: object) -> Iterator[str]:
    """Keys of a plain dataclass; a key whose value is None is omitted."""
    assert dataclasses.is_dataclass(part)
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value is not None:
            yield f"{field.name} = {_scalar(value)}"


def _scalar(value: bool | int | str) -> str:
    return quote(value) if isinstance(value, str) else str(value).lower()


def _when(when: When) -> str:
    parts = [_test(test) for test in when.tests]
    if when.alternatives:
        parts.append(f"{ANY} = [{', '.join(_when(one) for one in when.alternatives)}]")
    if when.exception is not None:
        parts.append(f"{NOT} = {_when(when.exception)}")
    return f"{{ {', '.join(parts)} }}" if parts else "{}"


def _test(test: Test) -> str:
    wanted = [_condition(one, find(test.fact)) for one in test.wanted]
    name = quote(test.fact) if "." in test.fact else test.fact
    return f"{name} = {wanted[0]}" if len(wanted) == 1 else f"{name} = [{', '.join(wanted)}]"


def _condition(condition: Condition, fact: Fact | None) -> str:
    if isinstance(condition, Is):
        return _scalar(condition.value)
    if isinstance(condition, Like):
        return quote(condition.pattern)
    text = str(condition)
    if text[0] in "<>=!":
        return quote(text)
    # A comparison may use a number that the fact cannot equal; it must remain a comparison.
    _, number = condition.comparisons[0]
    return text if fact and read(number, fact) else quote(f"== {text}")
