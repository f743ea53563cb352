# SPDX-License-Identifier: Apache-2.0
"""A policy written out reads as the same policy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferryvm import policy
from ferryvm.policy import Action, Choice, Options, Policy, Profile, Rule, Shadow
from ferryvm.policy.condition import Is, Like, Within
from ferryvm.policy.predicate import Test, When
from ferryvm.policy.writer import write

from ..tier import examples
from .sample import BACKENDS, check

COUNTS = st.integers(1, 10**12)
LIMITS = st.integers(0, 10**12)
BACKEND = st.sampled_from(BACKENDS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(0, 10**9) | st.sampled_from([0.5, 1e6, 2.5e-7])
WITHIN = st.lists(
    st.tuples(st.sampled_from([">=", "<=", ">", "<", "!=", "=="]), NUMBERS), min_size=1, max_size=2
).map(lambda comparisons: Within(tuple(comparisons)))


def _some(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, min_size=1, max_size=2).map(tuple)


TESTS = (
    st.builds(Test, st.sampled_from(["work", "floats", "mix.heap", "machine.cpus"]), _some(WITHIN))
    | st.builds(Test, st.sampled_from(["marked", "allocates"]), _some(st.builds(Is, st.booleans())))
    | st.builds(Test, st.sampled_from(["name", "machine.cpu"]), _some(st.builds(Like, TEXTS)))
)
WHENS = st.recursive(
    st.builds(
        When, st.lists(TESTS, min_size=1, max_size=3, unique_by=lambda test: test.fact).map(tuple)
    ),
    lambda inner: st.builds(
        When, st.just(()), st.lists(inner, max_size=2).map(tuple), st.none() | inner
    ).filter(lambda when: when != When()),
    max_leaves=4,
)
OPTIONS = st.builds(
    Options,
    st.none() | COUNTS,
    st.integers(0, 3),
    *[st.booleans()] * 4,
    COUNTS,
    LIMITS,
    LIMITS,
)
RULES = st.builds(
    Rule,
    TEXTS,
    WHENS | st.just(When()),
    st.just(Action.COMPILE),
    _some(st.builds(Choice, BACKEND, OPTIONS)),
) | st.builds(Rule, TEXTS, WHENS, st.just(Action.INTERPRET))
POLICIES = st.builds(
    Policy,
    BACKEND,
    st.builds(Profile, st.booleans(), COUNTS, COUNTS, COUNTS),
    st.lists(RULES, max_size=3).map(tuple),
    st.booleans(),
    st.none() | st.builds(Shadow, BACKEND),
)


@examples(35)
@given(POLICIES)
def test_what_is_written_reads_as_the_same_policy(written: Policy) -> None:
    reading = check(write(written))
    if reading.policy is None:  # a condition that contradicts itself is well written all the same
        errors = [placed.fault for placed in reading.faults if not placed.fault.is_warning]
        assert all(fault.found.endswith("never holds") for fault in errors)
    else:
        assert reading.policy == written


def test_every_key_is_written() -> None:
    assert write(policy.default()).splitlines()[:13] == [
        'interpreter = "threaded"',
        "whole_program = false",
        "",
        "[profile]",
        "enabled = true",
        "loop_threshold = 100000",
        "function_threshold = 25000",
        "scope_threshold = 1",
        "delay_ms = 5",
        "",
        "[[rule]]",
        'name = "marked"',
        "when = { marked = true }",
    ]
