# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans by Python functions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import tracemalloc
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError


def plus(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
def test_results_have_the_dtype_of_the_elements(dtype: str) -> None:
    given = (np.arange(3000) % 7).astype(dtype)
    found = ferryvm.reduce(plus, given)
    with np.errstate(over="ignore"):
        wanted = functools.reduce(plus, given)
        up_to = [*itertools.accumulate(given, plus)]
    assert type(found) is type(wanted)
    assert found == wanted
    sums = ferryvm.scan(plus, given)
    assert sums.dtype == given.dtype
    assert sums.tolist() == up_to


def test_elements_may_be_bools() -> None:
    found = ferryvm.scan(lambda a, b: a or b, np.array([False, True, False]))
    assert found.dtype == bool
    assert found.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "numbers",
    [
        range(1),
        range(10, -3000, -3),
        range(1025),
        range(2**63 - 5, 2**63),
        range(-(2**63), 2**63 - 2**55, 2**55),
        range(7, 8, 2**80),
    ],
)
def test_numbers_of_ranges_are_computed_where_they_are_used(numbers: range) -> None:
    def mixed(a, b):
        return max(a, b) ^ 1

    for initial in (None, 3):
        given = () if initial is None else (initial,)
        found = ferryvm.reduce(operator.xor, numbers, initial)
        assert (type(found), found) == (int, functools.reduce(operator.xor, numbers, *given))
    out = np.zeros(len(numbers), np.int64)
    assert ferryvm.scan(max, numbers, out=out) is out
    assert out.tolist() == [*itertools.accumulate(numbers, max)]
    assert ferryvm.scan(operator.or_, numbers).tolist() == [
        *itertools.accumulate(numbers, operator.or_)
    ]


def test_reductions_and_scans_make_large_arrays_of_blocks() -> None:
    """The function alone has no arrays, so its program has objects only from then on."""
    count = (1 << 22) + 1
    tracemalloc.start()
    assert ferryvm.reduce(operator.add, range(count)) == count * (count - 1) // 2
    assert tracemalloc.get_traced_memory()[1] < 8 * count
    tracemalloc.stop()
    found = ferryvm.scan(operator.or_, range((1 << 20) + 1))
    assert found[-1] == (1 << 21) - 1


def test_ranges_have_python_s_integers_of_any_size() -> None:
    assert ferryvm.reduce(plus, range(5, 1, -2), 1) == 9
    assert ferryvm.scan(plus, range(5, 1, -2)).tolist() == [5, 8]
    found = ferryvm.reduce(lambda a, b: a * b, range(1, 30))
    assert found == math.factorial(29)


def test_lists_have_python_s_numbers() -> None:
    assert repr(ferryvm.reduce(plus, [1.5, 2.0])) == "3.5"
    assert ferryvm.reduce(plus, [1 << 62, 1 << 62]) == 1 << 63
    assert ferryvm.reduce(lambda a, b: a or b, [False, True]) is True
    assert ferryvm.scan(plus, [1, 2, 3]).tolist() == [1, 3, 6]
    with pytest.raises(CallError, match="reduce of plus: item 1 is a float where those before"):
        ferryvm.reduce(plus, [1, 2.0])


def test_shapes_and_arrays_for_results_are_kept() -> None:
    xs = np.arange(6).reshape(2, 3)
    assert ferryvm.reduce(plus, xs, 100) == 115
    assert ferryvm.scan(plus, xs, out=xs) is xs
    assert xs.tolist() == [[0, 1, 3], [6, 10, 15]]
    with pytest.raises(CallError, match="out is float64; an array of int64 is needed, as numpy"):
        ferryvm.scan(plus, xs, out=np.zeros((2, 3)))
    with pytest.raises(CallError, match=r"out has the shape \(6,\), the array has \(2, 3\)"):
        ferryvm.scan(plus, xs, out=np.zeros(6, int))


def test_scans_in_place_start_again_from_the_elements() -> None:
    def product_up_to(a: Any, b: Any) -> Any:
        return np.int64(min(int(a) * int(b), 1000))

    xs = np.arange(1, 3 * 256)
    xs[-2:] = 1 << 62
    wanted = [*itertools.accumulate(xs, product_up_to)]
    assert ferryvm.scan(product_up_to, xs, out=xs).tolist() == wanted


@pytest.mark.parametrize("shift", [1, -1])
def test_scans_into_a_part_of_the_array_take_the_elements_as_they_were(shift: int) -> None:
    def mixed(a: Any, b: Any) -> Any:
        return np.int16((int(a) * 2**61 * int(b) + int(b)) % 1000)

    xs = np.arange(1, 13, dtype=np.int16)
    given, out = (xs[:-1], xs[1:]) if shift == 1 else (xs[1:], xs[:-1])
    wanted = [*itertools.accumulate(given.copy(), mixed)]
    assert ferryvm.scan(mixed, given, out=out).tolist() == wanted


def test_scanned_values_of_another_type_are_refused_with_their_item() -> None:
    with pytest.raises(CallError, match=r"result 1 is 0\.5, where those before are int64"):
        ferryvm.scan(lambda a, b: a**b, [2, -1, 3])


def test_values_that_are_no_elements_are_refused() -> None:
    def mean(a, b):
        return (a + b) / 2

    def pair(a, b):
        return a, b

    ints = np.arange(4)
    with pytest.raises(
        CallError, match=r"values are numpy.float64 where .* pass a.astype\(numpy.float64\)"
    ):
        ferryvm.reduce(mean, ints)
    with pytest.raises(CallError, match="scan of pair: the function must return a number"):
        ferryvm.scan(pair, ints)
    with pytest.raises(CallError, match=r"initial is 1\.5; a value for int64 is needed"):
        ferryvm.reduce(plus, ints, 1.5)
    with pytest.raises(CallError, match="initial is 300; a value for uint8 is needed"):
        ferryvm.reduce(plus, ints.astype(np.uint8), 300)
    with pytest.raises(CallError, match="no elements; an initial value is needed"):
        ferryvm.reduce(plus, ints[:0])
    with pytest.raises(CallError, match="a function of two parameters is needed, found 1"):
        ferryvm.reduce(lambda a: abs(a), ints)
    assert ferryvm.reduce(plus, ints[:0], 7) == 7


def test_exceptions_are_those_of_the_function() -> None:
    def strict(a, b):
        if b < 0:
            raise ValueError("negative")
        return a + b

    xs = np.array([1.0, -2.0])
    for operation in (ferryvm.reduce, ferryvm.scan):
        with pytest.raises(ValueError, match="negative"):
            operation(strict, xs)
