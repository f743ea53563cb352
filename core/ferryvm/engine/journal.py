# SPDX-License-Identifier: Apache-2.0
"""The journal of mixed execution, with reasons: the record that `ferry explain` shows.

Every hot site has a `Placement`, every change of its state a `Step`, every attempt to compile it an
`Attempt`. Every decision is recorded here with its reason.
"""

from __future__ import annotations

import dataclasses
import enum
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from ferryvm import record
from ferryvm.backend import Activity, BackendError, Code
from ferryvm.engine.transition import SiteEvent, SiteState
from ferryvm.float_environment import callers


class Outcome(enum.Enum):
    """The outcome of an attempt."""

    COMPILED = "compiled"
    CACHED = "from the cache"
    REFUSED = "refused"
    TOO_LARGE = "too large"
    """Beyond the limits that the backend states."""
    FAILED = "failed"
    SKIPPED = "not asked"
    LOST = "lost"
    """The compiled code cannot be run any more."""


@record.dataclass(frozen=True)
class Attempt:
    """One backend asked to compile a region."""

    backend: str
    region: str
    outcome: Outcome
    reason: str
    """The reason that it refused, failed or was not asked; empty for one that compiled."""
    began: float
    """Seconds since the journal's start."""
    seconds: float
    """Its duration."""
    code: Code | None = dataclasses.field(default=None, repr=False)
    guards: int = 0
    """Ways that the code leaves out."""
    is_quick: bool = False
    """It was compiled quickly, and is compiled again if it runs long."""
    error: BackendError | None = dataclasses.field(default=None, repr=False)
    """The error to raise if the program may not continue without the code: a RefusalError where the
    backend refused, a CompilationError where it failed."""


class Step(NamedTuple):
    """A transition of a site."""

    at: float
    """Seconds since the journal's start."""
    before: SiteState
    event: SiteEvent
    after: SiteState
    reason: str


@record.dataclass(frozen=True)
class Considered:
    """A region of a place, as the policy was asked about it."""

    region: str
    decision: str
    """The rule that matched and why, or that none did."""
    passed: tuple[str, ...]
    """The rules before it, with the reason why each does not match."""


class Placement:
    """A site that got hot, and what became of it."""

    def __init__(self, pc: int, counting: bool) -> None:
        self.pc, self.counting = pc, counting
        self.region = ""
        """The region that was chosen; empty where there is none."""
        self.kind = ""
        self.why = ""
        """The reason that the site was looked at: "reached 2000 times"."""
        self.decision = ""
        """The rule of the policy that matched, and why."""
        self.considered: list[Considered] = []
        """The regions that start here in the order in which the policy was asked, the chosen one
        last."""
        self.attempts: list[Attempt] = []
        self.recompilations = 0
        """Times that guards failed too often."""
        self.compared = 0
        """Stays in its code that a shadow has repeated."""
        self.compare_seconds = 0.0
        """Time of the comparisons."""
        self.differences: list[str] = []
        """Differences that the shadow found."""
        self.state = SiteState.COLD
        self.history: list[Step] = []
        """The steps to its current state."""

    @property
    def code(self) -> Code | None:
        """The installed code."""
        for attempt in reversed(self.attempts):
            if attempt.code is not None:
                return attempt.code
        return None

    def activity(self) -> list[tuple[str, Activity]]:
        """The metrics of each code compiled for it, with its backend."""
        return [(a.backend, a.code.activity()) for a in self.attempts if a.code is not None]


class Event(enum.Enum):
    """An event that a journal sends to its listeners."""

    HOT = "hot"
    ATTEMPT = "attempt"
    INSTALLED = "installed"
    REPLACED = "replaced"
    REMOVED = "removed"
    GUARD = "guard"


Listener = Callable[[Event, Placement, object], None]
"""Told of an event, its placement and, for an attempt, the `Attempt`; in any thread."""


class Journal:
    """All placements of one program."""

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self.began = time.perf_counter()
        self.placements: list[Placement] = []
        self._listeners = listeners
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.began

    def place(self, pc: int, counting: bool) -> Placement:
        """A new placement."""
        placement = Placement(pc, counting)
        with self._lock:
            self.placements.append(placement)
        return placement

    def tell(self, event: Event, placement: Placement, detail: object = None) -> None:
        """Note an event. What a listener raises is its own affair."""
        for listener in self._listeners:
            with callers():
                listener(event, placement, detail)
