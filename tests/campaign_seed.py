# SPDX-License-Identifier: Apache-2.0
"""Seeds of campaigns, found when they are needed: each new instruction changes random programs."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable

from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.machine.control import Status
from ferryvm.testing.generate import LIMITS, Weights, generate
from ferryvm.verify import Verified, verify

from .double.campaign import is_hit

Hits = tuple[int, ...]
"""Numbers of programs on which bad backends go wrong."""

_LOCAL = 2
"""The word of the first local of main, after its header."""


def halts(program: Verified) -> bool:
    """True if a program ends without a trap: a backend that lies then shows."""
    return _ending(program, 0)[0] is Status.HALT


def keeps_a_local(program: Verified) -> bool:
    """True if main's first local is another one at the end if it is at the start: compiled code
    that forges it shows."""
    return _ending(program, 0)[1] != _ending(program, 1)[1]


@functools.cache
def seed_with_hits(
    programs: int,
    turn: int = 0,
    weights: Weights | None = None,
    shows: Callable[[Verified], bool] = halts,
) -> tuple[int, Hits]:
    """The first seed of which at least two and at most half of so many programs are hit, and go
    wrong visibly on one of them at least; and the numbers of those that are hit."""
    for seed in itertools.count(1):
        made = [verify(generate(seed, number, weights=weights)) for number in range(programs)]
        hits = tuple(number for number, program in enumerate(made) if is_hit(program, turn))
        if 2 <= len(hits) <= programs // 2 and any(shows(made[number]) for number in hits):
            return seed, hits
    raise AssertionError("there is no such seed")


def _ending(program: Verified, change: int) -> tuple[Status, int]:
    """The status and main's first local at the end of a run in which that local starts changed."""
    execution = Engine("switch", limits=LIMITS).start(program)
    execution.machine.memory.stack[_LOCAL] ^= change
    with contextlib.suppress(FerryError):
        execution.run()
    return execution.machine.status, execution.machine.memory.stack[_LOCAL]
