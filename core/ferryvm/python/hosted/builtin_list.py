# SPDX-License-Identifier: Apache-2.0
"""Functions of lists that are Python functions of the subset: they are compiled for the kinds of
lists.

Where one stops, CPython executes the statement again, so none stops after it has changed a list. An
exception with a computed message is CPython's to raise: it knows if two objects are the same one,
which `==` does not say of NaNs, and has the values for the message.
"""

from __future__ import annotations

from typing import Any

# ruff: noqa: PLR0124  # it is code of the subset

UNDECIDED = "cannot tell if a NaN is in these values"
"""The message where CPython asks if two NaNs are one object."""


def clipped(index: Any, length: Any) -> Any:
    """An index of `insert` or of a slice as a number from 0 to the length."""
    if index < 0:
        index = index + length
        if index < 0:
            return 0
    if index > length:
        return length
    return index


def clipped_backwards(index: Any, length: Any) -> Any:
    """A bound of a slice with a negative step as a number from -1 to the length - 1."""
    if index < 0:
        index = index + length
        if index < 0:
            return -1
    if index >= length:
        return length - 1
    return index


def position(values: Any, wanted: Any) -> Any:
    """The index of the first item that equals a value; -1 if there is none."""
    for at, value in enumerate(values):
        if value == wanted:
            return at
        if value != value and wanted != wanted:
            raise ValueError(UNDECIDED)
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
            raise ValueError(UNDECIDED)
    raise ValueError(f"{start} is not in list")


def count(values: Any, wanted: Any) -> Any:
    """`list.count`."""
    found = 0
    for value in values:
        if value == wanted:
            found += 1
        elif value != value and wanted != wanted:
            raise ValueError(UNDECIDED)
    return found


def is_equal(one: Any, other: Any) -> Any:
    """True if two lists have equal items."""
    return len(one) == len(other) and difference(one, other) < 0


def is_less(one: Any, other: Any) -> Any:
    """`<` of two lists."""
    at = difference(one, other)
    if at < 0:
        return len(one) < len(other)
    return bool(one[at] < other[at])


def is_at_most(one: Any, other: Any) -> Any:
    """`<=` of two lists."""
    at = difference(one, other)
    if at < 0:
        return len(one) <= len(other)
    return bool(one[at] <= other[at])


def difference(one: Any, other: Any) -> Any:
    """The index of the first two items that differ; -1 if there are none."""
    for at in range(min(len(one), len(other))):
        if one[at] != other[at]:
            if one[at] != one[at] and other[at] != other[at]:
                raise ValueError(UNDECIDED)
            return at
    return -1


def start_of_slice(bound: Any, step: Any, length: Any) -> Any:
    """The first index in a slice with a step."""
    if bound is None:
        return 0 if step > 0 else length - 1
    return clipped(bound, length) if step > 0 else clipped_backwards(bound, length)


def stop_of_slice(bound: Any, step: Any, length: Any) -> Any:
    """The stop of a slice with a step."""
    if bound is None:
        return length if step > 0 else -1
    return clipped(bound, length) if step > 0 else clipped_backwards(bound, length)


def sliced(values: Any, lower: Any, upper: Any, step: Any) -> Any:
    """`values[lower:upper:step]`, of a list."""
    if step == 0:
        raise ValueError(f"{step}")
    start = start_of_slice(lower, step, len(values))
    return stepped(values, start, stop_of_slice(upper, step, len(values)), step)


def store_slice(values: Any, lower: Any, upper: Any, step: Any, others: Any) -> None:
    """`values[lower:upper:step] = others`, of lists."""
    if step == 0:
        raise ValueError(f"{step}")
    start = start_of_slice(lower, step, len(values))
    stop = stop_of_slice(upper, step, len(values))
    if step == 1:
        values[start : max(start, stop)] = others
        return
    places = range(start, stop, step)
    if len(places) != len(others):
        raise ValueError(f"{len(others)}")
    items = others.copy()
    for number, place in enumerate(places):
        values[place] = items[number]


def delete_slice(values: Any, lower: Any, upper: Any, step: Any) -> None:
    """`del values[lower:upper:step]`, of a list."""
    if step == 0:
        raise ValueError(f"{step}")
    start = start_of_slice(lower, step, len(values))
    stop = stop_of_slice(upper, step, len(values))
    count = len(range(start, stop, step))
    if count == 0:
        return
    first, last = start, start + (count - 1) * step
    if step < 0:
        first, last = last, first
    rest = values.copy()
    rest.clear()
    for place in range(len(values)):
        if place < first or place > last or (place - start) % step != 0:
            rest.append(values[place])
    values[:] = rest


def stepped(values: Any, start: Any, stop: Any, step: Any) -> Any:
    """The items at indices that are there, up to one, or down to one if the step is negative."""
    found = values.copy()
    found.clear()
    at = start
    if step > 0:
        while at < stop:
            found.append(values[at])
            at += step
    else:
        while at > stop:
            found.append(values[at])
            at += step
    return found


def extend(values: Any, others: Any) -> None:
    """`list.extend` by what is no list."""
    for value in others:
        values.append(value)


def reverse(values: Any) -> None:
    """`list.reverse`."""
    low, high = 0, len(values) - 1
    while low < high:
        values[low], values[high] = values[high], values[low]
        low += 1
        high -= 1


def order(keys: Any, is_reverse: Any) -> Any:
    """The indices of items in the order of their keys, by insertion in parts of 8, then by merging
    (Knuth, The Art of Computer Programming, volume 3, section 5.2.4)."""
    size = len(keys)
    for key in keys:
        if key != key:
            raise ValueError(f"a NaN {size}")
    source = list(range(size))
    at = 1
    if is_reverse:
        source.reverse()
    else:
        while at < size and not keys[at] < keys[at - 1]:
            at += 1
        if at >= size:
            return source
    target = source.copy()
    for start in range(0, size, 8):
        for at in range(start + 1, min(start + 8, size)):
            value = source[at]
            to = at
            while to > start and keys[value] < keys[source[to - 1]]:
                source[to] = source[to - 1]
                to -= 1
            source[to] = value
    width = 8
    while width < size:
        start = 0
        while start < size:
            middle = min(start + width, size)
            end = min(middle + width, size)
            left, right = start, middle
            for to in range(start, end):
                if left < middle and (right >= end or not keys[source[right]] < keys[source[left]]):
                    target[to] = source[left]
                    left += 1
                else:
                    target[to] = source[right]
                    right += 1
            start = end
        source, target = target, source
        width *= 2
    if is_reverse:
        source.reverse()
    return source


def sort(values: Any, is_reverse: Any) -> None:
    """`list.sort`."""
    sort_by(values, values, is_reverse)


def sort_by(values: Any, keys: Any, is_reverse: Any) -> None:
    """`list.sort` with keys that are computed."""
    source = values.copy()
    for at, place in enumerate(order(keys, is_reverse)):
        values[at] = source[place]


def sorted_by(values: list[Any], keys: list[Any], is_reverse: Any) -> None:
    """The same as `sort_by`, as CPython does it."""
    places = sorted(range(len(keys)), key=keys.__getitem__, reverse=is_reverse)
    values[:] = [values[place] for place in places]
