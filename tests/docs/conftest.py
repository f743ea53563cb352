# SPDX-License-Identifier: Apache-2.0
"""Syntax trees are there for these tests only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .source import nodes, parsed


@pytest.fixture(scope="package", autouse=True)
def _syntax_trees() -> Iterator[None]:
    """Forget them at the end: a collection of garbage would look at a million objects each time."""
    yield
    parsed.cache_clear()
    nodes.cache_clear()
