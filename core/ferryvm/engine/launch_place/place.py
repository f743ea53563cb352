# SPDX-License-Identifier: Apache-2.0
"""One place of a launch: its expected time, and what was learned from found times.

    asleep ── expected to pay ──> compiling ─┬─> ready ── its device fails ──> gone
                                             └─> gone (refused)

An expected time comes from the model until ranges have run there; then from the least time of an
item in the last runs, since other work of the machine can only add to a time.
"""

from __future__ import annotations

import collections
import enum

from ferryvm.engine.launch_place.model import CostModel
from ferryvm.item_range import PlaceActivity, RangeOutcome, RangeRunner

FAR = 2.0
"""The factor between found and expected time that is reported."""

_REMEMBERED = 4
"""Runs whose least time counts."""

_LEAST = 1e-12
"""The least time of an item."""


class PlaceState(enum.Enum):
    """The state of a place; the value describes it."""

    ASLEEP = "not compiled"
    COMPILING = "being compiled"
    READY = "ready"
    GONE = "not usable"


class LaunchPlace:
    """A backend, on one of its devices, that may run the items of one launch."""

    def __init__(self, name: str, model: CostModel, runner: RangeRunner | None = None) -> None:
        """`runner`: None if its code is not compiled yet."""
        self.model, self.runner = model, runner
        self.state = PlaceState.ASLEEP if runner is None else PlaceState.READY
        self.activity = PlaceActivity(name, model.source)
        self.next_trial = 1
        """The number of the launch's range from which on a trial is due."""
        self._found: collections.deque[float] = collections.deque(maxlen=_REMEMBERED)
        """Seconds of an item in the last runs."""
        self._largest = FAR

    @property
    def item_seconds(self) -> float | None:
        """Seconds of an item as learned; None before the first run."""
        return min(self._found, default=None)

    def expected(self, items: int, in_order: float) -> float:
        """Seconds of so many items; `in_order`: of one in order."""
        learned = self.item_seconds
        if learned is None:
            return self.model.expected(items, in_order)
        return self.model.launch_seconds + items * learned

    def items_for(self, seconds: float, in_order: float) -> int:
        """Items that take about so long, besides the launch."""
        learned = self.item_seconds
        each = in_order * self.model.ratio if learned is None else learned
        return int(seconds / max(each, _LEAST))

    def has_run(self, outcome: RangeOutcome, expected: float, seconds: float) -> None:
        """Learn from a range that ran there; `expected`: seconds for the items that were done;
        `seconds`: as it took."""
        activity = self.activity
        activity.times += 1
        activity.items += outcome.completed
        activity.expected += expected
        activity.seconds += seconds
        if not outcome.completed or outcome.is_interrupted:
            return
        each = max(seconds - self.model.launch_seconds, 0.1 * seconds) / outcome.completed
        self._found.append(max(each, _LEAST))
        factor = max(seconds / expected, expected / seconds) if seconds and expected else 1.0
        if factor >= self._largest and not outcome.suspended:
            self._largest = factor
            word = "longer" if seconds > expected else "shorter"
            activity.learned = (
                f"{factor:.1f} times {word} than expected in run {activity.times}: "
                f"{seconds * 1e3:.3g} ms, expected {expected * 1e3:.3g} ms"
            )

    def gone(self, reason: str) -> None:
        """Do not use it any more."""
        self.state, self.runner = PlaceState.GONE, None
        self.activity.state = f"not usable: {reason}"
