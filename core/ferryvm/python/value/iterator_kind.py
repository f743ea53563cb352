# SPDX-License-Identifier: Apache-2.0
"""Kinds of iterators: where a loop is."""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa.type import I64, ValueType
from ferryvm.python.value.kind import LIST, Array, Kind, List, Text, Tuple


@record.dataclass(frozen=True)
class ListIterator(Kind):
    """An iterator of a list. Slots: the list, and the next index."""

    of: List
    is_backwards: bool = False
    slots = (LIST, I64)

    def __str__(self) -> str:
        return "iterator of a list"


@record.dataclass(frozen=True)
class RangeIterator(Kind):
    """An iterator of a range. Slots: the next number, and, for steps of 1 and -1, the stop of the
    range; for others, which could overflow at it, how many numbers there are, and the step, unless
    that is known."""

    step: int
    """0: it is not known."""

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (I64, I64) if self.step else (I64, I64, I64)

    def __str__(self) -> str:
        return "iterator of a range"


@record.dataclass(frozen=True)
class TupleIterator(Kind):
    """An iterator of a tuple, in front of an item. Slots: those of the tuple."""

    of: Tuple
    at: int

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return self.of.slots

    def __str__(self) -> str:
        return "iterator of a tuple"


@record.dataclass(frozen=True)
class ArrayIterator(Kind):
    """An iterator of an array: of its elements, or of views of one dimension less. Slots: those of
    the array, and the next index."""

    of: Array

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (*self.of.slots, I64)

    def __str__(self) -> str:
        return "iterator of an array"


@record.dataclass(frozen=True)
class TextIterator(Kind):
    """An iterator of a text, or of bytes. Slots: those of the text, and the next index."""

    of: Text

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (*self.of.slots, I64)

    def __str__(self) -> str:
        return "iterator of a text"


@record.dataclass(frozen=True)
class Enumerated(Kind):
    """An iterator with a count. Slots: the count, and those of the iterator."""

    of: Kind

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (I64, *self.of.slots)


@record.dataclass(frozen=True)
class Zipped(Kind):
    """Iterators side by side. Slots: those of all."""

    of: tuple[Kind, ...]
    is_strict: bool = False
    """True if all have to end together."""

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return tuple(slot for each in self.of for slot in each.slots)
