# SPDX-License-Identifier: Apache-2.0
"""Python's lists in compiled functions: as arguments, whose changes the caller sees, and local
ones."""

from __future__ import annotations

from typing import Any

import pytest

import ferryvm
from ferryvm.python.fault import UnsupportedError
from ferryvm.testing import check

_BACKENDS = ("threaded", "llvm")


@ferryvm.function
def _extended(xs, n, i):
    for k in range(n):
        xs.append(k)
    xs[0] += 10
    return xs[i]


def test_a_list_that_was_passed_has_the_changes_afterwards() -> None:
    xs = [5]
    assert _extended(xs, 2, 0) == 15
    assert xs == [15, 0, 1]
    empty: list[int] = []
    assert _extended(empty, 2, 1) == 1
    assert empty == [10, 1]


def test_a_list_that_was_passed_has_the_changes_before_an_exception() -> None:
    xs = [5]
    with pytest.raises(IndexError, match="list index out of range"):
        _extended(xs, 2, 9)
    assert xs == [15, 0, 1]


def test_cpython_goes_on_with_the_list_that_was_passed() -> None:
    @ferryvm.function
    def powers(xs, row):
        for k in range(100):
            row[0].append(k)
            xs.append(xs[-1] * 3)
        return xs

    xs, row = [1], [[7]]
    inner = row.pop()
    assert powers(xs, [inner]) is xs
    assert xs == [3**n for n in range(101)]
    assert inner == [7, *range(100)]
    assert "CPython ran powers once: OverflowError" in str(powers.explain())


def test_lists_in_a_list_are_the_ones_that_were_passed() -> None:
    @ferryvm.function
    def turned(rows, other):
        rows[0], rows[-1] = rows[-1], rows[0]
        rows[0][0] = 9
        other.append(1)
        return rows[0]

    one, two = [1, 2], [3]
    rows = [one, one, two]
    assert turned(rows, one) is two
    assert rows[0] is two
    assert rows[1] is one
    assert rows[2] is one
    assert (one, two) == ([1, 2, 1], [9])


@pytest.mark.parametrize(
    "values",
    [
        [(1, 2.5), (3, -0.0)],
        [[1.5], [], [2.5, 3.5]],
        [[(1, True)], [(2, False)]],
        [[[1], []], [[2, 3]]],
        [(1, [2]), (3, [])],
        [([1.0], 2, [3])],
        [True, False],
        [()],
    ],
)
def test_lists_of_all_kinds_come_back_as_they_were(values: Any) -> None:
    def copied(xs):
        ys = xs + xs
        xs.append(xs[0])
        return ys, ys[0], xs

    check(copied, values, backends=[_BACKENDS[len(str(values)) % 2]])


def test_an_int_of_a_list_that_leaves_64_bits_is_computed_by_cpython() -> None:
    total = ferryvm.function(lambda xs: xs[0] + 1)
    assert total([1 << 70]) == (1 << 70) + 1


def test_the_kind_of_a_list_is_found_where_another_function_has_determined_it() -> None:
    def fill(xs, n):
        for k in range(n):
            xs.append(k * k)

    def filled(n):
        xs = []
        fill(xs, n)
        rows = [[] for _ in range(3)]
        for row in rows:
            fill(row, n)
        return xs[-1], len(rows[2]), rows[1][0], xs

    function = ferryvm.function(filled)
    assert function(4) == filled(4)
    assert "CPython" not in str(function.explain())


def test_a_list_in_itself_and_items_of_several_types_are_refused() -> None:
    same = ferryvm.function(lambda xs: xs)
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnsupportedError, match="a list that contains itself"):
        same(endless)
    with pytest.raises(UnsupportedError, match="item 1 of the list is int where"):
        same([[1], 1])
    with pytest.raises(UnsupportedError, match="a list in a map; pass numpy"):
        ferryvm.map(lambda x, ys: ys[x], range(3), ys=[1, 2, 3])


def test_results_are_found_after_lists_that_were_read_by_their_kind() -> None:
    def table(n):
        rows = [[0] * n for _ in range(n)]
        for i in range(n):
            for j in range(n):
                rows[i][j] += i * j
                rows[j][i] -= 1
        return rows, sum(rows[1]), max(max(r) for r in rows), [sum(r) for r in rows]

    check(table, 3, backends=["threaded"])
