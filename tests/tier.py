# SPDX-License-Identifier: Apache-2.0
"""Two tiers of tests: what runs by default, in minutes, and what runs every night.

    python -m pytest                        the default tier
    python -m pytest -m nightly             the rest
    python -m pytest -m ""                  both

A test that is marked `nightly` is in the second tier. Of a product of parameters the marker `rotate`
keeps so many combinations in the first one that each value of each parameter is there:

    @pytest.mark.rotate("program", "machine")
    @pytest.mark.parametrize("machine", MACHINES)
    @pytest.mark.parametrize("program", PROGRAMS)

docs/testing.md says what belongs in which tier.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

NIGHTLY = "nightly"


def sample(values: Iterable[Any], default: int) -> list[Any]:
    """Parameters of which the first so many are in the default tier."""
    return [value if number < default else nightly(value) for number, value in enumerate(values)]


def nightly(value: Any) -> Any:
    """A parameter, or a tuple of parameters, that is in the second tier."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.nightly)


def mark_rotated(items: Iterable[pytest.Item]) -> None:
    """Mark those of rotated tests `nightly` that are not in the default tier."""
    found = [(item, names) for item in items for names in _rotated(item)]
    lengths: dict[tuple[str, str], int] = {}
    for item, names in found:
        for name, index in _indices(item, names).items():
            key = (_test(item), name)
            lengths[key] = max(lengths.get(key, 0), index + 1)
    for item, names in found:
        sizes = {name: lengths[_test(item), name] for name in names}
        if not is_kept(_indices(item, names), sizes, _test(item)):
            item.add_marker(NIGHTLY)


def is_kept(indices: Mapping[str, int], sizes: Mapping[str, int], test: str) -> bool:
    """Whether a combination stays in the default tier: the longest parameter has each of its values
    once, and the others go along in turn, from another start in each test."""
    longest = max(sizes, key=lambda name: sizes[name])
    turn = indices[longest]
    return all(
        index == (turn + zlib.crc32(f"{test} {name}".encode())) % sizes[name]
        for name, index in indices.items()
        if name != longest
    )


def _rotated(item: pytest.Item) -> Iterator[tuple[str, ...]]:
    marker = item.get_closest_marker("rotate")
    # What is for a GPU would take the turns of what runs everywhere.
    if marker is not None and hasattr(item, "callspec") and not item.get_closest_marker("gpu"):
        yield tuple(marker.args)


def _indices(item: pytest.Item, names: Iterable[str]) -> dict[str, int]:
    indices: Mapping[str, int] = item.callspec.indices  # type: ignore[attr-defined] # a Function's
    return {name: indices[name] for name in names}


def _test(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
