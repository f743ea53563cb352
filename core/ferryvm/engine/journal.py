# SPDX-License-Identifier: Apache-2.0
"""The journal of mixed execution, with reasons: the record that `ferry explain` shows.

Every hot site has a `Placement`, every change of its state a `Step`, every attempt to compile it an
`Attempt`. Every decision is recorded here with its reason.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.backend import Activity, BackendError, Code
from ferryvm.engine.guess import Guess
from ferryvm.engine.transition import SiteEvent, SiteState
from ferryvm.float_environment import callers
from ferryvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ferryvm.engine.installed_launch import LaunchActivity
    from ferryvm.region.fact import LaunchProfile


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
    """The compiled code cannot run any more."""


@record.dataclass(frozen=True)
class Attempt:
    """One request to a backend to compile a region."""

    backend: str
    region: str
    outcome: Outcome
    reason: str
    """The reason that it refused, failed or was skipped; empty if it compiled."""
    began: float
    """Seconds since the journal's start."""
    seconds: float
    """Its duration."""
    code: Code | None = record.field(default=None, repr=False)
    guards: int = 0
    """Paths that the code leaves out."""
    is_quick: bool = False
    """It was compiled quickly, and is compiled again if it runs long."""
    error: BackendError | None = record.field(default=None, repr=False)
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
    """A region at a site that the policy considered."""

    region: str
    decision: str
    """The rule that matched and why, or that none did."""
    passed: tuple[str, ...]
    """The rules before it, each with the reason why it does not match."""


class Placement:
    """A site that got hot, and its history."""

    def __init__(self, pc: int, counting: bool) -> None:
        self.pc, self.counting = pc, counting
        self.region = ""
        """The chosen region; empty if there is none."""
        self.kind = ""
        self.why = ""
        """The reason for the decision's time: "reached 2000 times"."""
        self.decision = ""
        """The rule of the policy that matched, and why."""
        self.considered: list[Considered] = []
        """The regions that start here in the order in which the policy considered them, the chosen
        one last."""
        self.attempts: list[Attempt] = []
        self.recompilations = 0
        """Number of times that guards failed too often."""
        self.compared = 0
        """Runs of its code that a shadow has repeated."""
        self.compare_seconds = 0.0
        """Time of the comparisons."""
        self.differences: list[str] = []
        """Differences that the shadow found."""
        self.profile: LaunchProfile | None = None
        """The profile by which the policy decided about a launch; None for other sites."""
        self.launches: list[LaunchActivity] = []
        """Metrics of a launch, for each code that runs its items out of order."""
        self.guesses: list[Guess] = []
        """The paths that its code left out, or left out no more."""
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
"""Receives an event, its placement and, for an attempt, the `Attempt`; in any thread."""


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

    def notify(self, event: Event, placement: Placement, detail: object = None) -> None:
        """Send an event to the listeners. Their exceptions are ignored."""
        for listener in self._listeners:
            with callers():
                listener(event, placement, detail)
