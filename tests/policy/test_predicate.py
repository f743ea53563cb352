# SPDX-License-Identifier: Apache-2.0
"""The `when` of a rule: what it holds for, what it says about that, how it can turn out."""

from __future__ import annotations

import pytest

from ferryvm.policy.fact import vocabulary

from .sample import values, when


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "it takes everything"),
        ("kind = 'loop'", 'kind is "loop"'),
        ("kind = ['nest', 'loop']", 'kind is "loop"'),
        ("kind = ['nest', 'l*']", 'kind is "loop", wanted "nest" or "l*"'),
        ("marked = false, depth = 1", "marked is false; depth is 1"),
        ("work = '>= 100, < 1e3'", "work is 300, wanted >= 100, < 1000.0"),
        ("name = 'work/*'", 'name is "work/loop.1", wanted "work/*"'),
        ("machine.cpus = '>= 2'", "machine.cpus is 4, wanted >= 2"),
        ("'machine.system' = 'Linux'", 'machine.system is "Linux"'),
        ("mix.heap = 4, mix.conversion = 0", "mix.heap is 4; mix.conversion is 0"),
        ("plugin.p.speed = '> 1'", "plugin.p.speed is 2.5, wanted > 1"),
        ("any = [{depth = 7}, {loops = 1}]", "loops is 1"),
        ("not = {depth = 7}", "no exception: depth is 1, wanted 7"),
        ("not = {plugin.p.x = 1}", "no exception: plugin.p.x is not known here, wanted 1"),
    ],
)  # fmt: skip
def test_what_holds_says_what_was_found(text: str, because: str) -> None:
    assert when(text).judge(values(speed=2.5)) == (True, because)
    assert when(text).holds(values(speed=2.5))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("kind = 'nest'", 'kind is "loop", wanted "nest"'),
        ("depth = 1, work = ['< 10', 20]", "work is 300, wanted < 10 or 20"),
        ("any = [{depth = 7}, {marked = true}]",
         "no alternative: depth is 1, wanted 7; marked is false, wanted true"),
        ("not = {kind = 'loop', depth = 1}", 'except: kind is "loop"; depth is 1'),
        ("plugin.p.nothing = 1", "plugin.p.nothing is not known here, wanted 1"),
        ("plugin.p.speed = 'fast'", 'plugin.p.speed is 2.5, wanted "fast"'),
        ("depth = 1, not = {not = {marked = true}}",
         "except: no exception: marked is false, wanted true"),
    ],
)  # fmt: skip
def test_what_does_not_hold_says_what_failed_first(text: str, because: str) -> None:
    assert when(text).judge(values(speed=2.5)) == (False, because)
    assert not when(text).holds(values(speed=2.5))


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("", {True}),
        ("depth = '>= 0'", {True}),
        ("marked = [true, false]", {True}),
        ("kind = '*'", {True}),
        ("name = '*'", {True}),
        ("floats = '<= 1'", {True}),
        ("not = {floats = '> 1'}", {True}),
        ("any = [{depth = 1}, {depth = '>= 0'}]", {True}),
        ("depth = '< 0'", {False}),
        ("floats = '> 1'", {False}),
        ("work = '> 3, < 4'", {False}),
        ("floats = '> 0.3, < 0.4'", {True, False}),
        ("not = {name = '*'}", {False}),
        ("any = [{depth = '< 0'}, {floats = '> 1'}]", {False}),
        ("marked = true, any = [{depth = '< 0'}]", {False}),
        ("marked = true", {True, False}),
        ("name = 'a'", {True, False}),
        ("plugin.p.x = '*'", {True, False}),
        ("not = {marked = true}", {True, False}),
    ],
)
def test_how_a_predicate_can_turn_out_is_known(text: str, outcomes: set[bool]) -> None:
    assert when(text).outcomes(vocabulary()) == outcomes


def test_dotted_and_quoted_facts_are_the_same() -> None:
    assert when("machine.cpus = 2") == when("'machine.cpus' = 2")
    assert when("plugin.p.x = 2") == when("'plugin.p.x' = 2") == when("plugin = {p = {x = 2}}")


def test_tests_of_texts_and_lists_of_texts_are_read_once() -> None:
    """Files of 100,000 rules ask for the same again and again."""
    text = "kind = ['nest', 'loop'], floats = '>= 0.3', name = 'f'"
    first, second = when(text), when(text)
    assert len(first.tests) == 3
    for one, other in zip(first.tests, second.tests, strict=True):
        assert one is other
