# SPDX-License-Identifier: Apache-2.0
"""Which tests are in the default tier, and what fails a run whose tests take too long."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from .conftest import BACKENDS, GROUPS
from .tier import NIGHTLY, is_kept, mark_backends, nightly, sample, together

pytest_plugins = ("pytester",)

FOLDER = Path(__file__).parent
CONFTEST = """
import sys
import pytest
sys.path.append({root!r})
from tests.conftest import (
    pytest_runtest_protocol,
    pytest_addoption, pytest_runtest_logreport, pytest_sessionfinish, pytest_terminal_summary,
)
from tests.tier import mark_rotated

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    mark_rotated(items)
"""
OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-W",
    "ignore::pytest.PytestUnknownMarkWarning",
)


@pytest.mark.parametrize("sizes", [(3, 4), (4, 4), (5, 2), (1, 7), (2, 3, 6)])
def test_a_rotation_has_each_value_of_each_parameter_and_the_longest_ones_once(
    sizes: tuple[int, ...],
) -> None:
    names = [f"p{number}" for number in range(len(sizes))]
    kept = [
        indices
        for indices in itertools.product(*map(range, sizes))
        if is_kept(
            dict(zip(names, indices, strict=True)), dict(zip(names, sizes, strict=True)), "t"
        )
    ]
    assert len(kept) == max(sizes)
    for place, size in enumerate(sizes):
        assert {indices[place] for indices in kept} == set(range(size))


def test_a_rotation_may_have_some_values_that_are_others_in_each_test() -> None:
    sizes = {"machine": 4, "n": 2}

    def kept(test: str) -> set[int]:
        return {
            m for m in range(4) for n in range(2) if is_kept({"machine": m, "n": n}, sizes, test, 2)
        }

    assert {len(kept(f"test_{number}")) for number in range(30)} == {2}
    assert set().union(*(kept(f"test_{number}") for number in range(30))) == {0, 1, 2, 3}


def test_rotations_of_two_tests_begin_elsewhere() -> None:
    sizes = {"a": 8, "b": 7}

    def first(test: str) -> int:
        return next(b for b in range(7) if is_kept({"a": 0, "b": b}, sizes, test))

    assert len({first(f"test_{number}") for number in range(30)}) > 3


class Item:
    """What `mark_backends` takes of a test."""

    def __init__(self, name: str, value: int, backend: object) -> None:
        self.nodeid = f"{name}[{value}-{backend}]"
        self.callspec = self
        self.id, self.params = f"{value}-{backend}", {"value": value, "backend": backend}
        self.is_default = True

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return []

    def get_closest_marker(self, name: str) -> bool | None:
        assert name == "all_backends"
        return True if self.nodeid.startswith("all") else None

    def add_marker(self, name: str) -> None:
        assert name == NIGHTLY
        self.is_default = False


def chosen(name: str, backends: Sequence[object]) -> dict[int, list[object]]:
    """The backends of a test's values in the default tier."""
    items = [Item(name, value, backend) for value in range(9) for backend in backends]
    mark_backends(cast("list[pytest.Item]", items), GROUPS)
    kept = [one.params for one in items if one.is_default]
    return {n: [each["backend"] for each in kept if each["value"] == n] for n in range(9)}


def test_a_test_of_all_backends_runs_on_one_of_each_group() -> None:
    found = chosen("a", BACKENDS)
    for group in GROUPS:
        assert all(len({*each} & {*group}) == 1 for each in found.values())
    assert {backend for each in found.values() for backend in each} == {*BACKENDS}


@pytest.mark.parametrize(
    "backends", [BACKENDS[:4], [object() for _ in BACKENDS]], ids=["names", "objects"]
)
def test_a_test_of_other_backends_runs_on_all_of_them(backends: Sequence[object]) -> None:
    assert chosen("a", backends) == {n: [*backends] for n in range(9)}


def test_a_test_that_says_so_runs_on_all_backends() -> None:
    assert chosen("all", BACKENDS) == {n: [*BACKENDS] for n in range(9)}


def test_a_sample_keeps_all_values_and_marks_those_after_the_first() -> None:
    found = sample("abc", 2)
    assert found[:2] == ["a", "b"]
    assert found[2] == nightly("c")
    assert [mark.name for mark in found[2].marks] == ["nightly"]
    assert nightly((1, 2)).values == (1, 2)


def test_a_test_of_values_together_tries_all_and_names_those_that_fail() -> None:
    tried = []

    @together("number", range(4), label=lambda number: f"no. {number}")
    def odd(number: int, extra: str) -> None:
        tried.append(number)
        if number == 2:
            pytest.fail(extra)
        assert number % 2, "even"

    with pytest.raises(AssertionError) as caught:
        odd(extra="two")
    assert tried == [0, 1, 2, 3]
    first, *_, last = str(caught.value).splitlines()
    assert first.startswith("number no. 0: even")
    assert last == "number no. 2: two"
    assert list(inspect.signature(odd).parameters) == ["extra"]


def run(pytester: pytest.Pytester, text: str, *words: str) -> pytest.RunResult:
    """Run tests in a process of their own, with the hooks of these tests."""
    pytester.makeconftest(CONFTEST.format(root=str(FOLDER.parent)))
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess(*OPTIONS, *words)


def test_rotated_tests_are_in_one_of_the_tiers_each(pytester: pytest.Pytester) -> None:
    text = """
import pytest
@pytest.mark.rotate("one", "two")
@pytest.mark.parametrize("one", range(3))
@pytest.mark.parametrize("two", range(2))
@pytest.mark.parametrize("three", range(2))
def test_all(one, two, three):
    pass
"""
    run(pytester, text, "-m", "not nightly").assert_outcomes(passed=6, deselected=6)
    run(pytester, text, "-m", "nightly").assert_outcomes(passed=6, deselected=6)


def test_a_test_that_takes_too_long_fails_the_run_and_is_named(pytester: pytest.Pytester) -> None:
    text = """
import time
def test_quick():
    pass
def test_waiting():
    time.sleep(0.3)
def test_slow():
    while time.process_time() < BEGAN + 0.3:
        pass
BEGAN = time.process_time()
"""
    done = run(pytester, text, "--longest", "0.2")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*longer than 0.2 s, so not for this tier*", "*0.3 s  *::test_slow"])
    assert "::test_quick" not in done.stdout.str()
    assert "::test_waiting" not in done.stdout.str()
    assert run(pytester, text, "--longest", "60").ret == pytest.ExitCode.OK
