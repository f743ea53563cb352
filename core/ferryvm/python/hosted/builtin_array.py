# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy arrays that are Python functions of the subset, see `builtin_list`.

Those of several dimensions call themselves: an element of an array of two is a row, which is stored
as `stored` does it. An exception is CPython's to raise, so none comes behind a store.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def filled(view: Any, value: Any) -> None:
    """`view[:] = value`, of a number that all elements of the type hold."""
    for at in range(len(view)):
        view[at] = value


def filled_if_valid(view: Any, value: Any) -> None:
    """`view[:] = value`, of a number or an array with fewer dimensions, which NumPy looks at even
    where it stores nothing."""
    if len(view) == 0 and not fits_anywhere(value):
        raise ValueError("no element")
    for at in range(len(view)):
        view[at] = value


def fits_anywhere(value: Any) -> Any:
    """True for a number that elements of each type hold."""
    if isinstance(value, np.ndarray):
        return False
    if type(value) is int:
        return 0 <= value <= 127
    return True


def stored(view: Any, values: Any, is_same: Any) -> None:
    """`view[:] = values`, of as many items. `is_same`: they are parts of one array."""
    if len(view) != len(values) or len(view) == 0:
        raise ValueError(f"could not broadcast {len(values)}")
    if is_same:
        others = copied(values)
        for at in range(len(view)):
            view[at] = others[at]
    else:
        for at in range(len(view)):
            view[at] = values[at]


def stored_items(view: Any, values: Any) -> None:
    """`view[:] = values`, of a list or a tuple."""
    if len(view) != len(values) or len(view) == 0:
        raise ValueError(f"could not broadcast {len(values)}")
    for at in range(len(view)):
        view[at] = values[at]


def copied(values: Any) -> Any:
    """`values.copy()`, of an array."""
    made = np.empty_like(values)
    for at in range(len(values)):
        made[at] = values[at]
    return made


def is_float(value: Any) -> Any:
    """True for a number of 64 bits that is no integer."""
    return type(value) is float or type(value) is np.float64


def has_64_bits(value: Any) -> Any:
    """True for numbers of which NumPy makes arrays of float64 or int64."""
    return is_float(value) or type(value) is int or type(value) is np.int64


def identity(n: Any) -> Any:
    """`numpy.eye(n)`."""
    made = np.zeros((n, n))
    for at in range(n):
        made[at, at] = 1.0
    return made


def counted(stop: Any) -> Any:
    """`numpy.arange(stop)`."""
    return stepped(0, stop, 1)


def counted_from(start: Any, stop: Any) -> Any:
    """`numpy.arange(start, stop)`."""
    return stepped(start, stop, 1)


def stepped(start: Any, stop: Any, step: Any) -> Any:
    """`numpy.arange(start, stop, step)`: as in NumPy, later elements follow from the first two."""
    if step == 0 or not (has_64_bits(start) and has_64_bits(stop) and has_64_bits(step)):
        raise ValueError(f"{step}")
    size = max(math.ceil((stop - start) / step), 0)
    if (
        (type(start) is float or type(start) is np.float64)
        or (type(stop) is float or type(stop) is np.float64)
        or (type(step) is float or type(step) is np.float64)
    ):  # kinds determine this here, not the result of a call
        made = np.empty(size, np.float64)
        first, second = float(start), float(start + step)
        for at in range(size):
            made[at] = first + at * (second - first)
        if size > 1:
            made[1] = second
        return made
    whole = np.empty(size, np.int64)
    for at in range(size):
        whole[at] = start + at * step
    return whole


def spaced(start: Any, stop: Any) -> Any:
    """`numpy.linspace(start, stop)`."""
    return spaced_by(start, stop, 50)


def spaced_by(start: Any, stop: Any, num: Any) -> Any:
    """`numpy.linspace(start, stop, num)`."""
    size = num
    if size < 0 or not (has_64_bits(start) and has_64_bits(stop)):
        raise ValueError(f"{size}")
    first, last = start * 1.0, stop * 1.0
    made = np.empty(size)
    step = (last - first) / max(size - 1, 1)
    if size > 1 and step == 0.0 and last != first:
        raise ValueError(f"{size}")  # NumPy divides in another order
    for at in range(size):
        made[at] = at * step + first
    if size > 1:
        made[size - 1] = last
    return made


def array_of(values: Any) -> Any:
    """`numpy.array(values)`, of an array, or a list or tuple of numbers of one type."""
    if isinstance(values, np.ndarray):
        return copied(values)
    first = values[0]
    if type(first) is float or type(first) is np.float64:
        return array_as(values, np.float64)
    if type(first) is int or type(first) is np.int64:
        return array_as(values, np.int64)
    if type(first) is bool:
        return array_as(values, np.bool_)
    return rows_of(values)


def array_as(values: Any, dtype: Any) -> Any:
    """`numpy.array(values, dtype)`, of a list or a tuple of numbers."""
    made = np.empty(len(values), dtype)
    for at in range(len(values)):
        made[at] = values[at]
    return made


def rows_of(rows: Any) -> Any:
    """`numpy.array(rows)`, of lists of numbers of one type."""
    for row in rows:
        if len(row) != len(rows[0]):
            raise ValueError(f"{len(row)}")
    first = rows[0][0]
    if type(first) is float:
        return rows_as(rows, np.float64)
    if type(first) is int:
        return rows_as(rows, np.int64)
    raise ValueError("a type")


def rows_as(rows: Any, dtype: Any) -> Any:
    """`numpy.array(rows, dtype)`, of lists of numbers that are equally long."""
    made = np.empty((len(rows), len(rows[0])), dtype)
    for at in range(len(rows)):
        row = rows[at]
        for number in range(len(row)):
            made[at, number] = row[number]
    return made


HOSTED: dict[object, dict[int, Any]] = {
    np.eye: {1: identity},
    np.identity: {1: identity},
    np.arange: {1: counted, 2: counted_from, 3: stepped},
    np.linspace: {2: spaced, 3: spaced_by},
    np.copy: {1: copied},
    np.array: {1: array_of, 2: array_as},
}
"""The functions by the number of arguments of calls of NumPy's."""
ORIGINAL: dict[object, Any] = {
    identity: np.eye,
    counted: np.arange,
    counted_from: np.arange,
    stepped: np.arange,
    spaced: np.linspace,
    spaced_by: np.linspace,
    copied: np.copy,
    array_of: np.array,
    array_as: np.array,
}
