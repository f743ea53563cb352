# SPDX-License-Identifier: Apache-2.0
"""Calls of a Python function with numbers of the types for which it was compiled first.

    f(a, b) ──> type(a) is float and type(b) is float ──> the compiled function
                                  │ else
                                  └─> PythonFunction.__call__, which finds the version

The method is written out for the number of arguments and their types: it makes no tuple of types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

_MISSING = object()

Left = Callable[[Any, Any, Any, tuple[Any, ...]], Any]
"""The end of a call that raised an error: the function, the version, the error, the arguments."""


def method(
    types: tuple[type, ...],
    python: FunctionType,
    version: object,
    compiled: Callable[..., Any],
    left: Left,
    otherwise: Callable[..., Any],
) -> Callable[..., Any]:
    """The method that calls `compiled`, the function of a version, with arguments of exactly these
    types, and `otherwise` with all others, and where the Python function has other code. `left`:
    called where `compiled` raises."""
    made: Callable[..., Any] = _maker(tuple(each.__name__ for each in types))(
        python, python.__code__, version, compiled, left, otherwise, _MISSING, *types
    )
    return made


@functools.cache
def _maker(types: tuple[str, ...]) -> Callable[..., Any]:
    numbers = range(len(types))
    given = ", ".join(f"x{n}" for n in numbers)
    taken = "".join(f"x{n}=missing, " for n in numbers)
    tests = " and ".join([f"type(x{n}) is t{n}" for n in numbers])
    text = f"""
def make(python, code, version, compiled, left, otherwise, missing, {", ".join(f"t{n}" for n in numbers)}):
    def __call__(self, {taken}/, *rest, **named):
        if {tests} and python.__code__ is code and not rest and not named:
            try:
                return compiled({given})
            except BaseException as raised:
                found = raised
            return left(self, version, found, ({given},))
        values = [each for each in ({given},) if each is not missing]
        return otherwise(self, *values, *rest, **named)
    return __call__
"""
    scope: dict[str, Any] = {}
    exec(compile(text, "<call>", "exec"), scope)  # noqa: S102  # made of numbers
    found: Callable[..., Any] = scope["make"]
    return found
