# SPDX-License-Identifier: Apache-2.0
"""Two tiers of tests: what runs by default, in minutes, and what runs every night.

    python -m pytest                        the default tier
    python -m pytest -m nightly             the rest
    python -m pytest -m ""                  both

A test that is marked `nightly` is in the second tier. Of a product of parameters the marker
`rotate` keeps so many combinations in the first one that each value of each parameter is there:

    @pytest.mark.rotate("program", "machine")
    @pytest.mark.parametrize("machine", MACHINES)
    @pytest.mark.parametrize("program", PROGRAMS)

With `most=2` it keeps two of these, of which the longest parameter's values are others in each
test.

What takes a millisecond a value is one test of all values: `together("row", INSTRUCTIONS)`.

docs/testing.md says what belongs in which tier.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hypothesis import settings

NIGHTLY = "nightly"

TIMES = "FERRYVM_TESTS_EXAMPLES"
"""The environment variable that multiplies the examples of properties; the nightly job sets it."""


def sample(values: Iterable[Any], default: int) -> list[Any]:
    """Parameters of which the first so many are in the default tier."""
    return [value if number < default else nightly(value) for number, value in enumerate(values)]


def crossed(rows: Iterable[Any], columns: Iterable[Any], always: int) -> list[Any]:
    """Pairs as parameters: the default tier has each row with the first so many columns, and each
    of the other columns with one row, by rotation."""
    rows = list(rows)
    return [
        (row, column)
        if place < always or (place + number) % len(rows) == 0
        else nightly((row, column))
        for number, row in enumerate(rows)
        for place, column in enumerate(columns)
    ]


def examples(number: int) -> settings:
    """Settings of a property: the default tier tries so many examples."""
    from hypothesis import settings  # few tests need it

    return settings(max_examples=number * int(os.environ.get(TIMES, "1")), deadline=None)


def leave_out_constants() -> None:
    """Have properties of the default tier try no constants of modules under test. To find these,
    Hypothesis looks for the files of all modules and parses them, in each process."""
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    if providers is not None and TIMES not in os.environ:
        assert hasattr(providers, "_get_local_constants"), "Hypothesis has another name for it now"
        constants = providers._local_constants
        vars(providers)["_get_local_constants"] = lambda: constants


def together(
    name: str, values: Iterable[Any], label: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One test of many values of a parameter, for tests that take less time than a test costs
    pytest and xdist, some 4 ms. All values are tried, and the message names those that fail."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for value in values:
                try:
                    test(**{name: value}, **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the others are tried
                    failures.append((label(value), error))
            if failures:
                lines = (f"{name} {each}: {error}" for each, error in failures)
                raise AssertionError("\n".join(lines)) from failures[0][1]

        rest = [each for each in signature.parameters.values() if each.name != name]
        assert len(rest) < len(signature.parameters), f"it has no parameter {name!r}"
        run.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined] # what pytest reads
        return run

    return decorate


def nightly(value: Any) -> Any:
    """A parameter, or a tuple of parameters, that is in the second tier."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.nightly)


def mark_rotated(items: Iterable[pytest.Item]) -> None:
    """Mark those of rotated tests `nightly` that are not in the default tier."""
    tests: dict[str, list[tuple[pytest.Item, pytest.Mark]]] = {}
    for item in items:
        for marker in _rotated(item):
            tests.setdefault(item.nodeid.partition("[")[0], []).append((item, marker))
    for test, members in tests.items():
        values: dict[str, list[Any]] = {}
        found = [(item, _indices(item, marker.args, values)) for item, marker in members]
        sizes = {name: len(each) for name, each in values.items()}
        most = members[0][1].kwargs.get("most")
        for item, indices in found:
            if not is_kept(indices, sizes, test, most):
                item.add_marker(NIGHTLY)


def is_kept(
    indices: Mapping[str, int], sizes: Mapping[str, int], test: str, most: int | None = None
) -> bool:
    """True if a combination stays in the default tier: the longest parameter has each of its values
    once, or `most` of them, and the others go along in turn, from another start in each test."""
    longest = max(sizes, key=lambda name: sizes[name])
    turn = indices[longest]
    if most is not None and (turn + zlib.crc32(test.encode())) % sizes[longest] >= most:
        return False
    return all(
        index == (turn + zlib.crc32(f"{test} {name}".encode())) % sizes[name]
        for name, index in indices.items()
        if name != longest
    )


def mark_backends(items: Iterable[pytest.Item], groups: Sequence[Sequence[str]]) -> None:
    """Of a test that runs on all backends of some groups, have the default tier run it on one of
    each group, by rotation: of other parameters each combination has its own turn.

    A test with the marker `all_backends`, or whose parameter `backend` is rotated by another one or
    has not all these values, is as it is. What every backend has to do is the conformance suite's
    to test on each of them."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        is_chosen = item.get_closest_marker("all_backends") is not None or any(
            "backend" in marker.args for marker in item.iter_markers("rotate")
        )
        if not is_chosen and "backend" in getattr(item, "callspec", _NoParameters).params:
            tests.setdefault(name, []).append(item)
    for name, members in tests.items():
        backends = [item.callspec.params["backend"] for item in members]  # type: ignore[attr-defined] # as above
        if not all(isinstance(each, str) for each in backends):
            continue
        if set(backends) != {each for group in groups for each in group}:
            continue
        for item, backend in zip(members, backends, strict=True):
            group = next(each for each in groups if backend in each)
            others = item.callspec.id.replace(backend, "", 1)  # type: ignore[attr-defined] # as above
            turn = zlib.crc32(f"{name} {others} {group[0]}".encode())
            if group.index(backend) != turn % len(group):
                item.add_marker(NIGHTLY)


class _NoParameters:
    params: Mapping[str, Any] = {}


def _rotated(item: pytest.Item) -> Iterator[pytest.Mark]:
    marker = item.get_closest_marker("rotate")
    # What does not run in the default tier, or on a GPU alone, would take the turns of what does.
    is_left_out = any(item.get_closest_marker(name) for name in ("gpu", NIGHTLY))
    if marker is not None and hasattr(item, "callspec") and not is_left_out:
        yield marker


def _indices(
    item: pytest.Item, names: Iterable[str], values: dict[str, list[Any]]
) -> dict[str, int]:
    """Which value of each parameter an item has; `values` are those seen so far, in their order."""
    # A value is one object in all combinations; `callspec.indices` counts the combinations.
    indices = {}
    for name in names:
        value = item.callspec.params[name]  # type: ignore[attr-defined] # a Function's
        seen = values.setdefault(name, [])
        if not any(each is value for each in seen):
            seen.append(value)
        indices[name] = next(number for number, each in enumerate(seen) if each is value)
    return indices
