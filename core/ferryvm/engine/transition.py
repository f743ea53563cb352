# SPDX-License-Identifier: Apache-2.0
"""The states of a site in mixed execution, and the table of its transitions.

    cold ── HOT ──> queued ── BEGUN ──> deciding ── CHOSEN ──> compiling ── COMPILED ──> installed
                      ▲                    │ ▲                    │  │                       │
                      ├── HOT ── observing <─┤ └─── TOO_LARGE ────┘  │                       │
                      ├── HOT ── interpreted <┘                      │                       │
                      ├── HOT ── counting <── EARLY ─────────────────┤                       │
                      ├── HOT ── given up <── REFUSED ───────────────┘ <──── DIFFERED ───────┤
                      └──────────────────────── GUARD, LOST ─────────────────────────────────┘

A site has one state at a time. `TRANSITIONS` is the only definition of what may follow what: an
event that a state has no row for is a fault of the engine, and is refused.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from ferryvm.backend import BackendError


class SiteState(enum.StrEnum):
    """The state of a site."""

    COLD = "cold"
    """It has not been reached often enough; the journal knows nothing of it."""
    QUEUED = "queued"
    """It waits for the compile thread."""
    DECIDING = "deciding"
    """The policy is asked about the regions that start there."""
    OBSERVING = "observing"
    """A rule speculates: it is counted which paths branches take."""
    COMPILING = "compiling"
    """Backends are asked for code."""
    INSTALLED = "installed"
    """Its code is entered."""
    COUNTING = "counting"
    """It is counted on, up to the threshold of a backend that has one of its own."""
    INTERPRETED = "interpreted"
    """No rule wants it compiled, or no region starts there."""
    GIVEN_UP = "given up"
    """There is no code for it, or none that can be used."""


class SiteEvent(enum.Enum):
    """An event at a site; the value describes it."""

    WHOLE = "the policy compiles the whole program before it starts"
    HOT = "it was reached as often as it was counted to"
    SLICED = "compiled code stopped there at the end of its slice of time"
    NESTED = "code that begins inside its loop was installed"
    BEGUN = "the compile thread takes it up"
    CHOSEN = "a rule has one of its regions compiled, or did before"
    UNOBSERVED = "a rule that speculates has one compiled, and its branches were not observed"
    UNWANTED = "no rule has any of its regions compiled"
    NO_REGION = "no region starts there"
    COMPILED = "a backend made code"
    EARLY = "a backend has a higher threshold of its own"
    TOO_LARGE = "the region is too large for the backends, and a smaller one starts there"
    REFUSED = "no backend made code"
    DENIED = "the policy requires code, and there is none"
    BROKE = "something failed outside the backends"
    GUARD = "a guard of its code failed too often"
    LOST = "its code cannot be run any more"
    DIFFERED = "the shadow found its code wrong"


class CellChange(enum.Enum):
    """The change of cells that goes with a change of state."""

    NONE = ""
    COUNT = "a count cell"
    COUNT_AROUND = "count cells at the loops around it"
    OBSERVE = "count cells at the targets of its branches, and its own"
    STOP_OBSERVING = "the targets' cells are read and removed"
    ENTER = "an enter cell"
    CLEAR = "no cell"


class Work(enum.Enum):
    """The work that follows a change of state."""

    NONE = ""
    QUEUE = "submit a job to the compile thread"
    DECIDE = "ask the policy"
    COMPILE = "ask the backends of the rule in their order"
    HASTEN = "tell the head of its loop: NESTED"
    WARN = "warn, or end the program where the policy requires code"
    END = "end the program with the reason"


class Transition(NamedTuple):
    """The transition of an event in a state."""

    state: SiteState
    cells: CellChange = CellChange.NONE
    work: Work = Work.NONE


TRANSITIONS = {
    (SiteState.COLD, SiteEvent.WHOLE): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.COLD, SiteEvent.HOT): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.COLD, SiteEvent.SLICED): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.COLD, SiteEvent.NESTED): Transition(SiteState.COLD, CellChange.COUNT),
    (SiteState.QUEUED, SiteEvent.BEGUN): Transition(SiteState.DECIDING, work=Work.DECIDE),
    (SiteState.DECIDING, SiteEvent.CHOSEN): Transition(SiteState.COMPILING, work=Work.COMPILE),
    (SiteState.DECIDING, SiteEvent.UNOBSERVED): Transition(SiteState.OBSERVING, CellChange.OBSERVE),
    (SiteState.DECIDING, SiteEvent.UNWANTED): Transition(SiteState.INTERPRETED),
    (SiteState.DECIDING, SiteEvent.NO_REGION): Transition(
        SiteState.INTERPRETED, CellChange.COUNT_AROUND
    ),
    (SiteState.DECIDING, SiteEvent.BROKE): Transition(SiteState.GIVEN_UP, work=Work.WARN),
    (SiteState.OBSERVING, SiteEvent.HOT): Transition(
        SiteState.QUEUED, CellChange.STOP_OBSERVING, Work.QUEUE
    ),
    (SiteState.COMPILING, SiteEvent.COMPILED): Transition(
        SiteState.INSTALLED, CellChange.ENTER, Work.HASTEN
    ),
    (SiteState.COMPILING, SiteEvent.EARLY): Transition(SiteState.COUNTING, CellChange.COUNT),
    (SiteState.COMPILING, SiteEvent.TOO_LARGE): Transition(SiteState.DECIDING, work=Work.DECIDE),
    (SiteState.COMPILING, SiteEvent.REFUSED): Transition(SiteState.GIVEN_UP, CellChange.COUNT),
    (SiteState.COMPILING, SiteEvent.DENIED): Transition(SiteState.GIVEN_UP, work=Work.END),
    (SiteState.COMPILING, SiteEvent.BROKE): Transition(SiteState.GIVEN_UP, work=Work.WARN),
    (SiteState.INSTALLED, SiteEvent.GUARD): Transition(
        SiteState.QUEUED, CellChange.CLEAR, Work.QUEUE
    ),
    (SiteState.INSTALLED, SiteEvent.LOST): Transition(
        SiteState.QUEUED, CellChange.CLEAR, Work.QUEUE
    ),
    (SiteState.INSTALLED, SiteEvent.DENIED): Transition(
        SiteState.GIVEN_UP, CellChange.CLEAR, Work.END
    ),
    (SiteState.INSTALLED, SiteEvent.DIFFERED): Transition(SiteState.GIVEN_UP, CellChange.CLEAR),
    (SiteState.COUNTING, SiteEvent.HOT): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.INTERPRETED, SiteEvent.HOT): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.GIVEN_UP, SiteEvent.HOT): Transition(SiteState.QUEUED, work=Work.QUEUE),
}
"""The transition of every event, in the states in which it can occur."""


class TransitionError(BackendError):
    """An event came in a state that has no row for it: a fault of the engine."""

    def __init__(self, pc: int, state: SiteState, event: SiteEvent) -> None:
        super().__init__(f"the site at pc {pc} is {state}: no transition for {event.name}")


def transition(pc: int, state: SiteState, event: SiteEvent) -> Transition:
    """The transition of an event. Raises TransitionError where the table has no row."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise TransitionError(pc, state, event)
    return found


def markdown() -> str:
    """The table as docs/mixed-execution.md shows it."""
    lines = ["| state | event | next state | cell | then |", "|---|---|---|---|---|"]
    for (state, event), found in TRANSITIONS.items():
        cells = (state, f"{event.name}: {event.value}", found.state, found.cells.value)
        lines.append(f"| {' | '.join((*cells, found.work.value))} |")
    return "\n".join(lines)
