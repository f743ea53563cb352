# SPDX-License-Identifier: Apache-2.0
"""Maps that Ctrl-C stops: what was done by then is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferryvm.engine.result import ProgramInterrupted
from ferryvm.machine.launch import unfinished


class MapInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a map. `results`: the array, or the tuple of arrays, with the results of the
    items that are done; `done`: how many these are; `left`: the numbers of the others in row-major
    order, as pairs of the first one and the one after the last."""

    def __init__(
        self, name: str, results: Any, count: int, left: Sequence[tuple[int, int]]
    ) -> None:
        """`name`: of the function; `count`: of items."""
        self.results, self.left = results, [*left]
        self.done = count - sum(end - first for first, end in left)
        first = f"; item {left[0][0]} is the first that is not" if left else ""
        super().__init__(
            f"map of {name}: interrupted, {self.done} of {count} items are done{first}; "
            "the error's results has them"
        )


def left_by(error: ProgramInterrupted, count: int) -> list[tuple[int, int]]:
    """The items that a launch of so many items, which was interrupted, has not done. The call is
    removed from the stack."""
    found: list[tuple[int, int]] | None = None
    if error.call is not None:
        found = error.call.stood(unfinished)
        error.call.abandon()
    return [(0, count)] if found is None else found
