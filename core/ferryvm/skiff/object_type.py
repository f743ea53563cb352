# SPDX-License-Identifier: Apache-2.0
"""The machine's types of a program's structs and arrays: their numbers, in order of need.

The texts of a session share one `ObjectTypes`, so a type keeps its number.
"""

from __future__ import annotations

import copy

from ferryvm.isa.declared_type import PREDEFINED, ArrayType, DeclaredType, StructType
from ferryvm.isa.declared_type import Field as DeclaredField
from ferryvm.isa.element import Element
from ferryvm.isa.type import FIRST_DECLARED, Reference, Type, ValueType
from ferryvm.skiff.type import (
    ELEMENT_NAMES,
    ArrayOf,
    Named,
    SkiffType,
    Struct,
    default,
    find,
)

_PREDEFINED = {reference.name: reference for reference in PREDEFINED}


class ObjectTypes:
    """Numbers of the types that texts declare."""

    def __init__(self) -> None:
        self._order: list[Struct | Reference] = []
        """Structs, and the elements of arrays of references, by number."""
        self._structs: dict[Struct, Reference] = {}
        self._arrays: dict[Reference, Reference] = {}
        self._names: set[str] = set()

    def copy(self) -> ObjectTypes:
        """Another one with these numbers."""
        other = copy.copy(self)
        other._order, other._names = list(self._order), set(self._names)
        other._structs, other._arrays = dict(self._structs), dict(self._arrays)
        return other

    def value(self, type_: SkiffType) -> ValueType:
        """The machine's type of a slot that holds a value of this type."""
        final = default(type_)
        if isinstance(final, Named) and final.name not in _PREDEFINED:
            return Type(final.name)
        return self.reference(final)

    def reference(self, type_: SkiffType) -> Reference:
        """The machine's type of a type of references."""
        final = default(type_)
        if isinstance(final, Struct):
            return self._struct(final)
        if isinstance(final, ArrayOf):
            element = find(final.element)
            if isinstance(element, Named) and element.name in ELEMENT_NAMES:
                return Element(element.name).array
            return self._array(self.reference(element))
        assert isinstance(final, Named), "a number is no reference"
        return _PREDEFINED[final.name]

    def _add(self, what: Struct | Reference, name: str) -> Reference:
        reference = Reference(FIRST_DECLARED + len(self._order), name)
        self._order.append(what)
        self._names.add(name)
        return reference

    def _struct(self, struct: Struct) -> Reference:
        known = self._structs.get(struct)
        if known is not None:
            return known
        if struct.parent is not None:
            self._struct(struct.parent)
        name, number = struct.name, 1
        while name in self._names:  # a session has defined another struct of this name
            number += 1
            name = f"{struct.name}'{number}"
        self._structs[struct] = self._add(struct, name)
        return self._structs[struct]

    def _array(self, element: Reference) -> Reference:
        if element not in self._arrays:
            self._arrays[element] = self._add(element, f"{element.name}[]")
        return self._arrays[element]

    def declared(self) -> list[DeclaredType]:
        """The declarations of all types so far, and of those that their fields need."""
        made: list[DeclaredType] = []
        while len(made) < len(self._order):  # a field can add a type
            what = self._order[len(made)]
            if isinstance(what, Reference):
                made.append(ArrayType(what))
                continue
            parent = None if what.parent is None else self._struct(what.parent).number
            fields = tuple(DeclaredField(f.name, self.value(f.type)) for f in what.fields)
            made.append(StructType(self._structs[what].name, parent, fields))
        return made
