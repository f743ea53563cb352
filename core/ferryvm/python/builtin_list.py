# SPDX-License-Identifier: Apache-2.0
"""Functions of lists that are Python functions of the subset: they are compiled for the kinds of lists.

Where one stops, CPython executes the statement again, so none stops after it has changed a list. An
exception with a computed message is CPython's to raise: it knows if two objects are the same one,
which `==` does not say of NaNs, and has the values for the message.
"""

from __future__ import annotations

from typing import Any

# ruff: noqa: PLR0124  # it is code of the subset


def clipped(index: Any, length: Any) -> Any:
    """An index of `insert` or of a slice as a number from 0 to the length."""
    if index < 0:
        index = index + length
        if index < 0:
            return 0
    if index > length:
        return length
    return index


def position(values: Any, wanted: Any) -> Any:
    """The index of the first item that equals a value; -1 if there is none."""
    for at, value in enumerate(values):
        if value == wanted:
            return at
        if value != value and wanted != wanted:
            raise ValueError(f"a NaN {at}")
    return -1


def index(values: Any, wanted: Any) -> Any:
    """`list.index`."""
    at = position(values, wanted)
    if at < 0:
        raise ValueError(f"{at} is not in list")
    return at


def index_from(values: Any, wanted: Any, start: Any) -> Any:
    """`list.index` with a start."""
    return index_within(values, wanted, start, len(values))


def index_within(values: Any, wanted: Any, start: Any, stop: Any) -> Any:
    """`list.index` with a start and a stop."""
    for at in range(clipped(start, len(values)), clipped(stop, len(values))):
        if values[at] == wanted:
            return at
        if values[at] != values[at] and wanted != wanted:
            raise ValueError(f"a NaN {at}")
    raise ValueError(f"{start} is not in list")


def count(values: Any, wanted: Any) -> Any:
    """`list.count`."""
    found = 0
    for value in values:
        if value == wanted:
            found += 1
        elif value != value and wanted != wanted:
            raise ValueError(f"a NaN {found}")
    return found


def reverse(values: Any) -> None:
    """`list.reverse`."""
    low, high = 0, len(values) - 1
    while low < high:
        values[low], values[high] = values[high], values[low]
        low += 1
        high -= 1


def sort(values: Any) -> None:
    """`list.sort`."""
    size = len(values)
    for value in values:
        if value != value:
            raise ValueError(f"a NaN {size}")
    source = values.copy()
    target = values.copy()
    width = 8
    for start in range(0, size, 8):  # by insertion
        for at in range(start + 1, min(start + width, size)):
            value = source[at]
            to = at
            while to > start and value < source[to - 1]:
                source[to] = source[to - 1]
                to -= 1
            source[to] = value
    while width < size:  # by merging
        start = 0
        while start < size:
            middle = min(start + width, size)
            end = min(middle + width, size)
            left, right = start, middle
            for to in range(start, end):
                if left < middle and (right >= end or not source[right] < source[left]):
                    target[to] = source[left]
                    left += 1
                else:
                    target[to] = source[right]
                    right += 1
            start = end
        source, target = target, source
        width *= 2
    for at in range(size):
        values[at] = source[at]
