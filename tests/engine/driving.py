# SPDX-License-Identifier: Apache-2.0
"""Programs whose sites take given rows of the table of transitions."""

from __future__ import annotations

import functools
from collections.abc import Callable

import ferryvm
from ferryvm.engine import Execution
from ferryvm.engine.mixed import MixedArtifact
from ferryvm.engine.tiering import Tiering
from ferryvm.engine.transition import (
    SiteEvent,
    SiteState,
)

State, On = SiteState, SiteEvent
Row = tuple[SiteState, SiteEvent]
Driven = Callable[..., Execution]

LOOP = ferryvm.compile("(define i 0) (while (< i 3000) (set! i (+ i 1))) i")
LATE = ferryvm.compile("""
(define i 0) (define rare 0)
(while (< i 3000) (if (> i 2000) (set! rare (+ rare i))) (set! i (+ i 1)))
rare""")
"""A loop whose branch takes one path from the 2001st iteration on."""

DRIVEN: set[Row] = set()
"""Rows that a test takes; the tests of two modules are in it."""


def tiering(execution: Execution) -> Tiering:
    """The sites of a program that has run on its engine's backend."""
    ((_, artifact),) = execution._prepared.values()
    assert isinstance(artifact, MixedArtifact)
    return artifact.tiering


def taken(execution: Execution) -> set[Row]:
    """The rows that the sites of a program have taken."""
    rows = set()
    for site in tiering(execution).sites.values():
        states = [SiteState.COLD, *(step.after for step in site.history)]
        assert [step.before for step in site.history] == states[:-1]
        assert (site.state, site.placement is None) == (states[-1], set(states) == {State.COLD})
        assert all(step.reason for step in site.history)
        assert sorted(step.at for step in site.history) == [step.at for step in site.history]
        if site.placement is not None:
            assert site.placement.history is site.history
            assert site.placement.state is site.state
        rows |= {(step.before, step.event) for step in site.history}
    return rows


def drives(*rows: Row) -> Callable[[Driven], Callable[..., None]]:
    """A test whose execution takes these rows."""

    def around(test: Driven) -> Callable[..., None]:
        @functools.wraps(test)
        def driven(*arguments: object, **fixtures: object) -> None:
            assert set(rows) - taken(test(*arguments, **fixtures)) == set()

        DRIVEN.update(rows)
        return driven

    return around
