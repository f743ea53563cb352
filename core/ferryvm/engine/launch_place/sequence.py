# SPDX-License-Identifier: Apache-2.0
"""Times of ranges in sequences of launches: a device with memory of its own copies once for all of
them, where a range by itself has its results copied back each time.

    alone         │copy│kernel│copy│  │copy│kernel│copy│  …
    in sequence   │copy│kernel│kernel│kernel│ … │copy│

So a device may pay in sequences that never pays for one launch. Whether launches follow each other
without anything between that looks at memory is observed wherever they run; then one sequence is
run there on trial. Its time, from the first launch to the results on the host, is divided among its
launches by what each is expected to take elsewhere.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.engine.launch_place.model import CostModel

OBSERVED = 3
"""Times in succession that another launch followed before a sequence is tried."""

_REMEMBERED = 4
"""Sequences whose least time counts."""


_LEAST_WORK = 1e-12


class DeferredRange(NamedTuple):
    """A range of a sequence."""

    items: int
    expected: float
    """Seconds that it was expected to take there."""
    alone: float
    """Seconds that it was expected to take by itself on the best place."""


class Followers:
    """Observations of what comes behind a launch."""

    def __init__(self) -> None:
        self._times = 0
        """Times in succession that another launch followed."""

    def note(self, is_followed: bool) -> None:
        """Add an observation."""
        self._times = self._times + 1 if is_followed else 0

    @property
    def are_likely(self) -> bool:
        """True if another launch has followed each of the last times."""
        return self._times >= OBSERVED


class SequenceTimes:
    """Times of the ranges of one launch on one place, of those that were parts of sequences."""

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self.next_trial = 1
        """The number of the launch's range from which on a sequence is tried."""
        self.until = 0
        """The number of the range up to which sequences are run without asking for other times."""
        self._found: collections.deque[float] = collections.deque(maxlen=_REMEMBERED)
        """Seconds of a range, over the work in it."""

    @property
    def is_known(self) -> bool:
        """True if a sequence was timed."""
        return bool(self._found)

    def expected(self, items: int, in_order: float) -> float:
        """Seconds of so many items, as found, or else by the model: without copies."""
        work = self._model.work(items)
        if self._found:
            return min(self._found) * work
        return self._model.expected(items, in_order, is_resident=True)

    def learn(self, ranges: Sequence[DeferredRange], seconds: float) -> None:
        """Note the time of the ranges of one sequence together."""
        work = sum(self._model.work(one.items) for one in ranges)
        self._found.append(seconds / max(work, _LEAST_WORK))
