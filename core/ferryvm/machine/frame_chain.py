# SPDX-License-Identifier: Apache-2.0
"""The chain of frames on a stack, walked outwards in fewer steps than there are frames.

Each frame has the distance to its caller's frame, so the outermost frames are reached only through
all others. The frames of deep recursion repeat: after every few steps the walk looks for a period
of distances, and NumPy counts its repetitions. Other frames are walked one by one, for at most
MOST_STEPS.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Words = npt.NDArray[np.uint64]

Header = tuple[int, int]
"""Return pc and distance of a frame."""

WINDOW = 64
"""The number of frames after which a period is looked for, and in which."""

LONGEST_PERIOD = 16
"""The longest period, in frames."""

MOST_STEPS = 10_000
"""The largest number of frames that are walked one by one."""

MOST_REPEATED = 1 << 24
"""The largest number of frames that are skipped as repetitions."""

Item = TypeVar("Item")


@dataclasses.dataclass(frozen=True)
class Chain:
    """The active calls as pcs: the innermost and the outermost ones, each list outwards."""

    inner: list[int]
    outer: list[int]
    skipped: int
    """Number of calls between the two lists."""
    is_whole: bool
    """False if the walk stopped early: then there are more calls, uncounted, and the outermost ones
    are missing."""


def follow(stack: memoryview, pc: int, fp: int, most: int) -> Chain:
    """The chain from the frame at word `fp`, whose pc is `pc`; at most `most` frames of
    each end."""
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
            # Few stacks are that deep; where memory is exhausted NumPy could not be imported.
            import numpy as np

            words = np.frombuffer(stack, np.uint64)
            distances = period(list(recent))
            # Leave the outermost frames to be walked one by one.
            times = repeats(words, fp, [(None, one) for one in distances], MOST_REPEATED - repeated)
            times -= -(-most // len(distances)) if distances else 0
            if times > 0:
                fp -= times * sum(distances)
                pc = stack[fp + distance] - 1
                depth += times * len(distances)
                repeated += times * len(distances)
    return Chain(inner, [], 0, False)


def period(items: Sequence[Item]) -> Sequence[Item]:
    """The shortest suffix of the items such that they are all repetitions of it; empty if there is
    no short period."""
    for size in range(1, LONGEST_PERIOD + 1):
        if items[size:] == items[:-size]:
            return items[-size:]
    return ()


def repeats(
    words: Words, fp: int, headers: Sequence[tuple[int | None, int]], most: int | None = None
) -> int:
    """The number of repetitions of frames with these headers, from the one at `fp` outwards.

    A return pc of None matches any. `most`: a limit on the frames examined, if given.
    """
    import numpy as np

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
