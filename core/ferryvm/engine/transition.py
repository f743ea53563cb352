# SPDX-License-Identifier: Apache-2.0
"""The states of a site in mixed execution, and the table of its transitions.

    cold ── HOT ──> queued ── STARTED ──> deciding ── CHOSEN ──> compiling ── COMPILED ──> installed
                      ▲                    │ ▲                    │  │                       │
                      ├── HOT ── observing <─┤ └─── TOO_LARGE ────┘  │                       │
                      ├── HOT ── interpreted <┘                      │                       │
                      ├── HOT ── counting <── EARLY ─────────────────┤                       │
                      ├── HOT ── given up <── REFUSED ───────────────┘ <──── DIFFERED ───────┤
                      └──────────────────────── GUARD, LOST ─────────────────────────────────┤
                                                                                             │
                                   recompiling <──────────────── LONG, DOUBTED ──────────────┤
                                        └─── COMPILED, REFUSED, BROKE ───────────────────────┘

A site has one state at a time. `TRANSITIONS` is the only definition of the transitions: an event
without a row for the current state is a fault of the engine, and is refused.
"""

from __future__ import annotations

import enum

from ferryvm.backend import BackendError
from ferryvm.named_tuple import NamedTuple


class SiteState(enum.StrEnum):
    """The state of a site."""

    COLD = "cold"
    """Its count is below the threshold; the journal has no entry for it."""
    QUEUED = "queued"
    """Its job for the compile thread is submitted or about to be."""
    DECIDING = "deciding"
    """The policy selects a region that starts there, and a rule."""
    OBSERVING = "observing"
    """The rule speculates: the interpreter counts the taken edges of branches."""
    COMPILING = "compiling"
    """The backends of the rule compile its region."""
    INSTALLED = "installed"
    """The interpreter enters its code."""
    RECOMPILING = "recompiling"
    """The interpreter enters its code while its backend compiles better code."""
    COUNTING = "counting"
    """It is counted up to the higher threshold of a backend."""
    INTERPRETED = "interpreted"
    """No rule matches its regions, or no region starts there."""
    GIVEN_UP = "given up"
    """There is no usable code for it."""


class SiteEvent(enum.Enum):
    """An event at a site; the value describes it."""

    WHOLE = "the policy compiles the whole program before it starts"
    HOT = "its count reached the threshold"
    SLICED = "compiled code left there at the end of its time slice"
    LAUNCH = "code around the launch was compiled, or code of its items is hot"
    NESTED = "code for a site inside its loop was installed"
    STARTED = "the compile thread starts its job"
    CHOSEN = "a rule selected one of its regions, now or earlier"
    UNOBSERVED = "a rule that speculates selected a region whose branches were not observed"
    UNWANTED = "no rule matches any of its regions"
    NO_REGION = "no region starts there"
    COMPILED = "a backend compiled the region"
    EARLY = "a backend has a higher threshold"
    WAITED = "code with another entry of its nest is expected soon, or is there"
    TOO_LARGE = "the region exceeds the limits of the backends, and a smaller one starts there"
    REFUSED = "no backend compiled the region"
    DENIED = "the policy requires compiled code, and there is none"
    BROKE = "an error outside the backends"
    GUARD = "a guard of its code failed too often"
    LOST = "its code cannot be run any more"
    DIFFERED = "a shadow found that its code is wrong"
    LONG = "its quick code has run long"
    DOUBTED = "too many items of its launch failed a guard of its code"


class CellChange(enum.Enum):
    """The change of cells that goes with a change of state."""

    NONE = ""
    COUNT = "a count cell"
    COUNT_AROUND = "count cells at the loops around it"
    OBSERVE = "count cells there and at the targets of its branches"
    STOP_OBSERVING = "the targets' cells are read and removed"
    ENTER = "an enter cell"
    REPLACE = "an enter cell for the new code"
    CLEAR = "no cell"


class Work(enum.Enum):
    """The work that follows a change of state."""

    NONE = ""
    QUEUE = "submit a job to the compile thread"
    DECIDE = "ask the policy"
    COMPILE = "ask the backends of the rule in order"
    HASTEN = "signal NESTED to the head of its loop, or of the one that it waits for"
    WARN = "warn, or end the program if the policy requires code"
    RECOMPILE = "submit a job to the compile thread: ask the backend of its code again"
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
    (SiteState.COLD, SiteEvent.LAUNCH): Transition(SiteState.QUEUED, work=Work.QUEUE),
    (SiteState.COLD, SiteEvent.NESTED): Transition(SiteState.COLD, CellChange.COUNT),
    (SiteState.QUEUED, SiteEvent.STARTED): Transition(SiteState.DECIDING, work=Work.DECIDE),
    (SiteState.DECIDING, SiteEvent.CHOSEN): Transition(SiteState.COMPILING, work=Work.COMPILE),
    (SiteState.DECIDING, SiteEvent.UNOBSERVED): Transition(SiteState.OBSERVING, CellChange.OBSERVE),
    (SiteState.DECIDING, SiteEvent.WAITED): Transition(
        SiteState.COUNTING, CellChange.COUNT, Work.HASTEN
    ),
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
    (SiteState.INSTALLED, SiteEvent.LONG): Transition(SiteState.RECOMPILING, work=Work.RECOMPILE),
    (SiteState.INSTALLED, SiteEvent.DOUBTED): Transition(
        SiteState.RECOMPILING, work=Work.RECOMPILE
    ),
    (SiteState.RECOMPILING, SiteEvent.COMPILED): Transition(
        SiteState.INSTALLED, CellChange.REPLACE
    ),
    (SiteState.RECOMPILING, SiteEvent.REFUSED): Transition(SiteState.INSTALLED),
    (SiteState.RECOMPILING, SiteEvent.BROKE): Transition(SiteState.INSTALLED, work=Work.WARN),
    (SiteState.RECOMPILING, SiteEvent.GUARD): Transition(
        SiteState.QUEUED, CellChange.CLEAR, Work.QUEUE
    ),
    (SiteState.RECOMPILING, SiteEvent.LOST): Transition(
        SiteState.QUEUED, CellChange.CLEAR, Work.QUEUE
    ),
    (SiteState.RECOMPILING, SiteEvent.DENIED): Transition(
        SiteState.GIVEN_UP, CellChange.CLEAR, Work.END
    ),
    (SiteState.RECOMPILING, SiteEvent.DIFFERED): Transition(SiteState.GIVEN_UP, CellChange.CLEAR),
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
