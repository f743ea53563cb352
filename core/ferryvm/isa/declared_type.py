# SPDX-License-Identifier: Apache-2.0
"""Types that a program declares, and how all its reference types are related.

    anyref ─┬─ i31ref
            ├─ arrayref ─┬─ i8[] … f64[]
            │            └─ node[] …         one for each type of references that has one
            └─ structs, each below its parent

Type numbers below `FIRST_DECLARED` are the same in every program; a program's `types` have those
from there on, in their order.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ROW_ANCESTORS,
    ROW_DEPTH,
    ROW_KIND,
    ROW_SIZE_SHIFT,
    ROW_WORDS,
    STRUCT_HEADER_BYTES,
)
from ferryvm.isa.type import (
    ANYREF,
    ARRAYREF,
    FIRST_DECLARED,
    I31REF,
    WORD_BYTES,
    Reference,
    ValueType,
)


class Field(NamedTuple):
    """A field of a struct; it takes a word."""

    name: str
    type: ValueType


class StructType(NamedTuple):
    """A struct that a program declares."""

    name: str
    parent: int | None = None
    """Type number of its parent, a struct that is declared earlier."""
    fields: tuple[Field, ...] = ()
    """All of them, those of the parent first."""


class ArrayType(NamedTuple):
    """A type of arrays of references that a program declares."""

    element: Reference

    @property
    def name(self) -> str:
        """Its name in texts."""
        return f"{self.element.name}[]"


DeclaredType = StructType | ArrayType


class RowKind(enum.IntEnum):
    """The nature of the objects of a type: the lowest byte of its row."""

    ABSTRACT = 0
    """No object has this type itself: `anyref`, `arrayref`."""
    I31 = 1
    NUMBERS = 2
    """Arrays of an element kind."""
    REFERENCES = 3
    """Arrays of references."""
    STRUCT = 4


PREDEFINED: tuple[Reference, ...] = (ANYREF, I31REF, ARRAYREF, *(e.array for e in Element))
"""The types that every program has, by number."""


class TypeHierarchy:
    """Reference types of one program, by number, with their ancestors."""

    def __init__(self, types: Sequence[DeclaredType] = ()) -> None:
        """`types`: legal ones, see `ferryvm.verify`."""
        self.types = tuple(types)
        named = (Reference(n, t.name) for n, t in enumerate(self.types, FIRST_DECLARED))
        self.references: tuple[Reference, ...] = (*PREDEFINED, *named)
        """All types of the program by number."""
        self.ancestors: list[tuple[int, ...]] = []
        """Of each type the numbers of its ancestors from depth 0 on, itself last."""
        for number in range(len(self.references)):
            parent = self._parent(number)
            above = () if parent is None else self.ancestors[parent]
            self.ancestors.append(() if number == ANYREF.number else (*above, number))

    def _parent(self, number: int) -> int | None:
        if number < FIRST_DECLARED:
            return ARRAYREF.number if number > ARRAYREF.number else None
        declared = self.types[number - FIRST_DECLARED]
        return declared.parent if isinstance(declared, StructType) else ARRAYREF.number

    def declared(self, number: int) -> DeclaredType | None:
        """The declaration of a type; None for a type that every program has."""
        return self.types[number - FIRST_DECLARED] if number >= FIRST_DECLARED else None

    def is_subtype(self, number: int, of: int) -> bool:
        """True if every reference of the type `number` is one of the type `of`."""
        return of in self.ancestors[number] or of == ANYREF.number

    def join(self, left: int, right: int) -> int:
        """The least common supertype of two types."""
        common = ANYREF.number
        for a, b in zip(self.ancestors[left], self.ancestors[right], strict=False):
            if a != b:
                break
            common = a
        return common

    def row(self, number: int) -> list[int]:
        """The type row: `ROW_WORDS` words, laid out in `ferryvm.isa.object`."""
        words = [0] * ROW_WORDS
        kind, size = self._kind(number)
        above = self.ancestors[number]
        words[ROW_KIND] = size << ROW_SIZE_SHIFT | kind
        words[ROW_DEPTH] = max(len(above) - 1, 0)
        words[ROW_ANCESTORS : ROW_ANCESTORS + len(above)] = above
        return words

    def _kind(self, number: int) -> tuple[RowKind, int]:
        if number in (ANYREF.number, ARRAYREF.number):
            return RowKind.ABSTRACT, 0
        if number == I31REF.number:
            return RowKind.I31, 0
        if number < FIRST_DECLARED:
            element = [*Element][number - ARRAYREF.number - 1]
            return RowKind.NUMBERS, element.bytes
        declared = self.types[number - FIRST_DECLARED]
        if isinstance(declared, ArrayType):
            return RowKind.REFERENCES, WORD_BYTES
        return RowKind.STRUCT, STRUCT_HEADER_BYTES + WORD_BYTES * len(declared.fields)

    def rows(self) -> list[int]:
        """The rows of all types, one after another."""
        return [word for number in range(len(self.references)) for word in self.row(number)]
