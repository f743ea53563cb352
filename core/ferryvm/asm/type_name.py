# SPDX-License-Identifier: Apache-2.0
"""Names of types in a text: those that every program has, those that the text declares, and arrays
of references, which are declared where they first occur unless the text does it."""

from __future__ import annotations

from ferryvm.asm.source import near
from ferryvm.isa import Immediate, Type
from ferryvm.isa.declared_type import (
    LONGEST_NAME,
    PREDEFINED,
    ArrayType,
    DeclaredType,
    StructType,
)
from ferryvm.isa.struct import field_immediate
from ferryvm.isa.type import FIRST_DECLARED, Reference, ValueType

_ARRAY = "[]"

TYPED = frozenset(
    (Immediate.TYPE, Immediate.FIELDS, Immediate.STRUCT, Immediate.ARRAY, Immediate.FIELD)
)
"""Immediates whose operand is a type, or a field of one."""


class TypeFault(Exception):  # noqa: N818 - becomes one line of a SourceError
    """The reason for which a text is not the name of a type or field that is wanted."""


class TypeNames:
    """The types of one text by name."""

    def __init__(self) -> None:
        self.known: dict[str, ValueType] = {str(t): t for t in (*Type, *PREDEFINED)}
        self.declared: list[DeclaredType] = []
        """The declared types by number; a struct has no fields before its line is read."""

    def add_struct(self, name: str) -> None:
        """Give a struct the next number; nothing happens if the name is a type's already."""
        if name not in self.known:
            self.known[name] = Reference(FIRST_DECLARED + len(self.declared), name)
            self.declared.append(StructType(name))

    def find(self, text: str) -> ValueType | None:
        """The type of a name; None if there is none."""
        found = self.known.get(text)
        if found is None and text.endswith(_ARRAY) and len(text) <= LONGEST_NAME:
            element = self.find(text.removesuffix(_ARRAY))
            if isinstance(element, Reference):
                found = Reference(FIRST_DECLARED + len(self.declared), text)
                self.known[text] = found
                self.declared.append(ArrayType(element))
        return found

    def no_type(self, text: str) -> str:
        """A message about a text that names no type."""
        hint = near(text, self.known)
        return f"expected a type (i32, i64, f32, f64, or a reference type), found {text!r}{hint}"

    def immediate(self, kind: Immediate, text: str) -> int:
        """The immediate that a text is, of a kind of `TYPED`. Raises TypeFault."""
        name, _, field = text.rpartition(".") if kind is Immediate.FIELD else (text, "", "")
        if kind is Immediate.FIELD and not name:
            raise TypeFault(f"expected a field as in node.next, found {text!r}")
        found = self.find(name)
        if not isinstance(found, Reference):
            known = (n for n, t in self.known.items() if isinstance(t, Reference))
            raise TypeFault(f"no reference type {name!r}{near(name, known)}")
        if kind is Immediate.TYPE:
            return found.number
        at = found.number - FIRST_DECLARED
        declared = self.declared[at] if at >= 0 else None
        wanted = ArrayType if kind is Immediate.ARRAY else StructType
        if not isinstance(declared, wanted):
            what = "an array of references" if wanted is ArrayType else "a struct"
            raise TypeFault(f"expected {what}, found {name!r}")
        if kind is not Immediate.FIELD or not isinstance(declared, StructType):
            return found.number
        names = [each.name for each in declared.fields]
        if field not in names:
            has = ", ".join(names) or "none"
            raise TypeFault(
                f"struct {name} has no field {field!r}{near(field, names)} (has: {has})"
            )
        return field_immediate(found.number, names.index(field))
