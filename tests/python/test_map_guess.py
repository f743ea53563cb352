# SPDX-License-Identifier: Apache-2.0
"""Maps whose code leaves out the branches that their first items did not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import record
from ferryvm.engine import installed_launch, launching
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.python.call.default_policy import python_policy

ITEMS = 600


def at_once() -> Policy:
    """The policy of Python functions, whose code is there at once, and does not come from a
    cache."""
    (rule,) = (each for each in python_policy().rules if each.name == "launches")
    options = record.replace(
        rule.backends[0].options, background=False, cache=False, observe_items=50, threads=2
    )
    rule = Rule(rule.name, when=rule.when, backends=(Choice("llvm", options),))
    return Policy(rules=(rule,), profile=Profile(loop_threshold=2))


@pytest.fixture(autouse=True)
def _threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    monkeypatch.setattr(launching, "SAMPLE", 0.0)
    monkeypatch.setattr(installed_launch, "SUSPENSION", 0.0)


def rare(x: Any, limit: Any) -> Any:
    if x >= limit:
        total = 0.0
        while x > 1.0:
            x = x / 2.0
            total += x
        return total
    return x * 3.0


def test_items_that_take_a_branch_that_was_not_seen_are_finished() -> None:
    f = ferryvm.function(policy=at_once())(rare)
    xs = np.arange(float(ITEMS))
    for _ in range(2):
        ferryvm.map(f, xs, limit=1e9)
    found = ferryvm.map(f, xs, limit=590.0)  # the argument was taken for constant, too
    assert found.tolist() == [rare(x, 590.0) for x in xs]
    told = str(f.explain())
    assert "never goes to" in told
    assert "argument 3 of the items is 1000000000.0: it changed: compiled again without it" in told
    assert "the guard at pc 5 failed for 10 items" in told
    for _ in range(3):
        xs[::2] = 595.0  # half of the items fail the guard, so the branch is compiled
        assert ferryvm.map(f, xs, limit=590.0).tolist() == [rare(x, 590.0) for x in xs]
    assert "never goes to pc 12: wrong too often: compiled again without it" in str(f.explain())


def test_an_exception_of_a_branch_that_was_not_seen_is_python_s() -> None:
    @ferryvm.function(policy=at_once())
    def checked(x):
        if x > 500:
            raise ValueError(f"{x} is too large")
        return x + 1

    low, high = np.arange(float(ITEMS)) % 400, np.arange(float(ITEMS))
    for _ in range(2):
        assert np.array_equal(ferryvm.map(checked, low), low + 1)
    with pytest.raises(ValueError, match=r"501\.0 is too large") as caught:
        ferryvm.map(checked, high)
    assert str(caught.value).endswith(", in item 501 of a map")


def test_functions_without_a_policy_guess_in_launches_alone() -> None:
    guessing = [
        (rule.name, choice.backend)
        for rule in python_policy().rules
        for choice in rule.backends
        if choice.options.speculate
    ]
    assert guessing == [("launches", "llvm")]
    compiled = ferryvm.function(rare)
    assert compiled._engine.backend.policy == python_policy()  # type: ignore[attr-defined]  # mixed execution
