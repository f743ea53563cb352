# SPDX-License-Identifier: Apache-2.0
"""A place of a program that mixed execution counts, compiles for or enters."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ferryvm.engine.compilation import Job
from ferryvm.engine.journal import Event, Journal, Placement
from ferryvm.policy import Choice, Rule

if TYPE_CHECKING:
    from ferryvm.region.region import Region

NEVER = (1 << 62) - 1
"""A count that nothing reaches."""

Ways = frozenset[tuple[int, int]]
"""Ways that branches can go: pc of the branch, pc it goes to."""


@dataclasses.dataclass
class Site:
    """A pc, in one form of the code."""

    pc: int
    counting: bool
    threshold: int
    """Times that it has been reached when it is looked at next."""
    delay: float = 0.0
    """Seconds that it goes on as it is when it got hot, if nobody waits for its code."""
    cause: str = ""
    """Why it is looked at, where that is not how often it was reached."""
    why: str = ""
    placement: Placement | None = None
    region: Region | None = None
    """What is being compiled for it."""
    unseen: Ways = frozenset()
    """Ways that its code leaves out."""
    watched: frozenset[int] = frozenset()
    """pcs at which it is being seen which way branches go."""
    has_watched: bool = False
    choice: Choice | None = None
    """What its code was compiled with."""
    rule: Rule | None = None
    regions: tuple[Region, ...] | None = None
    """What could be compiled for it; None: what starts there."""
    job: Job | None = None
    lost: set[str] = dataclasses.field(default_factory=set)
    """Backends whose code for it could not be run any more."""

    @property
    def key(self) -> tuple[int, bool]:
        """What tells it from the other places of a program."""
        return self.pc, self.counting

    def placed(self, journal: Journal) -> Placement:
        """Its placement, which the journal is told of when it is first asked for."""
        if self.placement is None:
            self.placement = journal.place(self.pc, self.counting)
            self.placement.why = self.why
            journal.tell(Event.HOT, self.placement)
        return self.placement
