# SPDX-License-Identifier: Apache-2.0
"""A site: a pc that mixed execution counts, compiles for or enters, in one form of the code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.engine.journal import Event, Journal, Placement, Step
from ferryvm.engine.transition import CellChange, SiteEvent, SiteState, Transition, transition

if TYPE_CHECKING:
    from ferryvm.backend import BackendError, Code
    from ferryvm.engine.compilation import Job
    from ferryvm.policy import Choice, Rule
    from ferryvm.region.known_word import KnownWord
    from ferryvm.region.region import Region

NEVER = (1 << 62) - 1
"""A count that is never reached."""

Edges = frozenset[tuple[int, int]]
"""Paths that branches can take: pc of the branch, pc of its target."""


class Site:
    """A pc in the form of the code that counts instructions, or in the other.

    `step` alone changes its state. The compile thread owns the other attributes while the site is
    deciding or compiling, otherwise the thread that takes a step does.
    """

    state = SiteState.COLD
    is_counted = False
    """A count cell is before it, which can lead to HOT."""
    more = 0
    """The count of the next count cell."""
    placement: Placement | None = None
    regions: tuple[Region, ...] | None = None
    """The regions to choose from; None: those that start there."""
    region: Region | None = None
    """The region that is compiled for it."""
    rule: Rule | None = None
    """The current decision; None: the policy has to decide."""
    observed: frozenset[int] = frozenset()
    """pcs of the branches whose paths are counted."""
    has_observed = False
    unseen: Edges = frozenset()
    """Paths that its code leaves out."""
    known: frozenset[KnownWord] = frozenset()
    """Words that its code takes for constant."""
    is_cautious = False
    """No word is taken for constant any more."""
    choice: Choice | None = None
    """The choice by which its code was compiled."""
    code: Code | None = None
    """The installed code."""
    better: Code | None = None
    """The code that will replace it."""
    has_run_long = False
    """Quick code has run long here: it is compiled at the level that its rule selects."""
    error: BackendError | None = None
    """The reason that the program may not continue without its code."""
    job: Job | None = None
    other: Site | None = None
    """The site whose code it waits for."""

    def __init__(self, pc: int, counting: bool, threshold: int, delay: float = 0.0) -> None:
        self.pc, self.counting = pc, counting
        self.threshold = threshold
        """The number of entries at which it is examined next."""
        self.delay = delay
        """Seconds by which its decision is deferred, if no program waits for its code."""
        self.waited: list[Site | Code] = []
        """The heads and codes that it has waited for."""
        self.history: list[Step] = []
        """Its transitions."""
        self.lost: set[str] = set()
        """Backends whose code for it became unusable."""

    @property
    def key(self) -> tuple[int, bool]:
        """Key that identifies it among the sites of a program."""
        return self.pc, self.counting

    @property
    def is_launch_only(self) -> bool:
        """True if its code is wanted only to run the items of a launch out of order: it is not
        hot."""
        events = {one.event for one in self.history if one.before is not SiteState.OBSERVING}
        return SiteEvent.LAUNCH in events and SiteEvent.HOT not in events

    def step(
        self, event: SiteEvent, reason: str, at: float, change: Callable[[CellChange], None]
    ) -> Transition:
        """Change cells and state as the table says, and record the reason. Raises TransitionError.

        `change`: changes the cells; if it raises, the state does not change.
        """
        before = self.state
        found = transition(self.pc, before, event)
        change(found.cells)
        self.state = found.state
        self.history.append(Step(at, before, event, found.state, reason))
        if self.placement is not None:
            self.placement.state = found.state
        return found

    def placed(self, journal: Journal, why: str = "") -> Placement:
        """Its placement; the first access creates it and notifies the journal."""
        if self.placement is None:
            self.placement = journal.place(self.pc, self.counting)
            self.placement.state, self.placement.history = self.state, self.history
            self.placement.why = why
            journal.notify(Event.HOT, self.placement)
        return self.placement
