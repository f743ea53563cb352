# SPDX-License-Identifier: Apache-2.0
"""The chain of frames on a stack, followed outwards without a step for every frame.

Each frame names the distance to its caller's, so the outermost frames are only found by going past
all others. Where recursion is deep its frames repeat: after every few steps the walk looks for a
period of distances, and NumPy then says how often it goes on. What does not repeat is followed
frame by frame, for at most MOST_STEPS.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

Header = tuple[int, int]
"""Return pc and distance of a frame."""

WINDOW = 64
"""Frames after which a period is looked for, among as many."""

LONGEST_PERIOD = 16
"""Frames."""

MOST_STEPS = 10_000
"""Frames that are followed one by one."""

MOST_REPEATED = 1 << 24
"""Frames that are passed because they repeat."""

Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True)
class Chain:
    """The calls under way as pcs, each end outwards."""

    inner: list[int]
    outer: list[int]
    skipped: int
    """Calls between the two."""
    is_whole: bool
    """False if the walk gave up: then there are more calls, not counted, and no outer ones."""


def follow(stack: memoryview, pc: int, fp: int, most: int) -> Chain:
    """The chain from the frame at word `fp`, which stands at `pc`; at most `most` of each end."""
    words = np.frombuffer(stack, np.uint64)
    inner: list[int] = []
    outer: collections.deque[int] = collections.deque(maxlen=most)
    recent: collections.deque[int] = collections.deque(maxlen=WINDOW)
    depth = repeated = 0
    for step in range(1, MOST_STEPS + 1):
        (inner if depth < most else outer).append(pc)
        depth += 1
        distance = stack[fp + 1]
        if not distance:
            return Chain(inner, list(outer), depth - len(inner) - len(outer), True)
        pc, fp = stack[fp] - 1, fp - distance
        recent.append(distance)
        if step % WINDOW == 0 and step >= most:
            distances = period(list(recent))
            # The outermost frames are left to be followed.
            times = repeats(words, fp, [(None, one) for one in distances], MOST_REPEATED - repeated)
            times -= -(-most // len(distances)) if distances else 0
            if times > 0:
                fp -= times * sum(distances)
                pc = stack[fp + distance] - 1
                depth += times * len(distances)
                repeated += times * len(distances)
    return Chain(inner, [], 0, False)


def period(items: Sequence[Item]) -> Sequence[Item]:
    """The last of the items, of which all are repetitions; empty if there is no short period."""
    for size in range(1, LONGEST_PERIOD + 1):
        if items[size:] == items[:-size]:
            return items[-size:]
    return ()


def repeats(
    words: Words, fp: int, headers: Sequence[tuple[int | None, int]], most: int | None = None
) -> int:
    """Number of repetitions of frames with these headers, from the one at `fp` outwards.

    A return pc of None is any. `most`: frames that are looked at, if there is a limit.
    """
    size = sum(distance for _, distance in headers)
    limit = fp // size if size else 0
    if most is not None and headers:
        limit = min(limit, most // len(headers))
    found, count = 0, WINDOW
    while found < limit:
        count = min(count, limit - found)
        is_next = np.ones(count, bool)
        at = fp - found * size
        for return_pc, distance in headers:
            if return_pc is not None:
                is_next &= words[at::-size][:count] == return_pc
            is_next &= words[at + 1 :: -size][:count] == distance
            at -= distance
        if not is_next.all():
            return found + int(is_next.argmin())
        found += count
        count *= 8
    return found
