# SPDX-License-Identifier: Apache-2.0
"""Traces of an observer's events for Chrome (about:tracing) and Perfetto.

    row 1   the program: entries of the interpreter, inside them runs of compiled code; guards,
            sites that got hot, code installed
    row 2   compilations

The JSON array of "Trace Event Format" (Google, 2016,
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): complete events
(`X`), instant events (`i`) and metadata (`M`), with times in microseconds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ferryvm.atomic_file import replace_file
from ferryvm.engine.journal import Attempt, Event
from ferryvm.engine.observer import Happening, Observer
from ferryvm.engine.transition import SiteState
from ferryvm.hooks import TransferEvent

_COMPILING = (SiteState.COMPILING, SiteState.RECOMPILING)

PROGRAM, COMPILATION = 1, 2
"""Rows: thread numbers in the trace."""

Json = dict[str, object]


def write(observer: Observer, path: Path) -> None:
    """Write the events so far as a trace. Raises OSError."""
    lines = ",\n".join(json.dumps(event) for event in events(observer))
    replace_file(path, f"[\n{lines}\n]\n".encode())


def events(observer: Observer) -> list[Json]:
    """The events of a trace: metadata, then the others in the order of their times."""
    found = [*_placements(observer), *_transfers(observer)]
    return [*_metadata(observer), *sorted(found, key=_start)]


def _start(event: Json) -> tuple[float, float]:
    """The sort key of an event: of two that start together the longer, enclosing one comes
    first."""
    at, duration = event["ts"], event.get("dur", 0.0)
    assert isinstance(at, float)
    assert isinstance(duration, float)
    return at, -duration


def _metadata(observer: Observer) -> Iterator[Json]:
    yield _event("process_name", "M", PROGRAM, args={"name": "ferryvm"})
    for row, name in ((PROGRAM, "program"), (COMPILATION, "compilation")):
        yield _event("thread_name", "M", row, args={"name": name})
        yield _event("thread_sort_index", "M", row, args={"sort_index": row})
    if observer.dropped:
        args = {"limit": observer.limit, "dropped": dict(observer.dropped)}
        yield _event("transfers_dropped", "M", PROGRAM, args=args)


def _placements(observer: Observer) -> Iterator[Json]:
    for one in observer.happenings:
        if isinstance(one.detail, Attempt):
            yield _attempt(observer, one, one.detail)
        else:
            name = f"{one.event.value} {one.placement.region or f'pc {one.placement.pc}'}"
            args: Json = {"pc": one.placement.pc, "region": one.placement.region}
            args["why"] = one.placement.why
            if one.event is Event.GUARD:
                args["guard"] = one.detail
            at = one.at - observer.began
            yield _event(name, "i", PROGRAM, at, cat="placement", s="t", args=args)
    yield from _unfinished(observer)


def _unfinished(observer: Observer) -> Iterator[Json]:
    """The running compilation."""
    unfinished = [place for place in observer.placements if place.state in _COMPILING]
    if not unfinished:
        return
    place = unfinished[0]
    decided = [one.at for one in observer.happenings if one.placement is place]
    others = [one.at for one in observer.happenings if one.event is Event.ATTEMPT]
    began = max(decided + others)  # one is compiled at a time
    name = f"compiling {place.region}"
    seconds = time.perf_counter() - began
    args: Json = {"region": place.region, "outcome": "under way at the end"}
    more: Json = {"cat": "compilation", "dur": seconds * 1e6, "args": args}
    yield _event(name, "X", COMPILATION, began - observer.began, **more)


def _attempt(observer: Observer, one: Happening, attempt: Attempt) -> Json:
    args: Json = {
        "region": attempt.region,
        "backend": attempt.backend,
        "outcome": attempt.outcome.value,
        "guards": attempt.guards,
    }
    if attempt.is_quick:
        args["quick"] = True
    if attempt.reason:
        args["reason"] = attempt.reason
    if attempt.code is not None:
        args["steps"] = {name: seconds * 1e6 for name, seconds in attempt.code.notes.items()}
    began = one.at - attempt.seconds - observer.began  # the event was recorded at its end
    return _event(
        f"{attempt.backend} {attempt.region}",
        "X",
        COMPILATION,
        began,
        cat="compilation",
        dur=attempt.seconds * 1e6,
        args=args,
    )


def _transfers(observer: Observer) -> Iterator[Json]:
    for category, transfers in (("entry", observer.entries), ("transfer", observer.transfers)):
        for transfer in transfers:
            yield _transfer(observer, transfer, category)


def _transfer(observer: Observer, transfer: TransferEvent, category: str) -> Json:
    args: Json = {
        "backend": transfer.backend,
        "entry": transfer.entry,
        "exit": transfer.exit,
        "status": transfer.status.name,
    }
    if transfer.region:
        args["region"] = transfer.region
    return _event(
        f"{transfer.backend} {transfer.region}".strip(),
        "X",
        PROGRAM,
        transfer.began - observer.began,
        cat=category,
        dur=transfer.seconds * 1e6,
        args=args,
    )


def _event(name: str, phase: str, row: int, at: float = 0.0, **more: object) -> Json:
    """An event `at` seconds after the observer's start."""
    where: Json = {"name": name, "ph": phase, "pid": os.getpid(), "tid": row}
    return {**where, "ts": at * 1e6, **more}
