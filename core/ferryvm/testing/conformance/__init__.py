# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what every backend must do, as tests that its author runs.

A test file of the author's holds this, and nothing else is needed:

    from ferryvm.testing.conformance import *

    BACKEND = "mine"

    cases/* ──read──> Case ──manner, on the reference──> Script ──perform, on the backend──> Outcome
                                                           └──> JSON, for runners in other languages

docs/conformance.md says what else such a file can state. The pytest plugin of ferryvm makes one
test of each case and manner; `ferry conformance` runs the same without pytest.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["test_conformance"]


def test_conformance(ferry_case: Callable[[], None]) -> None:
    """The backend behaves in one case as the reference does."""
    ferry_case()
