# SPDX-License-Identifier: Apache-2.0
"""The reference types of a random program: structs with parents, arrays, and what is made of them.

Types are numbers in this package. Those from `FIRST` on are references: `FIRST` and the type
number, so that lists by type hold both.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ferryvm.isa.atomic import UPDATED
from ferryvm.isa.declared_type import (
    PREDEFINED,
    ArrayType,
    DeclaredType,
    Field,
    StructType,
    TypeHierarchy,
)
from ferryvm.isa.element import Element
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.type import FIRST_DECLARED, Reference, ValueType
from ferryvm.testing.generate.catalogue import OPCODE
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.literal import NUMBER, TYPES

FIRST = len(TYPES)
"""The number of `anyref`, whose type number is 0."""
ANY, I31, ARRAY = FIRST, FIRST + 1, FIRST + 2

_UPDATED = frozenset(element.kind for element in UPDATED)

_STRUCTS = (1, 2, 2, 3, 3, 4, 5)
_OWN_FIELDS = (0, 1, 1, 2, 2, 3, 4)
"""Fields of a struct besides those of its parent."""


class FieldPlace(NamedTuple):
    """A field of a struct type."""

    struct: int
    """Number of the struct in this package."""
    immediate: int
    type: int
    """Number of the field's type in this package."""


class Family(NamedTuple):
    """The instructions for one type of arrays."""

    array: int
    """Number of the array's type in this package."""
    element: int
    """The same of its elements' type, as operands."""
    bytes: int
    """Bytes of an element."""
    suffix: str
    immediate: int
    """The type number for those for references, else 0."""

    def opcode(self, name: str) -> int:
        """The opcode of one of the instructions, such as `get`."""
        return _opcode(name, self.suffix)


@functools.cache
def _opcode(name: str, suffix: str) -> int:
    return OPCODE[f"array.{name}_{suffix}"]


class ObjectTypes:
    """The types that one program declares, and those that it uses."""

    def __init__(self, chance: Chance) -> None:
        self.declared = _declare(chance)
        self.hierarchy = TypeHierarchy(self.declared)
        self.types: tuple[ValueType, ...] = (*TYPES, *self.hierarchy.references)
        """All types by their number in this package."""
        elements = [*Element]
        kinds = {chance.below(len(elements)) for _ in range(chance.between(3, 6))}
        self.families: dict[int, Family] = {}
        """The arrays that the program uses, by type."""
        for kind in sorted(kinds):
            element = elements[kind]
            t = FIRST + element.array.number
            self.families[t] = Family(t, NUMBER[element.type], element.bytes, element.kind, 0)
        self.structs: dict[int, list[FieldPlace]] = {}
        """The fields of the structs, by type."""
        for number, declared in enumerate(self.declared, FIRST_DECLARED):
            t = FIRST + number
            if isinstance(declared, ArrayType):
                element_type = FIRST + declared.element.number
                self.families[t] = Family(t, element_type, 8, "ref", number)
            else:
                self.structs[t] = [
                    FieldPlace(t, field_immediate(number, at), self._number(field.type))
                    for at, field in enumerate(declared.fields)
                ]
        concrete = [*self.structs, *self.families]
        self.updated = [f for f in self.families.values() if f.suffix in _UPDATED]
        """The arrays whose elements have atomic updates."""
        self.usual = (ANY, ANY, I31, ARRAY, *self.families, *self.structs, *self.structs)
        """Types of variables, to be drawn all alike."""
        held = [field.type for field in self._all_fields()]
        held += [family.element for family in self.families.values()]
        used = sorted({*self.usual, *(t for t in held if t >= FIRST)})
        self.below = {t: [u for u in used if self.fits(u, t)] for t in used}
        """For each type that is used its subtypes, itself included."""
        self.above = {t: [u for u in used if self.fits(t, u)] for t in used}
        """For each one its supertypes, itself included."""
        self.makers = {t: [u for u in [*concrete, I31] if self.fits(u, t)] or [t] for t in used}
        """For each one the types of the objects that can be made for it."""
        self.fields = {
            t: [f for f in self._all_fields() if self.fits(f.type, t)] for t in (*range(4), *used)
        }
        """For each type the fields that hold one."""
        self.holders = {
            t: [f for f in self.families.values() if self.fits(f.element, t)]
            for t in (*range(4), *used)
        }
        """For each type the arrays that hold elements of it."""
        self.keepers = [f for f in self.families.values() if f.element >= FIRST]
        """The arrays of references."""
        self.links = [
            (struct, field)
            for struct, fields in self.structs.items()
            for field in fields
            if field.type >= FIRST and self.fits(struct, field.type)
        ]
        """Structs with a field that can refer to another one of the kind."""

    def _number(self, t: ValueType) -> int:
        return FIRST + t.number if isinstance(t, Reference) else NUMBER[t]

    def _all_fields(self) -> list[FieldPlace]:
        return [field for fields in self.structs.values() for field in fields]

    def fits(self, t: int, wanted: int) -> bool:
        """True if a value of the type can stand where another one is wanted."""
        if t < FIRST or wanted < FIRST:
            return t == wanted
        return self.hierarchy.is_subtype(t - FIRST, wanted - FIRST)


def _declare(chance: Chance) -> tuple[DeclaredType, ...]:
    """Structs, and arrays of references to some of them and to other types."""
    plan = []
    for number in range(chance.pick(_STRUCTS)):
        plan.append(f"s{number}")
        if chance.flip(0.5):
            plan.append("")
    if "" not in plan and chance.flip(0.7):
        plan.append("")
    structs = [Reference(number, name) for number, name in enumerate(plan, FIRST_DECLARED) if name]
    numbers = tuple(element.array for element in Element)
    made: list[DeclaredType] = []
    known: list[Reference] = []
    """Types of elements: an array of each once, since types have different names."""
    known += [PREDEFINED[0], PREDEFINED[0], PREDEFINED[2], chance.pick(numbers)]
    for number, name in enumerate(plan, FIRST_DECLARED):
        if name:
            made.append(_struct(chance, name, made, structs, numbers))
            known += [Reference(number, name)] * 3
        else:
            element = chance.pick(known)
            known = [other for other in known if other is not element]
            array = ArrayType(element)
            made.append(array)
            known.append(Reference(number, array.name))
    return tuple(made)


def _struct(
    chance: Chance,
    name: str,
    made: list[DeclaredType],
    structs: list[Reference],
    numbers: tuple[Reference, ...],
) -> StructType:
    parents = [number for number, t in enumerate(made, FIRST_DECLARED) if isinstance(t, StructType)]
    parent = chance.pick(parents) if parents and chance.flip(0.5) else None
    fields: list[Field] = []
    if parent is not None:
        above = made[parent - FIRST_DECLARED]
        assert isinstance(above, StructType)
        fields += above.fields
    for _ in range(chance.pick(_OWN_FIELDS)):
        choice = chance.random()
        t: ValueType
        if choice < 0.45:
            t = chance.pick(TYPES)
        elif choice < 0.8:
            t = chance.pick(structs)
        elif choice < 0.9:
            t = chance.pick(PREDEFINED[:3])
        else:
            t = chance.pick(numbers)
        fields.append(Field(f"f{len(fields)}", t))
    return StructType(name, parent, tuple(fields))
