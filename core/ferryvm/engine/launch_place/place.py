# SPDX-License-Identifier: Apache-2.0
"""One place of a launch: its expected time, and what was learned from found times.

    asleep ── expected to pay ──> compiling ─┬─> ready ── its device fails ──> gone
                                             └─> gone (refused)

An expected time comes from the model until ranges have run there. Each teaches how long an item
would take in order for the model to be right; the least of the last ones takes the place of what
was measured in order, since other work of the machine can only add to a time. So the model says how
a time depends on the number of items. A short range, whose time is mostly that of a launch, teaches
the time of a launch in the same way.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Sequence

from ferryvm.engine.launch_place.model import CostModel
from ferryvm.item_range import PlaceActivity, RangeOutcome, RangeRunner

FAR = 2.0
"""The factor between found and expected time that is reported."""

_REMEMBERED = 4
"""Runs whose least time counts."""

LEAST = 1e-12
"""The least time of an item."""

_SHORT = 2.0
"""A range is short if its items are expected to take less than so many launches."""

_MOST_LAUNCH = 10.0
"""A launch does not take more than so many times the time in the model."""


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
        self.patience = model.compile_seconds
        """Seconds that the launch has taken before code is asked for."""
        self.state = PlaceState.ASLEEP if runner is None else PlaceState.READY
        self.activity = PlaceActivity(name, model.source)
        self.next_trial = 1
        """The number of the launch's range from which on a trial is due."""
        self.is_checked = runner is not None
        """A first range has shown that it is not far slower than others, or two have that it is."""
        self.was_slow = False
        """The first range took far longer than on others: it may have been cold."""
        self.estimate: Callable[[Sequence[float]], float] = min
        """The time of an item, of those in the last runs."""
        self._found: collections.deque[float] = collections.deque(maxlen=_REMEMBERED)
        """Seconds of an item in order with which the model has the times of the last runs."""
        self._launches: collections.deque[float] = collections.deque(maxlen=_REMEMBERED)
        """Seconds of a launch in the last short ranges."""
        self._largest = FAR
        # They are read several times for each range.
        self.unit: float | None = None
        """Seconds of an item in order, as its own times say by the model; None before the first
        run."""
        self.launch_seconds = model.launch_seconds
        """Seconds of a launch, besides its items."""

    @property
    def item_seconds(self) -> float | None:
        """Seconds of an item among many, as learned; None before the first run."""
        unit = self.unit
        return None if unit is None else unit * self.model.ratio

    def expected(self, items: int, in_order: float) -> float:
        """Seconds of so many items; `in_order`: of one in order."""
        unit = self.unit
        if unit is None:
            more = self.launch_seconds - self.model.launch_seconds
            return self.model.expected(items, in_order, bool(self.activity.times)) + more
        return self.launch_seconds + unit * self.model.work(items)

    def items_for(self, seconds: float, in_order: float) -> int:
        """Items that take about so long, besides the launch."""
        return int(seconds / self.each(in_order))

    @property
    def is_known(self) -> bool:
        """True if times were learned."""
        return bool(self._found or self._launches)

    def each(self, in_order: float) -> float:
        """Seconds of an item among many, besides the launch."""
        learned = self.item_seconds
        return max(in_order * self.model.ratio if learned is None else learned, LEAST)

    def has_run(
        self,
        outcome: RangeOutcome,
        expected: float,
        seconds: float,
        in_order: float,
        learns: bool = True,
    ) -> None:
        """Learn from a range that ran there; `expected`: seconds for the items that were done;
        `seconds`: as it took; `in_order`: seconds of an item in order; `learns`: False for a part,
        whose items may not be like others."""
        activity = self.activity
        activity.times += 1
        activity.items += outcome.completed
        activity.expected += expected
        activity.seconds += seconds
        if not outcome.completed or outcome.is_interrupted or not learns:
            return
        share = self.model.work(outcome.completed)
        work = (self.unit or in_order) * share
        launch = max(seconds - work, 0.0)
        most = _MOST_LAUNCH * self.model.launch_seconds
        if work < _SHORT * self.model.launch_seconds and launch < most:
            self._launches.append(launch)
            self.launch_seconds = min(self._launches)
        else:
            unit = max(seconds - self.launch_seconds, 0.1 * seconds) / share
            self._found.append(max(unit, LEAST))
            self.unit = self.estimate(self._found)
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
