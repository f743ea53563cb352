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
from typing import NamedTuple

from ferryvm.isa.element import Element
from ferryvm.isa.type import Type
from ferryvm.portable.expression import Expression, Place, leaves_of, value_of
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.sample import STYLES, ArrayInput, Input, edge_bits, element_bits, float_bits

_COUNTS = (2, 1, 0, 3, 1, 2, 1)
"""Groups along an axis, launch by launch."""

_MOST_GROUPS = 12
"""Groups of a launch, at most."""

_MEMBERS = (4, 8, 2, 3, 16, 1, 5, 7)
"""Members of a group where they are an argument, launch by launch, and numbers on which they depend."""

_MOST_SAMPLED = 64
"""Members of a group where they are an argument, at most."""

_MOST_BYTES = 1 << 14
"""Bytes of the arrays of a group whose lengths are arguments, at most."""

_SIZE_TRIES = 100

_AXIS_TRIES = 4
"""Launches with a second group along an axis, until one succeeds."""


class GroupSizes(NamedTuple):
    """Sizes of the groups of a launch, by places of its parameters."""

    members: Sequence[Expression]
    """Along each axis."""
    arrays: Sequence[tuple[Expression, int]]
    """Of arrays of a group whose length is no constant: the length, bytes of an element."""
    usual: int | None
    """Members in the program, if they are a constant there."""
    least: int = 1
    """Members where they are an argument, at least."""

    @property
    def leaves(self) -> list[Place]:
        """The arguments and lengths that are sizes, those first on which the members depend."""
        found = (leaf for each in self.members for leaf in leaves_of(each))
        others = (leaf for length, _ in self.arrays for leaf in leaves_of(length))
        return [each for each in dict.fromkeys((*found, *others)) if isinstance(each, Place)]


class GroupSampler:
    """Arguments of one launch after another, without end. The first launches have a second group
    along an axis each, all others as many as `most` says."""

    def __init__(
        self,
        kinds: Sequence[Type | Element],
        seed: int,
        shapes: Mapping[int, tuple[int, ...]],
        sizes: GroupSizes,
        folded: Mapping[int, int],
    ) -> None:
        """As many of the first arguments are numbers of groups as `sizes` has axes. `shapes`,
        `folded`: as of `ferryvm.portable.sample.inputs`."""
        self.kinds, self.shapes, self.sizes, self.folded = kinds, shapes, sizes, folded
        self.axes = len(sizes.members)
        self.chance = random.Random(f"groups {seed}")
        self.most = _MOST_GROUPS
        """Groups of a launch, at most."""
        self.may_share = True
        """True if two arguments may be one array."""
        self._number = 0
        self._axes = [axis for axis in range(self.axes) for _ in range(_AXIS_TRIES)]
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
            return [2 if each == axis else 1 for each in range(self.axes)]
        first = _COUNTS[number % len(_COUNTS)]
        counts = [first, *(self.chance.choice((first, first, 1)) for _ in range(1, self.axes))]
        if number > len(_COUNTS):
            counts = [max(count, 1) for count in counts]
        while math.prod(counts) > self.most:
            counts[counts.index(max(counts))] -= 1
        return counts

    def chosen(self, number: int) -> dict[str | Place, int]:
        """Arguments and lengths on which the sizes of a launch depend. Raises ExportError if no group
        becomes small by them."""
        leaves, sizes = self.sizes.leaves, self.sizes
        own = [leaf for each in sizes.members for leaf in leaves_of(each)]
        usual = sizes.usual or _MEMBERS[0]
        for tried in range(_SIZE_TRIES):
            found: dict[str | Place, int] = {leaf: self.chance.choice(_MEMBERS) for leaf in own}
            if own and not tried:
                found[own[0]] = (usual, *_MEMBERS)[number % (1 + len(_MEMBERS))]
            members = math.prod(value_of(each, found) for each in sizes.members)
            if own and not sizes.least <= members <= _MOST_SAMPLED:
                continue
            near = (members, members, 2 * members, members + 1, max(1, members - 1))
            found |= {leaf: self.chance.choice(near) for leaf in leaves if leaf not in own}
            arrays = [(value_of(n, found), width) for n, width in sizes.arrays]
            are_possible = all(length >= 0 for length, _ in arrays)
            if are_possible and sum(length * width for length, width in arrays) <= _MOST_BYTES:
                return found
        what = f"no small arguments give groups of {self.sizes.least} to {_MOST_SAMPLED} members"
        raise ExportError(what, "choose the size, or make an argument a constant (--fold)")


class Launch:
    """The arguments of a launch."""

    def __init__(
        self, sampler: GroupSampler, number: int, axis: int | None, tried: int | None
    ) -> None:
        """`axis`: the one that has a second group, for which so many launches have been tried;
        None: as the sampler chooses."""
        self.chance, self.number, self.axis = sampler.chance, number, axis
        self.may_share = sampler.may_share
        kinds, shapes, folded = sampler.kinds, sampler.shapes, sampler.folded
        counts = sampler.counts(number, axis)
        self.chosen = sampler.chosen(number) if sampler.sizes.leaves else {}
        """Arguments and lengths on which sizes depend."""
        sizes = [value_of(each, self.chosen) for each in sampler.sizes.members]
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
            if (chosen := self.chosen.get(Place(place))) is not None:
                self.made.append(chosen)
            elif place in dimensions:
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
        if (chosen := self.chosen.get(Place(place, True))) is not None:
            return self._elements(element, chosen)
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
