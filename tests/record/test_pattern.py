# SPDX-License-Identifier: Apache-2.0
"""Patterns that are compiled late match as those of `re` do."""

from __future__ import annotations

import re

import pytest

from ferryvm import pattern


@pytest.mark.parametrize("method", ["match", "fullmatch"])
@pytest.mark.parametrize("text", ["a1", "a1b", "1a", "", "A2"])
def test_it_matches_as_one_that_was_compiled(method: str, text: str) -> None:
    late, compiled = (make(r"(a)\d", re.IGNORECASE) for make in (pattern.lazy, re.compile))
    for _ in range(2):
        found, expected = getattr(late, method)(text), getattr(compiled, method)(text)
        assert (found and found.groups()) == (expected and expected.groups())


def test_it_finds_bytes() -> None:
    late = pattern.lazy(rb"\x48(.)", re.DOTALL)
    assert [match[1] for match in late.finditer(b"\x48\n\x48a")] == [b"\n", b"a"]
    assert late.pattern == rb"\x48(.)"


def test_it_is_compiled_at_its_first_use() -> None:
    late = pattern.lazy("(")
    with pytest.raises(re.error):
        late.match("")
