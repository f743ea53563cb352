# SPDX-License-Identifier: Apache-2.0
"""Showing a saved disagreement again, or that the backends agree now.

An artifact may retain more than it should between runs, so its history matters. The runs that found
the disagreement are repeated one by one, with freshly prepared backends:

    1. the recorded schedule, after those that a campaign runs before it
    2. the recorded schedule alone
    3. the bad backend entered at the recorded point, in the recorded mode
    4. the search for the point of divergence

They agree only if none of these shows a difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.errors import FerryError
from ferryvm.machine.difference import Difference
from ferryvm.testing.bisect import (
    Bisector,
    DivergenceMode,
    DivergencePoint,
    LateError,
    Parting,
    UnstableError,
)
from ferryvm.testing.differential import Comparison, Differ, Verdict
from ferryvm.testing.disagreement.model import Disagreement
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import Verified

_SECONDS = 20.0
"""Time limit of 3 and of 4, if no comparison shows anything."""

_BEFORE: dict[Schedule, tuple[tuple[Schedule, ...], ...]] = {
    Schedule.NONE: ((),),
    Schedule.RANDOM: ((Schedule.NONE,), ()),
    Schedule.ENVIRONMENT: ((Schedule.NONE,), (Schedule.NONE, Schedule.RANDOM), ()),
    Schedule.EVERY_BOUNDARY: ((Schedule.NONE,), (Schedule.NONE, Schedule.RANDOM), ()),
}
"""Schedules that a campaign may have run before the one that shows a disagreement."""


@dataclasses.dataclass(frozen=True)
class Shown:
    """The result of running it again: at most one of the first three fields is set."""

    comparison: Comparison | None = None
    """The comparison that shows a difference."""
    parting: Parting | None = None
    """The point of divergence, if no comparison shows it but entering the bad backend does."""
    unstable: str | None = None
    """A report that a backend failed, and did not fail again."""
    schedule: Schedule = Schedule.NONE
    """Of the comparison."""
    legal: str | None = None
    """The reason that they diverge legally, if they do."""

    @property
    def difference(self) -> Difference | None:
        """The current difference, if it is known."""
        shown = self.comparison or self.parting
        return shown.difference if shown else None


def show_again(
    differ: Differ,
    program: Verified,
    one: Disagreement,
    progress: Callable[[], object] = lambda: None,
) -> Shown:
    """The result of running a disagreement's program again. Raises FerryError if it cannot be
    compared."""
    compared: list[Comparison] = []
    other = None
    for before in _BEFORE[one.schedule]:
        expected = differ.finish(differ.start(program), progress)
        for schedule in (*before, one.schedule):
            compared = differ.compare(program, schedule, one.seed, progress, expected)
            shown = next((it for it in compared if it.difference is not None), None)
            if shown is not None and schedule is one.schedule:
                return Shown(shown, schedule=schedule)
            if shown is not None:
                other = other or Shown(shown, schedule=schedule)
    if other is not None:
        return other
    for comparison in compared:
        if comparison.verdict is Verdict.UNSUPPORTED:
            raise FerryError(f"cannot be compared: {comparison.reason}")
    for comparison in compared:
        if comparison.verdict is Verdict.DIVERGE:
            return Shown(legal=comparison.reason)
    return Shown() if one.parting is None else _search(differ, program, one, one.parting, progress)


def _search(
    differ: Differ,
    program: Verified,
    one: Disagreement,
    saved: Parting,
    progress: Callable[[], object],
) -> Shown:
    """The result of entering the bad backend, at the saved place and where the search leads."""
    names = (differ.against, *differ.backends)
    for search in (
        lambda it: _at(it, saved),
        lambda it: it.find(saved.mode, one.seed, names),
    ):
        try:
            bisector = Bisector(
                differ,
                one.bad,
                program,
                progress,
                seconds=_SECONDS,
                schedule=one.schedule,
                environment=saved.environment,
            )
            found = search(bisector)
        except LateError:
            continue
        except UnstableError as error:
            return Shown(unstable=str(error))
        if found is not None:
            return Shown(parting=found)
    return Shown()


def _at(bisector: Bisector, saved: Parting) -> Parting | None:
    """The divergence if the bad backend is entered as recorded, None if there is none."""
    entered, number = saved.entered, saved.number
    if not 0 <= entered <= number < bisector.boundaries:
        return None
    if saved.mode in (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED):
        found = bisector.uncounted(entered) if bisector.end.remaining else None
    else:
        found = bisector.segment(entered, number + 1)
    if found is None:
        return None
    place = (saved.mode, bisector.bad, entered, number, found, saved.environment)
    return bisector.describe(DivergencePoint(*place))
