# SPDX-License-Identifier: Apache-2.0
"""Single conditions: what a value in a rule stands for, and what is no condition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.policy.condition import Condition, Is, Like, Within, read, samples
from ferryvm.policy.fact import Fact, FactType, Value

from ..tier import examples

BOOLEAN, COUNT, SHARE, TEXT, OPEN = (Fact(kind.name, kind) for kind in FactType)


@pytest.mark.parametrize(
    ("wanted", "fact", "holding", "failing"),
    [
        (True, BOOLEAN, [True], [False]),
        (False, BOOLEAN, [False], [True]),
        (2, COUNT, [2], [1, 3]),
        (0.5, SHARE, [0.5], [0.49]),
        (">= 10", COUNT, [10, 11], [9]),
        ("<=10", COUNT, [10, 0], [11]),
        (" > 10 ", COUNT, [11], [10]),
        ("< 0.5", SHARE, [0.0, 0.49], [0.5]),
        ("== 3", COUNT, [3], [4]),
        ("!= 3", COUNT, [4], [3]),
        (">= 10, < 1_000", COUNT, [10, 999], [9, 1000]),
        (">= 1e3", COUNT, [1000], [999]),
        (2.0, COUNT, [2], [1]),
        (10**18, COUNT, [10**18], [10**18 - 1]),
        (f"> 0.{'0' * 50}1e018", COUNT, [1], [0]),
        ("loop", TEXT, ["loop"], ["loops", "Loop", ""]),
        ("work/*", TEXT, ["work/loop.1", "work/"], ["work", "rework/loop.1"]),
        ("f?[ab]", TEXT, ["f1a"], ["fa", "f1c"]),
        ("", TEXT, [""], ["a"]),
        (True, OPEN, [True], [False, 1, "true"]),
        (2, OPEN, [2, 2.0], [True, "2"]),
        ("> 2", OPEN, [3], [2, "> 2"]),
        ("a*", OPEN, ["ab"], ["b", 3]),
    ],
)
def test_a_condition_holds_for_what_it_says(
    wanted: object, fact: Fact, holding: list[Value], failing: list[Value]
) -> None:
    condition = read(wanted, fact)
    assert condition is not None
    assert [value for value in holding + failing if condition.holds(value)] == holding


@pytest.mark.parametrize(
    ("wanted", "fact"),
    [
        ("true", BOOLEAN),
        (1, BOOLEAN),
        ([True], BOOLEAN),
        (True, COUNT),
        ("yes", SHARE),
        ("10", COUNT),
        ("=> 10", COUNT),
        (">= 10,", COUNT),
        (">= 0x10", COUNT),
        (">= inf", COUNT),
        (">= 1e400", COUNT),
        (f">= {'9' * 5000}", COUNT),
        (-1, COUNT),
        (1.5, COUNT),
        (10**18 + 1, COUNT),
        (f">= 1{'0' * 18}1", COUNT),
        ("> 1e019, < 2", COUNT),
        (1.1, SHARE),
        (-0.5, SHARE),
        (math.nan, OPEN),
        (-(10**18) - 1, OPEN),
        ("> 1e400", OPEN),
        ("> 2, 3", OPEN),
        (math.nan, SHARE),
        (math.inf, COUNT),
        (3, TEXT),
        (False, TEXT),
        ({"a": 1}, OPEN),
        (None, OPEN),
    ],
)
def test_what_a_fact_cannot_be_is_no_condition(wanted: object, fact: Fact) -> None:
    assert read(wanted, fact) is None


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Is(True), "true"),
        (Like("a*"), '"a*"'),
        (Within((("==", 3),)), "3"),
        (Within(((">=", 1), ("<", 0.5))), ">= 1, < 0.5"),
    ],
)
def test_a_condition_is_shown_as_it_is_written(condition: Condition, text: str) -> None:
    assert str(condition) == text


BOUNDS = st.integers(-2, 12) | st.sampled_from([-0.5, 0.25, 0.5, 0.75, 1.5, 7.5, 1e6])
WITHIN = st.lists(
    st.tuples(st.sampled_from([">=", "<=", ">", "<", "==", "!="]), BOUNDS), min_size=1, max_size=3
).map(lambda comparisons: Within(tuple(comparisons)))


@examples(35)
@given(st.lists(WITHIN, min_size=1, max_size=2), st.booleans())
def test_samples_show_every_way_in_which_comparisons_can_turn_out(
    conditions: list[Within], is_share: bool
) -> None:
    values = samples(SHARE if is_share else COUNT, conditions)
    assert values is not None
    found = [*values]
    # Bounds are multiples of 1/4 or of 1: all between two of them are alike.
    grid: list[float] = [step / 8 for step in range(9)] if is_share else [*range(20), 10**6, 10**7]
    most = 1 if is_share else math.inf
    assert all(not isinstance(value, str) and 0 <= value <= most for value in found)
    for condition in conditions:
        assert {condition.holds(value) for value in found} == {
            condition.holds(value) for value in (*grid, *([] if is_share else [999_999]))
        }


def test_open_texts_cannot_be_told() -> None:
    assert samples(TEXT, [Like("a")]) is None
    assert samples(OPEN, [Like("a")]) is None
    kinds = samples(Fact("kind", FactType.TEXT, ("loop", "nest")), [])
    assert kinds is not None
    assert [*kinds] == ["loop", "nest"]
