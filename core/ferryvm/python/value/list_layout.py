# SPDX-License-Identifier: Apache-2.0
"""Lists in memory: a struct with the length, the kind of items, and arrays that may be longer.

    list   │ length │ kind │ origin │ i64 │ f64 │ i32 │ f32 │ lists │

There is an array, a *column*, for each type of slots; those of an item stand side by side in it:

    [(1, 2.5, 3), (4, 5.5, 6)]      i64: 1 3 4 6      f64: 2.5 5.5

*Origin* is the number of the list among those that a call got from Python, from 1 on; 0 for others.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ferryvm.build import Function, Program, Struct
from ferryvm.build.object_type import Array
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Reference, Type, ValueType
from ferryvm.python.value.kind import LIST, Kind

_ELEMENTS = {I64: Element.I64, F64: Element.F64, I32: Element.I32, F32: Element.F32}
FIELDS = ("length", "kind", "origin", "i64", "f64", "i32", "f32", "lists")
"""The fields of a list, in order."""


class Column(NamedTuple):
    """The slots of one type in the items of a list."""

    type: ValueType
    stride: int
    """The number of these slots in an item."""

    @property
    def name(self) -> str:
        """The name of its field."""
        return "lists" if self.type is LIST else str(self.type)


class Layout:
    """The columns of lists whose items have these slots."""

    def __init__(self, slots: tuple[ValueType, ...]) -> None:
        self.slots = slots
        self.columns = [Column(each, slots.count(each)) for each in dict.fromkeys(slots)]
        self.name = ",".join(map(str, slots)) or "nothing"
        """The name that functions for such lists have in theirs."""

    def places(self) -> list[tuple[Column, int]]:
        """The column of each slot, and its place among those of an item."""
        of = {each.type: each for each in self.columns}
        return [(of[slot], self.slots[:n].count(slot)) for n, slot in enumerate(self.slots)]


@functools.cache
def layout_of(item: Kind) -> Layout:
    """The layout of lists of a kind of items."""
    return Layout(item.slots)


def declare(program: Program) -> Struct:
    """The struct type of lists."""
    fields: dict[str, Type | Reference] = {"length": I64, "kind": I64, "origin": I64}
    fields |= {str(word): element.array for word, element in _ELEMENTS.items()}
    made = program.struct(LIST.name, fields)
    made.field("lists", made.array)
    assert made.type is LIST
    assert tuple(made.fields) == FIELDS
    return made


class Elements:
    """The instructions for the arrays of one column."""

    def __init__(self, f: Function, struct: Struct, type_: ValueType) -> None:
        self._f = f
        self.type: Reference | Array
        self._types: list[Array]
        if type_ is LIST:
            self._suffix, self.type = "ref", struct.array
            self._types = [struct.array]
        else:
            element = _ELEMENTS[type_]  # type: ignore[index]  # the others are numbers
            self._suffix, self.type = str(element), element.array
            self._types = []

    def _emit(self, name: str) -> None:
        getattr(self._f, f"array_{name}_{self._suffix}")(*self._types)

    def new(self) -> None:
        """A length becomes an array of zeros, or of null."""
        self._emit("new_default")

    def get(self) -> None:
        """An array and an index become the element."""
        self._emit("get")

    def set(self) -> None:
        """Store: an array, an index, an element."""
        self._emit("set")

    def copy(self) -> None:
        """Copy elements: array, index, array, index, number."""
        self._emit("copy")
