# SPDX-License-Identifier: Apache-2.0
"""A map in the instance of a version by one call, for arrays of the dtypes of the first one.

    arrays, results ──> the adapter of `ferryvm.engine.array_map` ──> the instance forgets fresh ones

It checks nothing: `MapPlan` does so before. A fresh array gets an object that the instance has
already, so that it costs hardly more than one that the caller passes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm.engine import array_map
from ferryvm.engine.array_argument import FreshArray

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


class DirectMap:
    """The call of a map."""

    def __init__(
        self, function: Callable[..., Any], values: Sequence[Any], results: Sequence[Array]
    ) -> None:
        """`function`: of the instance; `values`, `results`: arguments like the later ones."""
        self._function = function
        self._call = array_map.prepared(function, values, results)

    def run(self, values: Sequence[Any], results: Sequence[Array], *, is_fresh: bool) -> None:
        """Compute the results. `is_fresh`: nothing else refers to their arrays."""
        if not is_fresh:
            self._call(*values, *results)
            return
        passed = [FreshArray(each if each.ndim == 1 else each.reshape(-1)) for each in results]
        self._call(*values, *passed)
        array_map.release(self._function, results)
