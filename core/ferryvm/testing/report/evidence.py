# SPDX-License-Identifier: Apache-2.0
"""Details of a disagreement: where the backends diverge, and the state around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.errors import FerryError
from ferryvm.isa.type import WORD_BYTES, ValueType
from ferryvm.machine.difference import Place, is_nan, stack_places, static_places
from ferryvm.machine.sparse import Sparse
from ferryvm.testing.bisect import Bisector, DivergenceMode, Parting
from ferryvm.testing.differential import Comparison, Differ
from ferryvm.testing.environment import ENVIRONMENTS
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.state import StoppedState
from ferryvm.testing.trial import Trial
from ferryvm.verify import Verified

_AROUND = 5
"""Words that are shown on each side of the first one that differs."""

_OUTPUT_SHOWN = 400
"""Bytes of output that are shown, the last ones."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One field of the state on both sides; None where a side has none."""

    name: str
    type: ValueType | None
    good: int | str | None
    bad: int | str | None
    differs: bool


@dataclasses.dataclass(frozen=True)
class Group:
    """Fields of one kind, those around the first difference."""

    name: str
    parts: tuple[Part, ...]
    total: int
    """The number of fields, of which `parts` are some."""
    differing: int
    """Number of differences."""


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A disagreement from near."""

    parting: Parting | None
    """The divergence of the backends; None if it was not found."""
    reason: str | None
    """The reason that it was not."""
    groups: tuple[Group, ...] = ()
    """The state right after the instruction at which they diverge."""


def gather(
    differ: Differ,
    program: Verified,
    comparison: Comparison,
    seed: int = 0,
    progress: Callable[[], object] = lambda: None,
    schedule: Schedule = Schedule.RANDOM,
) -> Evidence:
    """The divergence of the backends in a disagreement, found by bisection, and the state there."""
    reason = "running it again, no place was found at which the backends part"
    for bad in comparison.backends:
        if bad == differ.against:
            continue
        try:
            bisector = Bisector(differ, bad, program, progress, schedule=schedule)
            parting = bisector.find(seed=seed, names=(differ.against, *differ.backends))
        except FerryError as error:
            reason = str(error)
            continue
        if parting is not None:
            return Evidence(parting, None, _states(bisector, parting))
    return Evidence(None, reason)


def _states(bisector: Bisector, parting: Parting) -> tuple[Group, ...]:
    """The state on both sides right after the instruction at which they diverge."""
    bad = bisector.at(parting.entered).fork()
    bad.environment = ENVIRONMENTS[parting.environment]
    if parting.mode in (DivergenceMode.UNCOUNTED, DivergenceMode.ENTERED):
        good = bisector.end
        bad.attempt(parting.bad, None, bisector.patience)
    else:
        good = bisector.at(parting.number + 1)
        count = parting.number + 1 - parting.entered
        bad.attempt(parting.bad, count, bisector.patience)
    try:
        return surroundings(good, bad)
    except ValueError:  # a status or trap that there is not: the difference says so
        return ()


def surroundings(good: Trial, bad: Trial) -> tuple[Group, ...]:
    """The registers of two trials, and the memory around the first difference elsewhere."""
    machine = good.execution.machine
    left, right = good.state(), bad.state()
    a, b = left.machine, right.machine
    groups = [
        _registers(left, right),
        _words("stack", stack_places(machine), Sparse.of(a.stack), Sparse.of(b.stack)),
        _words("statics", static_places(machine), Sparse.of(a.statics), Sparse.of(b.statics)),
        _words("heap", [], a.heap, b.heap),
        _output(left.output, right.output),
    ]
    return tuple(group for group in groups if group.parts)


def _registers(left: StoppedState, right: StoppedState) -> Group:
    a, b = left.machine, right.machine
    parts: list[Part] = []

    def add(name: str, good: int | str | None, bad: int | str | None) -> None:
        parts.append(Part(name, None, good, bad, good != bad))

    add("status", a.status.name, b.status.name)
    add("trap", a.trap.name, b.trap.name)
    for name in ("pc", "sp", "fp", "hp"):
        add(name, getattr(a, name), getattr(b, name))
    if left.fuel is not None and right.fuel is not None:
        add("fuel left", left.fuel, right.fuel)
    return Group("registers", tuple(parts), len(parts), sum(part.differs for part in parts))


def _words(name: str, places: list[Place], left: Sparse, right: Sparse) -> Group:
    """Words around the first that differs; the heap's have no places and go by address."""
    if left == right:
        return Group(name, (), 0, 0)
    shorter, longest = sorted(-(-len(one) // WORD_BYTES) for one in (left, right))
    unequal = [
        number
        for number in left.unequal(right)
        if not _are_both_nan(places, number, _word(left, number), _word(right, number))
    ]
    differing = len(unequal) + longest - shorter
    if not differing:
        return Group(name, (), longest, 0)
    first = unequal[0] if unequal else shorter
    at = set(unequal[: 2 * _AROUND])
    parts = []
    for number in range(max(0, first - _AROUND), min(longest, first + _AROUND + 1)):
        nameless = f"byte {number * WORD_BYTES}" if not places else f"word {number}"
        place, t = places[number] if number < len(places) else (nameless, None)
        good, bad = _word(left, number), _word(right, number)
        parts.append(Part(place, t, good, bad, number in at or number >= shorter))
    return Group(name, tuple(parts), longest, differing)


def _word(content: Sparse, number: int) -> int | None:
    """A word, the last one filled up with zeros; None past it."""
    found = content.cut(number * WORD_BYTES, (number + 1) * WORD_BYTES)
    return int.from_bytes(found, "little") if found else None


def _are_both_nan(places: list[Place], number: int, good: int | None, bad: int | None) -> bool:
    t = places[number][1] if number < len(places) else None
    if t is None or good is None or bad is None:
        return False
    return is_nan(t, good) and is_nan(t, bad)


def _output(left: bytes, right: bytes) -> Group:
    if left == right:
        return Group("output", (), 0, 0)
    shown = [part[-_OUTPUT_SHOWN:].decode(errors="replace") for part in (left, right)]
    part = Part(f"last {_OUTPUT_SHOWN} bytes", None, shown[0], shown[1], True)
    return Group("output", (part,), 1, 1)
