# SPDX-License-Identifier: Apache-2.0
"""Compiled functions that are called by built-in functions from the start, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ferryvm


def natively(python: Callable[..., Any], *arguments: Any) -> Any:
    """A compiled function that is called by a built-in function, where the arguments have the types
    of these."""
    function: Any = ferryvm.function(python)
    function(*arguments)
    types = tuple(map(type, arguments))
    assert function._direct == types
    function._call_natively(types, function._plain[types])
    assert is_native(function), str(function.explain())
    return function


def is_native(function: Any) -> bool:
    """True if a built-in function calls it."""
    return isinstance(type(function).__call__, type(len))


def outcome(function: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, str]:
    """The type and the text of the result, or of the exception."""
    try:
        found: object = function(*arguments, **named)
    except Exception as error:  # noqa: BLE001  # it is compared
        found = error
    return type(found).__name__, repr(found)
