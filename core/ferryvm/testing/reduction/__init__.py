# SPDX-License-Identifier: Apache-2.0
"""Reducing a program that shows a disagreement to a few instructions that still show it.

    program ─ bisect ─> place ─ cut ─> small program ─ shrink ─> smaller program
                          │                              ▲
                          └── no cut shows it: the whole program

Every candidate passes the verifier and shows the same disagreement: the same pair of backends, the
same kind of field, the same instruction; or the same failure of the backend to compile it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

from ferryvm.deadline import Deadline
from ferryvm.errors import FerryError
from ferryvm.listing.encode import encode
from ferryvm.program import Program
from ferryvm.testing.bisect import Bisector, DivergencePoint, LateError, UnpreparedError
from ferryvm.testing.differential import Differ
from ferryvm.testing.reduction.cut import bodies, cuts
from ferryvm.testing.reduction.interest import (
    Interest,
    Signature,
    failure_signature,
    signature,
)
from ferryvm.testing.reduction.relist import relist
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.trace import instruction_at
from ferryvm.verify import Verified

__all__ = ["Reduction", "reduce"]


@dataclasses.dataclass(frozen=True)
class Reduction:
    """The result of a reduction."""

    program: Program
    """The smallest program found; the one that was given if no smaller one shows it."""
    signature: Signature
    tried: int
    """Candidates that were judged."""
    is_complete: bool
    """False if time ran out or it was interrupted: going on might find a smaller one."""


class _TimeIsOver(BaseException):
    pass


def reduce(
    differ: Differ,
    bad: str,
    program: Verified,
    seconds: float = 60.0,
    seed: int = 0,
    improved: Callable[[Program], object] = lambda program: None,
    progress: Callable[[], object] = lambda: None,
    schedule: Schedule = Schedule.RANDOM,
) -> Reduction | None:
    """A small program that shows the same disagreement; None if the backends agree.

    `seed`: of the random schedule that shows it, if it takes one; `schedule`: ENVIRONMENT if it may
    take another floating-point environment. `improved` is called with each smaller program at once;
    Ctrl-C ends the search as running out of `seconds` does. Raises BackendError where a backend
    refuses the program.
    """
    deadline = Deadline(seconds)

    def check() -> None:
        progress()
        if deadline.is_over:
            raise _TimeIsOver

    try:
        bisector = Bisector(differ, bad, program, check, seconds=seconds, schedule=schedule)
        place = bisector.search(None, seed, (differ.against, *differ.backends))
        if place is None:
            return None
        row, _ = instruction_at(program.program, bisector.at(place.number).pc)
        wanted = signature(differ.against, place, row.mnemonic)
    except UnpreparedError as error:
        place, wanted = None, failure_signature(error)
    except (_TimeIsOver, LateError):
        raise FerryError(f"no place where they part was found within {seconds:g} s") from None

    interest = Interest(differ, wanted.bad, wanted, seed, check, improved)
    is_complete = False
    try:
        _search(interest, bisector, place)
        is_complete = True
    except (_TimeIsOver, KeyboardInterrupt):
        pass
    return Reduction(interest.best or program.program, wanted, interest.tried, is_complete)


def _search(interest: Interest, bisector: Bisector, place: DivergencePoint | None) -> None:
    from ferryvm.testing.reduction.shrink import shrink  # Hypothesis takes a while to import

    if place is not None:
        _first(interest, bisector, place)
    if interest.best is None:
        with contextlib.suppress(FerryError):
            listing, _ = relist(bisector.program)
            interest(encode(listing))
    if interest.best is None:
        interest(bisector.program.program)
    shrink(interest)


def _first(interest: Interest, bisector: Bisector, place: DivergencePoint) -> None:
    """Try cuts until one shows the disagreement."""
    for make in (cuts, bodies):
        with contextlib.suppress(FerryError):
            for candidate in make(bisector, place):
                if interest(candidate):
                    return
