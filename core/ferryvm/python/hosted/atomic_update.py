# SPDX-License-Identifier: Apache-2.0
"""Atomic updates of elements of arrays: `ferryvm.atomic_add` and others.

CPython executes them as they are written here: it does so in one thread, where no other item comes
between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

UPDATED = ("int32", "uint32", "int64", "uint64")
"""The dtypes of arrays whose elements can be updated atomically."""


def _element(array: Any, index: Any) -> Any:
    found = array[index]
    if not isinstance(found, np.generic) or found.dtype.name not in UPDATED:
        dtype = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"an atomic update needs an array of {', '.join(UPDATED)}, found {dtype}")
    return found


def atomic_add(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, to which another one is added; sums wrap, as NumPy's.

    `array`: of int32, uint32, int64 or uint64. `index`: an int, or a tuple of some. Other items see
    the element before or after. Raises TypeError, IndexError and ValueError, as all of these
    functions.
    """
    found = _element(array, index)
    array[index] = found + value
    return found


def atomic_min(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, which gets the smaller one of it and another; not of
    uint64."""
    found = _element(array, index)
    array[index] = min(found, value)
    return found


def atomic_max(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, which gets the larger one of it and another; not of
    uint64."""
    found = _element(array, index)
    array[index] = max(found, value)
    return found


def atomic_and(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, which gets the bitwise and of it and another."""
    found = _element(array, index)
    array[index] = found & value
    return found


def atomic_or(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, which gets the bitwise or of it and another."""
    found = _element(array, index)
    array[index] = found | value
    return found


def atomic_exchange(array: Any, index: Any, value: Any) -> Any:
    """The former value of an element, which gets another."""
    found = _element(array, index)
    array[index] = value
    return found


def atomic_compare_exchange(array: Any, index: Any, expected: Any, value: Any) -> Any:
    """The former value of an element, which gets another one if it was the expected one."""
    found = _element(array, index)
    if found == expected:
        array[index] = value
    return found


UPDATES: dict[Callable[..., Any], str] = {
    atomic_add: "add",
    atomic_min: "min",
    atomic_max: "max",
    atomic_and: "and",
    atomic_or: "or",
    atomic_exchange: "exchange",
    atomic_compare_exchange: "compare_exchange",
}
"""The functions, with the names of their instructions."""


def is_update(function: object) -> bool:
    """True for each of these functions."""
    return any(function is each for each in UPDATES)
