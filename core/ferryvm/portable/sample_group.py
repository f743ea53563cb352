# SPDX-License-Identifier: Apache-2.0
"""Random inputs of launches of groups, by a seed: few groups, arrays with an element for each item,
small numbers.

Most calls of a kernel need sizes that fit together, so these are chosen first; every fourth call
has some that do not fit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence

from ferryvm.isa.element import Element
from ferryvm.isa.type import Type
from ferryvm.portable.sample import STYLES, ArrayInput, Input, edge_bits, element_bits, float_bits

_COUNTS = (1, 2, 1, 3, 0, 1, 2)
"""Groups along an axis, call by call."""


def group_inputs(
    kinds: Sequence[Type | Element],
    seed: int,
    shapes: Mapping[int, tuple[int, ...]],
    sizes: Sequence[int],
    folded: Mapping[int, int],
) -> Iterator[list[Input]]:
    """Arguments of one launch after another, without end. `sizes`: members of a group along each
    axis; so many of the first arguments are the numbers of groups. `shapes`, `folded`: as of
    `ferryvm.portable.sample.inputs`."""
    chance = random.Random(f"groups {seed}")
    number = 0
    while True:
        yield _Launch(kinds, chance, shapes, sizes, number, folded).made
        number += 1


class _Launch:
    def __init__(
        self,
        kinds: Sequence[Type | Element],
        chance: random.Random,
        shapes: Mapping[int, tuple[int, ...]],
        sizes: Sequence[int],
        number: int,
        folded: Mapping[int, int],
    ) -> None:
        self.chance, self.number = chance, number
        first = _COUNTS[number % len(_COUNTS)]
        counts = [first, *(chance.choice((first, first, 1)) for _ in sizes[1:])]
        if number > len(_COUNTS):
            counts = [max(count, 1) for count in counts]
        self.items = [count * size for count, size in zip(counts, sizes, strict=True)]
        self.members, self.total = math.prod(sizes), math.prod(self.items)
        self.style = STYLES[number % len(STYLES)] if number > 2 else "plain"
        self.is_uneven = number % 4 == 3
        self.bound = chance.choice((8, self.members, self.total))
        """Integers are often indices below it."""
        dimensions = {place for places in shapes.values() for place in places}
        self.made: list[Input] = [*counts]
        for place, kind in enumerate(kinds[len(counts) :], len(counts)):
            if place in dimensions:
                self.made.append(0)  # until its array is made
            elif not isinstance(kind, Element):
                self.made.append(self._scalar(kind))
            elif place in shapes:
                self.made.append(ArrayInput([]))
            else:
                self.made.append(self._array(kinds, place, kind))
        for place, places in shapes.items():
            element = kinds[place]
            assert isinstance(element, Element)
            lengths = self._lengths(len(places))
            lengths = [folded.get(at, length) for at, length in zip(places, lengths, strict=True)]
            for at, length in zip(places, lengths, strict=True):
                self.made[at] = length
            self.made[place] = self._elements(element, math.prod(lengths))
        for place, bits in folded.items():
            self.made[place] = bits

    def _lengths(self, dimensions: int) -> list[int]:
        """The lengths of an array's dimensions."""
        if dimensions != len(self.items):
            found = [self.chance.choice(self.items) for _ in range(dimensions)]
        else:
            found = self.items if self.chance.random() < 0.7 else self.items[::-1]
        if self.is_uneven:
            return [max(0, length + self.chance.choice((0, 0, 1, -1))) for length in found]
        return found

    def _array(self, kinds: Sequence[Type | Element], place: int, element: Element) -> ArrayInput:
        same = next((at for at, kind in enumerate(kinds[:place]) if kind is element), None)
        if self.number % 6 == 5 and same is not None:
            first = self.made[same]
            assert isinstance(first, ArrayInput)
            return ArrayInput(first.bits, same if first.same is None else first.same)
        length = self.total
        if self.is_uneven:
            more = (length - 1, length - self.members // 2, length + 3, self.members, 1)
            length = max(0, self.chance.choice(more))
        return self._elements(element, length)

    def _elements(self, element: Element, length: int) -> ArrayInput:
        bound = min(self.bound, length)
        return ArrayInput(
            [element_bits(element, self.chance, self.style, bound) for _ in range(length)]
        )

    def _scalar(self, t: Type) -> int:
        edges = edge_bits(t)
        if t.is_float:
            return float_bits(t, self.chance, self.number)
        if self.number % 9 == 8:
            return edges[self.number // 9 % len(edges)]
        return self.chance.choice((0, 1, 2, 3, 5, self.members, self.total)) & t.mask
