# SPDX-License-Identifier: Apache-2.0
"""Functions that are arguments have code of their own, and no more of it than they need."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.python.definition.given_function import MOST_GIVEN
from ferryvm.python.fault import UnsupportedError


def _applied() -> Any:
    @ferryvm.function(backend="threaded")
    def applied(f, x):
        return f(x)

    return applied


def _added(a: object, default: object = 0) -> Callable[..., Any]:
    return lambda x, d=default: (x + a, d)


def test_each_function_has_its_own_code() -> None:
    applied = _applied()
    for f in (math.sqrt, math.exp, math.sqrt, float, lambda x: x + 1, lambda x: x + 2, abs):
        assert applied(f, 4.0) == f(4.0)
    assert len(applied.explain().versions) == 6


def test_functions_that_are_alike_share_code() -> None:
    applied = _applied()
    for _ in range(3):
        for a, default in ((1, 0), (2, 0), (1, 1), (1.0, 0), (True, 0)):
            found = applied(_added(a, default), 1)
            assert repr(found) == repr(_added(a, default)(1))
    assert len(applied.explain().versions) == 5


def test_a_variable_of_a_function_that_changes_is_seen() -> None:
    applied, a = _applied(), 1
    f = lambda x: x + a
    assert applied(f, 1) == 2
    a = 5
    assert applied(f, 1) == 6


def test_code_for_functions_is_bounded() -> None:
    applied = _applied()
    for a in range(MOST_GIVEN + 3):
        assert applied(_added(a), 1) == (1 + a, 0)
    assert len(applied.explain().versions) == MOST_GIVEN
    assert applied(_added(0), 1) == (1, 0)


def _returned(f, x):
    return f


def _compared(f, x):
    return f is math.sin


def _assigned(f, x):
    f = f or x
    return f(x)


def _printed(f, x):
    print(f)
    return x


@pytest.mark.parametrize("function", [_returned, _compared, _assigned, _printed])
def test_uses_that_tell_functions_apart_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="'f' is a function that is an argument"):
        ferryvm.function(function)(lambda x: x, 1)


def test_a_function_of_any_number_of_arguments_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="any number of arguments"):
        _applied()(lambda *xs: xs[0], 1)


def test_other_callable_objects_are_refused() -> None:
    for value in ([].append, _applied().explain, type):
        with pytest.raises(UnsupportedError, match=r"argument f: a .* is not supported"):
            _applied()(value, 1)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
def test_functions_of_operator_are_operators(name: str) -> None:
    function = getattr(operator, name)
    compiled = ferryvm.function(lambda a, b: function(a, b))
    for pair in ((7, 3), (-7, 2.5), (2**62, 4), (1 + 2j, 0.5j), (True, 2)):
        assert repr(compiled(*pair)) == repr(function(*pair)), pair


@pytest.mark.parametrize("name", ["floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift"])
def test_functions_of_operator_are_those_of_elements(name: str) -> None:
    function, xs = getattr(operator, name), np.array([91, -5, 3])
    assert ferryvm.map(function, xs, 2).tolist() == function(xs, 2).tolist()
    assert ferryvm.reduce(function, [91, 3]) == function(91, 3)
