# SPDX-License-Identifier: Apache-2.0
"""Compiled Python functions do what CPython does."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from ferryvm.testing import check

from .corpus import CASES

_Calls = tuple[Callable[..., Any], list[tuple[Any, ...]]]

FUNCTIONS: list[_Calls] = [
    (function, [arguments for _, arguments in calls])
    for function, calls in itertools.groupby(CASES, lambda case: case[0])
]
"""Each function, and the arguments of its calls."""

_BACKENDS = ("threaded", "switch", "llvm")

_SHARE = 5
"""Of how many functions the default tier has one, on one of these: neighbours are of one kind."""

_AGREED = ArithmeticError, ValueError, LookupError, NameError, TypeError
"""Exceptions on which CPython and the backends may agree."""


def _checked(calls: _Calls, backend: str) -> None:
    function, all_arguments = calls
    agreed = (*_AGREED, AssertionError) if function.__name__ == "asserted" else _AGREED
    for arguments in all_arguments:
        with contextlib.suppress(*agreed):
            check(function, *arguments, backends=[backend])


@pytest.mark.parametrize(
    ("number", "calls"),
    [*enumerate(FUNCTIONS[::_SHARE])],
    ids=[calls[0].__name__ for calls in FUNCTIONS[::_SHARE]],
)
def test_functions_are_those_of_cpython(number: int, calls: _Calls) -> None:
    _checked(calls, _BACKENDS[number % len(_BACKENDS)])


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["reference", *_BACKENDS, "opencl", "vliw"])
@pytest.mark.parametrize("part", range(10))
def test_functions_are_those_of_cpython_on_every_backend(part: int, backend: str) -> None:
    for calls in FUNCTIONS[part::10]:
        _checked(calls, backend)
