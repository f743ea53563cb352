# SPDX-License-Identifier: Apache-2.0
"""Arguments of maps that are no arrays of numbers yet: lists, arrays of objects, masked arrays.

    [1, 2]            ──>  an array, and the kind of its elements
    masked array      ──>  its data, and the union of the masks
    (xs, [1, 2])      ──>  a tuple of these

Arrays of numbers do not come here, so that a map over them pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferryvm.engine.array_argument import is_masked
from ferryvm.python.value.element import Observed, is_of_objects, observed
from ferryvm.python.value.value_kind import MisfitError


def is_taken(value: object) -> bool:
    """True for an argument whose elements have to be looked at."""
    if type(value) is tuple:
        return any(map(is_taken, value))
    return is_of_objects(value) or is_masked(value)


class Taken:
    """The arguments of a map, with arrays in the place of what has to be looked at."""

    def __init__(self, names: Sequence[str], values: Sequence[Any], count: int) -> None:
        """`names`: of the parameters; `count`: the number of leading arguments whose elements are
        taken. Raises MisfitError."""
        self._mask: Any = None
        self._is_masked = False
        self.values = [
            self._value(name, value) if number < count else value
            for number, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        """The arguments, with `Observed` for lists and arrays of objects."""
        self.arrays = [*map(_array, self.values)]
        """The arguments, with arrays in the place of those."""

    def _value(self, name: str, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(self._value(f"{name}[{n}]", each) for n, each in enumerate(value))
        if is_of_objects(value):
            try:
                return observed(value)
            except MisfitError as misfit:
                raise MisfitError(f"argument {name}: {misfit}") from None
        if not is_masked(value):
            return value
        self._is_masked = True
        mask = value.mask
        if mask is not np.ma.nomask and mask.any():
            if self._mask is None:
                self._mask = mask.copy()
            elif self._mask.shape == mask.shape:  # the map tells what other shapes are
                self._mask |= mask
        return value.data

    @property
    def mask(self) -> Any:
        """The items that are masked; None for none."""
        return self._mask

    def masked(self, results: Any, out: Any) -> Any:
        """The results with the mask, if arguments were masked arrays."""
        if not self._is_masked:
            return results
        if isinstance(results, tuple):
            given = out if out is not None else [None] * len(results)
            return tuple(self._with_mask(each, to) for each, to in zip(results, given, strict=True))
        return self._with_mask(results, out)

    def _with_mask(self, result: Any, out: Any) -> Any:
        mask = np.ma.nomask if self._mask is None else self._mask
        if is_masked(out):
            out.mask = mask
            return out
        return np.ma.MaskedArray(result, mask)


def _array(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_array, value))
    return value.array if isinstance(value, Observed) else value


def data_of(out: Any) -> Any:
    """The arrays beneath masked arrays for results."""
    if isinstance(out, tuple | list):
        return tuple(map(data_of, out))
    return out.data if is_masked(out) else out
