# SPDX-License-Identifier: Apache-2.0
"""Schedules: the points at which a program moves from backend to backend.

none             never: each backend runs the program from start to end alone
random           at random fuel counts; after some of these moves it continues to its end
                 without counting
environment      as random, with another floating-point environment in the thread at each move,
                 as if other code had changed it
every-boundary   after every instruction, to each backend in turn
collect          as every-boundary, with a collection of objects at each move and each allocation
independence     never: the baseline checks that items of launches are independent
suspend          as every-boundary, and where an item of a launch runs it is suspended at each move
"""

from __future__ import annotations

import enum
import itertools
import math
import random
from collections.abc import Iterator, Sequence

from ferryvm.testing.environment import ENVIRONMENTS, USUAL

_LONGEST_STEP = 11
"""Binary logarithm of the most instructions that a random schedule runs before it moves on.
Logarithms are uniform, that of each schedule's own longest step too, so that short programs
move."""

_LATEST_UNCOUNTED = 20
"""Largest number of moves before a random schedule continues to the end without counting."""


class Schedule(enum.Enum):
    """A schedule, by name."""

    NONE = "none"
    RANDOM = "random"
    ENVIRONMENT = "environment"
    EVERY_BOUNDARY = "every-boundary"
    COLLECT = "collect"
    SUSPEND = "suspend"
    INDEPENDENCE = "independence"


Move = tuple[str, int | None]
"""A backend, and the largest number of instructions that it runs; None: to the end, uncounted."""


def environments(schedule: Schedule, seed: int) -> Iterator[str]:
    """For each move the name of the floating-point environment that the thread has."""
    if schedule is not Schedule.ENVIRONMENT:
        yield from itertools.repeat(USUAL)
    names = sorted({*ENVIRONMENTS} - {USUAL}, key=ENVIRONMENTS.__getitem__)
    chance = random.Random(~seed).random
    while True:
        yield names[int(len(names) * chance())]


def moves(
    schedule: Schedule, names: Sequence[str], seed: int, instructions: int, has_end: bool
) -> Iterator[Move]:
    """The moves of a program between backends, without end unless one is uncounted.

    `instructions`: how many the program completes; `has_end`: it is known to end there by itself,
    so it need not be counted. Every backend gets its turn where there are instructions enough.
    """
    if schedule in (Schedule.NONE, Schedule.INDEPENDENCE):
        raise ValueError("without a schedule a program does not move")
    if schedule in (Schedule.EVERY_BOUNDARY, Schedule.COLLECT, Schedule.SUSPEND):
        # The seed determines the first one, so that with two backends each can get either
        # instruction.
        first = seed % len(names)
        yield from ((name, 1) for name in itertools.cycle((*names[first:], *names[:first])))
        return
    chance = random.Random(seed).random  # the one method whose sequence Python promises
    first_order = sorted(names, key=lambda _: chance())
    uncounted = len(names) + int(_LATEST_UNCOUNTED * chance()) if has_end else 0
    fair = math.log2(max(1, instructions // len(names)))
    longest = min(_LONGEST_STEP, fair) * chance()
    for number in itertools.count():
        step, name = int(2 ** (longest * chance())), names[int(len(names) * chance())]
        if number < len(names):
            name = first_order[number]
        if uncounted and number == uncounted:
            yield name, None
            return
        yield name, step
