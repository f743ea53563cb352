# SPDX-License-Identifier: Apache-2.0
"""Free names of Python functions that change are arguments of the code; functions of one code share
it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import ferryvm

XS = np.arange(5.0)
FACTOR = 1


def versions(function: Any) -> list[str]:
    return [each.signature for each in ferryvm.explain(function).versions]


def test_a_lambda_that_is_made_again_is_not_compiled_again() -> None:
    found = []
    for k in (2.0, 2.0, 0.5, -0.0, float("nan"), 7.0):
        f = lambda x: x * k  # noqa: B023  # a lambda in a loop is the point
        assert np.array_equal(ferryvm.map(f, XS), XS * k, equal_nan=True)
        found.append(f)
    assert versions(found[0]) == [
        "<lambda>(x: numpy.float64) -> numpy.float64",
        "<lambda>(x: numpy.float64, k: float) -> numpy.float64",
    ]
    assert str(ferryvm.explain(f)) == str(ferryvm.explain(found[0]))
    # a number of another type is another version
    k = 3
    assert ferryvm.map(lambda x: x * k, XS).tolist() == (XS * 3).tolist()


def test_functions_of_one_code_have_their_own_values() -> None:
    def made(k: Any, ys: Any) -> Any:
        def f(x, d=k):
            return [x * k + ys[0] + d][0]

        return f

    for k in (1.0, 2.0, 3.0, 4):
        f = made(k, XS + k)
        assert ferryvm.map(f, XS).tolist() == [f(x) for x in XS]
    f, g = made(5.0, XS), made(6.0, XS + 1)
    for each in (f, g, f, g):
        assert ferryvm.map(each, XS).tolist() == [each(x) for x in XS]


def test_a_global_that_changes_is_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    @ferryvm.function
    def inside(x):
        scaled = lambda y: y * FACTOR  # an inner function that uses it, too
        return scaled(x) + FACTOR

    for factor in (1, 2, 3, 1 << 40):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert inside(4) == inside.__wrapped__(4)
        assert ferryvm.map(inside, np.array([4, 5])).tolist() == [5 * factor, 6 * factor]
    assert len(versions(inside)) == 4
    monkeypatch.setitem(globals(), "FACTOR", 1 << 61)
    assert inside(4) == 5 << 61  # CPython goes on with it


def test_a_name_remains_a_constant_where_code_needs_one() -> None:
    def places(n: int) -> Any:
        return lambda i: (4, 5, 6)[n] + i

    def kinds(n: int) -> Any:
        return lambda i: i if n < 2 else i + 0.5

    for n in (0, 1, 2, 1):
        assert ferryvm.map(places(n), range(3)).tolist() == [4 + n, 5 + n, 6 + n]
    for n in (0, 1, 2, 1):
        found = ferryvm.map(kinds(n), range(3))
        assert found.tolist() == [kinds(n)(i) for i in range(3)]


def test_a_function_that_calls_itself_has_its_own_defaults() -> None:
    def made(step: int) -> Any:
        def down(n, k=step):
            return k if n <= 0 else down(n - 1) + k

        return down

    for step in (1, 2, 1):
        assert ferryvm.map(made(step), range(4)).tolist() == [step * (n + 1) for n in range(4)]


def test_reductions_find_the_version_of_the_same_code() -> None:
    for k in (0, 1, 0):
        assert ferryvm.reduce(lambda a, b: a + b + k, range(4)) == 6 + 3 * k  # noqa: B023
    *_, last = [lambda a, b: a + b for _ in range(3)]
    assert ferryvm.scan(last, np.arange(3)).tolist() == [0, 1, 3]


def test_functions_that_were_mapped_are_not_retained() -> None:
    functions = []
    for k in range(3):
        f = lambda x: x + k  # noqa: B023  # a lambda in a loop is the point
        ferryvm.map(f, XS)
        functions.append(weakref.ref(f))
    del f
    gc.collect()
    assert functions[2]() is None  # the first ones stand for all
