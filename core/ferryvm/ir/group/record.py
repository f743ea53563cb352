# SPDX-License-Identifier: Apache-2.0
"""The record of a launch, as an exit from a parallel region finds it in context arrays.

Of each item that waits, its frames are words of these kinds: constants, values that all items
share, the item's number, what is computed from these, and elements of context arrays. So the record
of a group is a function of its phase (`ferryvm.ir.graph.Phase`), and no exit has to name all items'
words.
"""

from __future__ import annotations

import dataclasses

from ferryvm.isa.type import WORD_BYTES, Type

ARRIVED, STARTED, ITEMS, CONTEXT, FIRST_SHARED = range(5)
"""Places in `Phase.values`: items below the first have come to an end of the region, items from the
second on have not started; the number of items; the address of the context arrays; then what items
share."""


@dataclasses.dataclass(frozen=True)
class Literal:
    """A bit pattern."""

    bits: int
    type: Type | None
    """None: it is a boolean, 0 or 1."""


@dataclasses.dataclass(frozen=True)
class Shared:
    """A value that all items share."""

    place: int
    """Its place in `Phase.values`."""
    type: Type | None
    """None: it is a boolean."""


@dataclasses.dataclass(frozen=True)
class ItemNumber:
    """The item's own number, an i64."""


@dataclasses.dataclass(frozen=True)
class Element:
    """An element of a context array, that of the item."""

    slot: int
    type: Type


@dataclasses.dataclass(frozen=True)
class Computed:
    """The result of a pure operation."""

    name: str
    static: tuple[object, ...]
    operands: tuple[Source, ...]
    type: Type | None
    """None: it is a boolean."""


Source = Literal | Shared | ItemNumber | Element | Computed
"""The origin of a word of an item that waits."""


@dataclasses.dataclass(frozen=True, eq=False)
class Wait:
    """Items at one barrier, in one place of the code."""

    pc: int
    frame: int
    """The word of the item's part of the stack at which its innermost frame has its header."""
    words: tuple[Source, ...]
    """Of the item's part of the stack."""
    references: tuple[int, ...]
    """The words that are references, in rising order."""


@dataclasses.dataclass(eq=False)
class Group:
    """A launch whose items run in parallel regions. Region 0 is from the start of items to their
    first barriers; region n from barrier n on, which is `barriers[n - 1]`."""

    number: int
    """Its place in `Module.groups`."""
    pc: int
    """Of the `launch.test`."""
    record: int
    """The word of the body's frame that has the launch's record."""
    barriers: list[Wait] = dataclasses.field(default_factory=list)
    ends: list[frozenset[int]] = dataclasses.field(default_factory=list)
    """Of each region, the barriers at which items may come to its end; 0: they end there."""
    slots: int = 1
    """Context arrays. Array 0 has the barrier to which each item came, where a region has several
    ends."""

    def end_of(self, region: int) -> int | None:
        """The only end of a region; None if it has several, and array 0 says which."""
        ends = self.ends[region]
        return next(iter(ends)) if len(ends) == 1 else None

    def context(self, t: Type, slot: int) -> tuple[Type, int, int]:
        """The attributes of accesses to a context array."""
        return t, self.number, slot


ARRAY_STRIDE = WORD_BYTES
"""Bytes for each item in each context array: so all have the same size, whatever their elements."""
