# SPDX-License-Identifier: Apache-2.0
"""Elements of arrays: the dtypes that hold values of kinds, as `numpy.array` selects them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferryvm.python.kind import Kind, Number, Scalar


def dtype_of(kind: Kind) -> np.dtype[Any]:
    """The dtype of an array of values of a kind of numbers."""
    if isinstance(kind, Scalar):
        return np.dtype(kind.dtype)
    assert isinstance(kind, Number)
    return np.dtype({int: np.int64, float: np.float64, bool: np.bool_}[kind.type])


def promoted(kinds: Sequence[Kind]) -> Kind:
    """The kind of elements that hold values of several kinds of numbers."""
    first = kinds[0]
    if isinstance(first, Number) and all(kind == first for kind in kinds):
        return first
    return Scalar(np.result_type(*[dtype_of(kind) for kind in kinds]).name)
