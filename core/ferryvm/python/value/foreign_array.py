# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as arrays of NumPy.

__array_interface__, DLPack  ──>  the same memory
__array__ (pandas)           ──>  what the library makes of it: its own memory, where it can
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferryvm.engine.array_argument import viewed
from ferryvm.failure import one_line, shown
from ferryvm.python.value.device_array import DeviceArray
from ferryvm.python.value.value_kind import MisfitError

_OURS = frozenset({np.ndarray, int, float, bool, range, list, DeviceArray, type(None)})
_METHODS = ("__array_interface__", "__dlpack__", "__array__")


def viewed_array(value: Any) -> Any:
    """An argument with arrays of NumPy in the place of those of other libraries. Raises MisfitError
    for one that they do not give."""
    if type(value) in _OURS or isinstance(value, np.ndarray | np.generic):
        return value
    if type(value) is tuple:
        return tuple(map(viewed_array, value))
    if isinstance(value, type) or not any(hasattr(value, name) for name in _METHODS):
        return value
    found = viewed(value)
    if found is not None:
        return found
    try:
        return np.asarray(value, order="C")  # a frame has its columns one after another
    except Exception as error:  # noqa: BLE001  # whatever the other library raises
        what = f"{shown(value)} gives no array: {one_line(str(error))}"
        raise MisfitError(f"{what}; copy it to the host before") from None
