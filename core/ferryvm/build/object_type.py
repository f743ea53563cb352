# SPDX-License-Identifier: Apache-2.0
"""Struct and array types of a program that is being built, as objects.

node = p.struct("node", {"value": I64})
node.field("next", node)
f.struct_get(node["next"])          node.array is the type of arrays of references to nodes
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferryvm.build.fault import BuildError
from ferryvm.errors import suggestion
from ferryvm.isa.declared_type import (
    LONGEST_NAME,
    MAX_FIELDS,
    MAX_TYPES,
    PREDEFINED,
    ArrayType,
    DeclaredType,
    StructType,
    is_type_name,
)
from ferryvm.isa.declared_type import Field as EncodedField
from ferryvm.isa.object import MOST_GENERATIONS
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.type import ANYREF, ARRAYREF, FIRST_DECLARED, Reference, Type, ValueType


class Field:
    """A field of a struct."""

    __slots__ = ("immediate", "name", "struct", "type")

    def __init__(self, struct: Struct, name: str, type_: ValueType, number: int) -> None:
        self.struct, self.name, self.type = struct, name, type_
        self.immediate = field_immediate(struct.type.number, number)

    def __repr__(self) -> str:
        return f"<field {self.struct.name}.{self.name} {self.type}>"


class Array:
    """A type of arrays of references, made by `Program.array`, `Struct.array` or `Array.array`."""

    def __init__(self, types: ObjectTypes, element: Reference) -> None:
        self.types, self.element = types, element
        self.name = f"{element.name}[]"
        self.type = Reference(types.next_number, self.name)

    @property
    def array(self) -> Array:
        """The type of arrays of these arrays."""
        return self.types.array(self.type)

    def __repr__(self) -> str:
        return f"<array {self.name}>"


class Struct:
    """A struct type, made by `Program.struct`; `struct["name"]` is a field."""

    def __init__(self, types: ObjectTypes, name: str, parent: Struct | None) -> None:
        self.types, self.name, self.parent = types, name, parent
        self.type = Reference(types.next_number, name)
        self.fields: dict[str, Field] = {}
        """All fields by name, those of the parent first; the fields of a child are its own
        objects."""
        self.is_used = False
        """True if its fields cannot change any more: there are children, or code that makes one."""

    def field(self, name: str, type: OperandType) -> Field:
        """A new field, the last one. Raises BuildError for a name that is taken or is none, and
        where the struct has a child or is made by code already."""
        what = f"struct {self.name!r}: field {name!r}"
        if self.is_used:
            raise BuildError(f"{what}: the struct is made by code, or extended, already")
        if not isinstance(name, str) or not is_type_name(name):
            raise BuildError(f"{what}: a name is letters, digits and _, and begins with no digit")
        if name in self.fields:
            raise BuildError(f"{what}: there is one already")
        if len(self.fields) == MAX_FIELDS:
            raise BuildError(f"{what}: there are {MAX_FIELDS} fields, which is the most")
        checked = self.types.checked(what, type)
        made = self.fields[name] = Field(self, name, checked, len(self.fields))
        return made

    @property
    def array(self) -> Array:
        """The type of arrays of references to these structs."""
        return self.types.array(self.type)

    def __getitem__(self, name: str) -> Field:
        if name in self.fields:
            return self.fields[name]
        hint = suggestion(str(name), self.fields)
        raise BuildError(f"struct {self.name!r} has no field {name!r}{hint}")

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields.values())

    def __repr__(self) -> str:
        return f"<struct {self.name}>"


OperandType = Type | Reference | Struct | Array
"""A type as calls of the builder take it."""


class ObjectTypes:
    """The types of one program, and how they are related."""

    def __init__(self) -> None:
        self.declared: list[Struct | Array] = []
        self._arrays: dict[Reference, Array] = {}
        self._parents: dict[Reference, Reference] = {
            t: ARRAYREF if t.number > ARRAYREF.number else ANYREF for t in PREDEFINED[1:]
        }

    @property
    def next_number(self) -> int:
        """The type number of the next type that is declared."""
        return FIRST_DECLARED + len(self.declared)

    def struct(self, name: str, fields: Mapping[str, OperandType], parent: object) -> Struct:
        """A new struct; raises BuildError."""
        what = f"struct {name!r}"
        if not isinstance(name, str) or not is_type_name(name):
            raise BuildError(f"{what}: a name is letters, digits and _, and begins with no digit")
        if name in {str(t) for t in (*Type, *PREDEFINED)} | {t.name for t in self.declared}:
            raise BuildError(f"{what}: there is already a type of this name")
        if parent is not None and not (isinstance(parent, Struct) and parent.types is self):
            raise BuildError(f"{what} extends a struct of this program, found {parent!r}")
        self._check_count(what)
        made = Struct(self, name, parent)
        generations = 1
        for above in self._above(parent):
            above.is_used = True
            generations += 1
        if generations > MOST_GENERATIONS:
            raise BuildError(f"{what}: it would have more than {MOST_GENERATIONS - 1} ancestors")
        for field in parent or ():
            made.field(field.name, field.type)
        self.declared.append(made)
        self._parents[made.type] = ANYREF if parent is None else parent.type
        for field_name, type_ in fields.items():
            made.field(field_name, type_)
        return made

    @staticmethod
    def _above(struct: Struct | None) -> Iterator[Struct]:
        while struct is not None:
            yield struct
            struct = struct.parent

    def array(self, element: object) -> Array:
        """The type of arrays of references of a type; raises BuildError."""
        checked = self.checked("array", element)
        if not isinstance(checked, Reference):
            found = f"for numbers write U8_ARRAY and so on, found {checked}"
            raise BuildError(f"array takes a reference type; {found}")
        found_array = self._arrays.get(checked)
        if found_array is None:
            self._check_count(f"array of {checked}")
            found_array = self._arrays[checked] = Array(self, checked)
            if len(found_array.name) > LONGEST_NAME:
                raise BuildError(f"array: a name has at most {LONGEST_NAME} characters")
            self.declared.append(found_array)
            self._parents[found_array.type] = ARRAYREF
        return found_array

    def array_type(self, reference: object) -> Array | None:
        """The declared type of arrays whose references have a type; None if there is none."""
        return next((each for each in self._arrays.values() if each.type is reference), None)

    def _check_count(self, what: str) -> None:
        if len(self.declared) == MAX_TYPES:
            raise BuildError(f"{what}: there are {MAX_TYPES} types, which is the most")

    def encoded(self) -> list[DeclaredType]:
        """The declared types as a listing has them."""
        return [
            ArrayType(each.element)
            if isinstance(each, Array)
            else StructType(
                each.name,
                None if each.parent is None else each.parent.type.number,
                tuple(EncodedField(field.name, field.type) for field in each),
            )
            for each in self.declared
        ]

    # --- types of operands ------------------------------------------------------------------

    def find(self, type_: object) -> ValueType | None:
        """The type that an object stands for; None if it is none, or of another program."""
        if isinstance(type_, (Struct, Array)):
            return type_.type if type_.types is self else None
        if isinstance(type_, Reference):
            return type_ if type_ is ANYREF or type_ in self._parents else None
        return type_ if isinstance(type_, Type) else None

    def checked(self, what: str, type_: object) -> ValueType:
        """The type that an object stands for. Raises BuildError if it is none of this program."""
        found = self.find(type_)
        if found is None:
            allowed = "I32, I64, F32, F64 or a reference type of this program is expected"
            raise BuildError(f"{what}: {allowed}, found {type_!r}")
        return found

    def fits(self, found: object, wanted: object) -> bool:
        """True if an operand of one type can stand where another is expected."""
        if found is wanted:
            return True
        if not (isinstance(found, Reference) and isinstance(wanted, Reference)):
            return False
        return wanted in self._upwards(found)

    def join(self, left: object, right: object) -> Reference | None:
        """The least common supertype of two reference types; None if one is none."""
        if not (isinstance(left, Reference) and isinstance(right, Reference)):
            return None
        above = set(self._upwards(left))
        return next(t for t in self._upwards(right) if t in above)

    def _upwards(self, type_: Reference) -> Iterator[Reference]:
        """A type and its ancestors."""
        yield type_
        while type_ is not ANYREF:
            type_ = self._parents[type_]
            yield type_
