# SPDX-License-Identifier: Apache-2.0
"""Random inputs of launches of groups, by a seed: few groups, arrays with an element for each item,
small numbers.

Most calls of a kernel need sizes that fit together, so these are chosen first; every fourth call
has some that do not fit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from ferryvm.isa.element import Element
from ferryvm.isa.type import Type
from ferryvm.portable.sample import STYLES, ArrayInput, Input, edge_bits, element_bits, float_bits

_COUNTS = (2, 1, 0, 3, 1, 2, 1)
"""Groups along an axis, launch by launch."""

_MOST_GROUPS = 12
"""Groups of a launch, at most."""

_AXIS_TRIES = 4
"""Launches with a second group along an axis, until one succeeds."""


class GroupSampler:
    """Arguments of one launch after another, without end. The first launches have a second group
    along an axis each, all others as many as `most` says."""

    def __init__(
        self,
        kinds: Sequence[Type | Element],
        seed: int,
        shapes: Mapping[int, tuple[int, ...]],
        sizes: Sequence[int],
        folded: Mapping[int, int],
    ) -> None:
        """`sizes`: members of a group along each axis; so many of the first arguments are the
        numbers of groups. `shapes`, `folded`: as of `ferryvm.portable.sample.inputs`."""
        self.kinds, self.shapes, self.sizes, self.folded = kinds, shapes, sizes, folded
        self.chance = random.Random(f"groups {seed}")
        self.most = _MOST_GROUPS
        """Groups of a launch, at most."""
        self.may_share = True
        """True if two arguments may be one array."""
        self._number = 0
        self._axes = [axis for axis in range(len(sizes)) for _ in range(_AXIS_TRIES)]
        """The axes of the next launches with a second group along one."""

    def cover(self, *axes: int | None) -> None:
        """Make no more launches for axes, as one has succeeded."""
        self._axes = [each for each in self._axes if each not in axes]

    def limit(self, most: int) -> None:
        """Set the groups of a launch that are affordable."""
        self.most = max(1, min(_MOST_GROUPS, most))

    def next(self) -> Launch:
        """The next launch."""
        axis = self._axes.pop(0) if self._axes else None
        tried = None if axis is None else _AXIS_TRIES - 1 - self._axes.count(axis)
        launch = Launch(self, self._number, axis, tried)
        self._number += 1
        return launch

    def counts(self, number: int, axis: int | None) -> list[int]:
        """The numbers of groups of a launch along the axes."""
        if axis is not None:
            return [2 if each == axis else 1 for each in range(len(self.sizes))]
        first = _COUNTS[number % len(_COUNTS)]
        counts = [first, *(self.chance.choice((first, first, 1)) for _ in self.sizes[1:])]
        if number > len(_COUNTS):
            counts = [max(count, 1) for count in counts]
        while math.prod(counts) > self.most:
            counts[counts.index(max(counts))] -= 1
        return counts


class Launch:
    """The arguments of a launch."""

    def __init__(
        self, sampler: GroupSampler, number: int, axis: int | None, tried: int | None
    ) -> None:
        """`axis`: the one that has a second group, for which so many launches have been tried;
        None: as the sampler chooses."""
        self.chance, self.number, self.axis = sampler.chance, number, axis
        self.may_share = sampler.may_share
        kinds, shapes, folded, sizes = sampler.kinds, sampler.shapes, sampler.folded, sampler.sizes
        counts = sampler.counts(number, axis)
        self.groups = math.prod(counts)
        self.items = [count * size for count, size in zip(counts, sizes, strict=True)]
        self.members, self.total = math.prod(sizes), math.prod(self.items)
        self.style = STYLES[number % len(STYLES)] if number > 2 else "plain"
        if axis is not None:
            self.style = "mixed"
        self.is_uneven = number % 4 == 3 and axis is None
        """True if some sizes do not fit, so that most kernels fail early."""
        self.bound = self.chance.choice((8, self.members, self.total))
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
        for at, (place, places) in enumerate(shapes.items(), 1):
            element = kinds[place]
            assert isinstance(element, Element)
            lengths = self._lengths(len(places), None if tried is None else tried == at)
            lengths = [folded.get(n, length) for n, length in zip(places, lengths, strict=True)]
            for dimension, length in zip(places, lengths, strict=True):
                self.made[dimension] = length
            self.made[place] = self._elements(element, math.prod(lengths))
        for place, bits in folded.items():
            self.made[place] = bits

    def _lengths(self, dimensions: int, is_turned: bool | None) -> list[int]:
        """The lengths of an array's dimensions. `is_turned`: those of the items in the opposite
        order; None: by chance."""
        if dimensions != len(self.items):
            found = [self.chance.choice(self.items) for _ in range(dimensions)]
        else:
            if is_turned is None:
                is_turned = self.chance.random() < 0.3
            found = self.items[::-1] if is_turned else self.items
        if self.is_uneven:
            return [max(0, length + self.chance.choice((0, 0, 1, -1))) for length in found]
        return found

    def _array(self, kinds: Sequence[Type | Element], place: int, element: Element) -> ArrayInput:
        same = next((at for at, kind in enumerate(kinds[:place]) if kind is element), None)
        if self.number % 6 == 5 and self.may_share and same is not None:
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
