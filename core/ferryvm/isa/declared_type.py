# SPDX-License-Identifier: Apache-2.0
"""Types that a program declares, and how all its reference types are related.

    anyref ─┬─ i31ref
            ├─ arrayref ─┬─ i8[] … f64[]
            │            ├─ launch.references
            │            └─ node[] …         one for each type of references that has one
            ├─ launch.piece
            └─ structs, each below its parent

Type numbers below `FIRST_DECLARED` are the same in every program; a program's `types` have those
from there on, in their order.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ferryvm import pattern
from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    MOST_GENERATIONS,
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
    FRAME_REFERENCES,
    I31REF,
    I64,
    LAUNCH,
    WORD_BYTES,
    Reference,
    Type,
    ValueType,
)
from ferryvm.named_tuple import NamedTuple

MAX_TYPES = 1 << 16
"""Largest number of types that a program declares."""

MAX_FIELDS = 1000
"""Largest number of fields of a struct; `struct.new` stores them all for one unit of fuel."""

LONGEST_NAME = 255
"""Most characters of a type's name."""

_NAME = pattern.lazy(r"[A-Za-z_][A-Za-z0-9_$!?*/<>=+@%&^~|'-]*")


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


PREDEFINED: tuple[Reference, ...] = (
    *(ANYREF, I31REF, ARRAYREF, *(e.array for e in Element)),
    *(FRAME_REFERENCES, LAUNCH),
)
"""The types that every program has, by number."""

PIECE = StructType(
    LAUNCH.name,
    None,
    (
        Field("first", I64),
        Field("end", I64),
        Field("pc", I64),
        Field("frame", I64),
        Field("words", Element.I64.array),
        Field("references", FRAME_REFERENCES),
        Field("next", LAUNCH),
        Field("waiting", LAUNCH),
    ),
)
"""A piece of a launch: the items from `first` up to `end`, of which none has begun; or the item
`first`, suspended at `pc`, with `words` null for the former. `words` are the stack from its
arguments on, with zeros for `references`, and its innermost frame is at word `frame` of them.
`next` is the piece of the items after it.

Or, where `pc` is -1, a phase: the record of a launch of `first` items in all, of which some wait at a
barrier: `waiting`, the last one to come first. Those in `next` have not come there yet."""

PHASE = I64.mask
"""The pc of a phase."""

PIECE_BYTES = STRUCT_HEADER_BYTES + WORD_BYTES * len(PIECE.fields)
"""Bytes of a piece, without the words of an item."""
ITEM_BYTES = PIECE_BYTES + 2 * ARRAY_HEADER_BYTES
"""Bytes of the piece of a suspended item, without its words."""

_EVERYWHERE: dict[int, DeclaredType] = {
    FRAME_REFERENCES.number: ArrayType(ANYREF),
    LAUNCH.number: PIECE,
}
"""Declarations of types that every program has."""


def is_type_name(text: str) -> bool:
    """True if a struct or a field can have this name: it stands in assembly without quotes."""
    return _NAME.fullmatch(text) is not None and len(text) <= LONGEST_NAME


def declaration(types: Sequence[DeclaredType], number: int) -> DeclaredType | None:
    """The declaration of a type of a program that declares `types`; None for one of no objects, or
    of arrays of numbers."""
    return types[number - FIRST_DECLARED] if number >= FIRST_DECLARED else _EVERYWHERE.get(number)


class DeclarationFault(Exception):  # noqa: N818 - becomes an error of who reads the types
    """The reason for which types cannot be declared."""


def check_declarations(types: Sequence[DeclaredType]) -> None:
    """Raise DeclarationFault unless these can be the types of a program, in this order.

    References to types that do not exist are not looked for.
    """
    if len(types) > MAX_TYPES:
        raise DeclarationFault(f"{len(types)} types are declared, at most {MAX_TYPES}")
    taken = {str(t) for t in (*Type, *PREDEFINED)}
    known = [str(t) for t in PREDEFINED]
    generations: list[int] = []
    """For each declared type, its number in a chain of parents; 0 for an array."""
    for number, declared in enumerate(types, FIRST_DECLARED):
        name = declared.name
        fault = None
        if name in taken:
            fault = "has the name of another type"
        elif len(name) > LONGEST_NAME:
            fault = f"has a name of more than {LONGEST_NAME} characters"
        elif isinstance(declared, ArrayType):
            element = declared.element
            if element.number >= number or known[element.number] != element.name:
                fault = f"has elements of type {element}, which is not declared before it"
            generations.append(0)
        else:
            fault = _struct_fault(types, number, declared)
            parent = declared.parent
            generations.append(1)
            if fault is None and parent is not None:
                generations[-1] += generations[parent - FIRST_DECLARED]
                if generations[-1] > MOST_GENERATIONS:
                    fault = f"has more than {MOST_GENERATIONS - 1} ancestors"
        if fault is not None:
            raise DeclarationFault(f"type {number} ({name!r}) {fault}")
        taken.add(name)
        known.append(name)


def _struct_fault(types: Sequence[DeclaredType], number: int, declared: StructType) -> str | None:
    """The reason for which a struct cannot be declared with this number; None if it can."""
    if not is_type_name(declared.name):
        return "has a name with other characters than a name in assembly without quotes"
    fields = declared.fields
    if len(fields) > MAX_FIELDS:
        return f"has {len(fields)} fields, at most {MAX_FIELDS}"
    seen = set()
    for field in fields:
        if not is_type_name(field.name):
            return f"has a field {field.name!r}, which is no name in assembly without quotes"
        if field.name in seen:
            return f"has two fields {field.name!r}"
        seen.add(field.name)
    if declared.parent is None:
        return None
    at = declared.parent - FIRST_DECLARED
    parent = types[at] if 0 <= at < number - FIRST_DECLARED else None
    if not isinstance(parent, StructType):
        return f"has type {declared.parent} as its parent, which is no struct declared before it"
    if fields[: len(parent.fields)] != parent.fields:
        return f"does not begin with the fields of its parent {parent.name!r}"
    return None


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
            is_array = ARRAYREF.number < number <= FRAME_REFERENCES.number
            return ARRAYREF.number if is_array else None
        declared = self.types[number - FIRST_DECLARED]
        return declared.parent if isinstance(declared, StructType) else ARRAYREF.number

    def declared(self, number: int) -> DeclaredType | None:
        """The declaration of a type; None for one of no objects, or of arrays of numbers."""
        return declaration(self.types, number)

    def has(self, reference: Reference) -> bool:
        """True if a type is one of this program."""
        known = self.references
        return 0 <= reference.number < len(known) and known[reference.number] is reference

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
        declared = self.declared(number)
        if declared is None:
            element = [*Element][number - ARRAYREF.number - 1]
            return RowKind.NUMBERS, element.bytes
        if isinstance(declared, ArrayType):
            return RowKind.REFERENCES, WORD_BYTES
        return RowKind.STRUCT, STRUCT_HEADER_BYTES + WORD_BYTES * len(declared.fields)

    def rows(self) -> list[int]:
        """The rows of all types, one after another."""
        return [word for number in range(len(self.references)) for word in self.row(number)]
