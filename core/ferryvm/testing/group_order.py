# SPDX-License-Identifier: Apache-2.0
"""Operations of a group on values of NumPy in CPython, in the order that docs/parallel.md
states."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferryvm.python.hosted import work_item
from ferryvm.skeleton.reduction import ACCUMULATORS, BLOCK
from ferryvm.skeleton.scan import BLOCK as SCAN_BLOCK

_Operation = Callable[[Any, Any], Any]


def group_results(
    function: Callable[..., Any], values: Sequence[Any], others: Sequence[Any]
) -> Any:
    """The results of the items of a group, from the values of all; `others`: the further arguments
    of item 0.

    Raises TypeError for values that cannot be combined.
    """
    given = [*map(_element, values)]
    if len({each.dtype for each in given}) > 1:
        names = sorted({each.dtype.name for each in given})
        raise TypeError(f"{function.__name__}: values of different types, {' and '.join(names)}")
    with np.errstate(all="ignore"):
        if function is work_item.group_broadcast:
            number = others[0]
            if not 0 <= number < len(given):
                raise IndexError(f"item {number} of a group of {len(given)}")
            return [given[number]] * len(given)
        if function is work_item.group_scan:
            return _scanned(given)
        if function is work_item.group_scan_before:
            return [type(given[0])(0), *_scanned(given)[:-1]]
        operation = {work_item.group_min: _least, work_item.group_max: _largest}.get(function, _sum)
        return [_reduced(given, operation)] * len(given)


def _element(value: Any) -> Any:
    if type(value) in (int, float):
        return np.int64(value) if type(value) is int else np.float64(value)
    if isinstance(value, np.int32 | np.int64 | np.float32 | np.float64):
        return value
    raise TypeError(f"int32, int64, float32 or float64 are combined, found {type(value).__name__}")


def _sum(a: Any, b: Any) -> Any:
    return a + b


def _least(a: Any, b: Any) -> Any:
    if np.isnan(a) or np.isnan(b):
        return type(a)(math.nan)
    if a == b:
        return a if np.signbit(a) else b
    return min(a, b)


def _largest(a: Any, b: Any) -> Any:
    if np.isnan(a) or np.isnan(b):
        return type(a)(math.nan)
    if a == b:
        return b if np.signbit(a) else a
    return max(a, b)


def _reduced(values: Sequence[Any], operation: _Operation) -> Any:
    while len(values) > 1:
        blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]
        values = [_reduced_block(each, operation) for each in blocks]
    return values[0]


def _reduced_block(values: Sequence[Any], operation: _Operation) -> Any:
    whole = len(values) // ACCUMULATORS * ACCUMULATORS
    parts = [*values[: ACCUMULATORS if whole else 1]]
    for number, each in enumerate(values[len(parts) : whole]):
        at = number % ACCUMULATORS
        parts[at] = operation(parts[at], each)
    while len(parts) > 1:
        half = len(parts) // 2
        parts = [operation(parts[at], parts[at + half]) for at in range(half)]
    found = parts[0]
    for each in values[max(whole, 1) :]:
        found = operation(found, each)
    return found


def _scanned(values: Sequence[Any]) -> list[Any]:
    blocks: list[list[Any]] = []
    for at in range(0, len(values), SCAN_BLOCK):
        block = [values[at]]
        for each in values[at + 1 : at + SCAN_BLOCK]:
            block.append(block[-1] + each)
        blocks.append(block)
    if len(blocks) > 1:
        totals = _scanned([block[-1] for block in blocks])
        for number, block in enumerate(blocks[1:]):
            block[:] = [totals[number] + each for each in block]
    return [each for block in blocks for each in block]
