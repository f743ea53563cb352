# SPDX-License-Identifier: Apache-2.0
"""How a Python function becomes a case: with the arguments of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
"""A function, and the arguments of a call."""


def case(*calls: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function with the arguments of some calls."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.extend((function, arguments) for arguments in calls)
        return function

    return add
