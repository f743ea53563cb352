# SPDX-License-Identifier: Apache-2.0
"""Random choices that are the same on every Python.

Everything is drawn from `random.Random.random`, the one method whose sequence Python promises to
preserve; `choice`, `randrange` and the rest may change between versions and are not used.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Weighted(Generic[T]):
    """Items, each drawn as often as its weight says."""

    def __init__(self, weights: Iterable[tuple[T, float]]) -> None:
        """Items of weight 0 are left out; at least one must be above."""
        pairs = [(item, weight) for item, weight in weights if weight > 0]
        items = [item for item, _ in pairs]
        # The last item occurs twice: a product may round up to the total, one past the end.
        self.items: tuple[T, ...] = (*items, *items[-1:])
        self.cumulative = tuple(itertools.accumulate(weight for _, weight in pairs))
        self.total = self.cumulative[-1] if pairs else 0.0


class Chance:
    """One sequence of random choices."""

    def __init__(self, *origin: object) -> None:
        """`origin`: the seed of the sequence, through the texts of its parts."""
        self._origin = origin
        text = "/".join(str(part) for part in origin)
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self.random = random.Random(int.from_bytes(digest, "little")).random
        """A float from 0 up to but not including 1."""

    def apart(self, name: str) -> Chance:
        """Another sequence of the same origin, which takes nothing from this one."""
        return Chance(*self._origin, name)

    def below(self, count: int) -> int:
        """An integer from 0 up to but not including `count`, which is at most 2^32."""
        return int(self.random() * count)

    def between(self, first: int, last: int) -> int:
        """An integer from `first` to `last`, both included."""
        return first + int(self.random() * (last - first + 1))

    def flip(self, probability: float) -> bool:
        """True with that probability."""
        return self.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, all alike."""
        return items[int(self.random() * len(items))]

    def weighted(self, table: Weighted[T]) -> T:
        """One of the items, by their weights."""
        return table.items[bisect(table.cumulative, self.random() * table.total)]

    def bits(self, count: int) -> int:
        """An integer of `count` random bits."""
        value = 0
        while count > 32:
            value = value << 32 | int(self.random() * 4294967296.0)
            count -= 32
        return value << count | int(self.random() * (1 << count))
