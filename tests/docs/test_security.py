# SPDX-License-Identifier: Apache-2.0
"""Each promise of docs/security.md has tests, and they exist."""

from __future__ import annotations

import functools
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
NAME = re.compile(r"`(test_\w+)`")


def promises() -> list[str]:
    """Rows of the tables whose second column has tests."""
    tables = PAGE.read_text(encoding="utf-8").split("| promise | test |\n|---|---|\n")[1:]
    return [row for table in tables for row in table.split("\n\n")[0].splitlines()]


@functools.cache
def _known() -> list[str]:
    """Names of all tests, those of classes included."""
    return [
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_every_promise_names_a_test() -> None:
    assert len(promises()) > 25
    assert [row for row in promises() if not NAME.search(row.rpartition(" | ")[2])] == []


def test_every_test_that_is_named_exists_once() -> None:
    named = NAME.findall(PAGE.read_text(encoding="utf-8"))
    assert {name: _known().count(name) for name in named if _known().count(name) != 1} == {}
