# SPDX-License-Identifier: Apache-2.0
"""Timing: interleaved rounds and the statistics over them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K")
M = TypeVar("M")


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two."""
    return statistics.median(values)


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers, None when there are none."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def interleave(
    tasks: Mapping[K, Callable[[], M]], rounds: int, at_most: Mapping[K, int]
) -> Iterator[tuple[K, M]]:
    """The tasks' measurements, one of each a round (A B C A B C ...).

    So a slow minute of the machine falls on everybody. A task in `at_most` sits out the rounds
    past its number.
    """
    for index in range(rounds):
        for key, task in tasks.items():
            if index < at_most.get(key, rounds):
                yield key, task()
