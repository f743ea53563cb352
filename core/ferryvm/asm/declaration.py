# SPDX-License-Identifier: Apache-2.0
"""Declarations of types: `.struct` and `.array`."""

from __future__ import annotations

from ferryvm.asm.source import Source, StatementFault, Token
from ferryvm.asm.statement import Statement, declare, name_of
from ferryvm.asm.type_name import TypeNames
from ferryvm.isa import Immediate
from ferryvm.isa.declared_type import (
    DeclarationFault,
    Field,
    StructType,
    check_declarations,
    is_type_name,
)
from ferryvm.isa.type import FIRST_DECLARED, Reference


class TypeDeclarations:
    """The types that one text declares. They may be used before, so `number` comes first."""

    def __init__(self, source: Source, types: TypeNames) -> None:
        self._source, self._types = source, types
        self._structs: dict[str, Token] = {}

    def number(self) -> None:
        """Number the types that the text declares, in order."""
        for line in self._source.lines:
            if ".struct" not in line and ".array" not in line:
                continue
            match line.partition(";")[0].replace(",", " ").split():
                case [".struct", name, *_]:
                    self._types.add_struct(name.strip('"'))
                case [".array", name, *_]:
                    self._types.find(name)

    def read_struct(self, statement: Statement) -> None:
        """Read the name, the parent and the fields of a struct."""
        token = statement.next("a name")
        name = name_of(token)
        if not is_type_name(name):
            message = f"{token.text} is no name of a struct: letters, digits and _ are allowed"
            raise StatementFault(token, message)
        declare(self._source, "struct", self._structs, token)
        self._types.add_struct(name)
        own = self._types.known[name]
        if not isinstance(own, Reference) or own.number < FIRST_DECLARED:
            raise StatementFault(token, f"{name!r} is a type already")
        parent: int | None = None
        fields: list[Field] = []
        if statement.accept("extends"):
            above = statement.next("a struct after extends")
            parent = statement.immediate_of(Immediate.STRUCT, above)
            if parent >= own.number:
                message = f"struct {above.text!r} is declared below; a parent comes first"
                raise StatementFault(above, message)
            declared = self._types.declared[parent - FIRST_DECLARED]
            assert isinstance(declared, StructType)
            fields += declared.fields
        while statement.peek():
            field = statement.next("a field")
            type_ = statement.type_of(statement.next("a type after the field's name"))
            fields.append(Field(name_of(field), type_))
        made = StructType(name, parent, tuple(fields))
        self._types.declared[own.number - FIRST_DECLARED] = made

    def read_array(self, statement: Statement) -> None:
        """Read the name of an array type."""
        token = statement.next("the name of an array type, such as node[]")
        found = statement.type_of(token)
        if not isinstance(found, Reference) or not found.name.endswith("[]"):
            raise StatementFault(token, f"expected an array type, found {token.text!r}")
        if found.number < FIRST_DECLARED:
            message = f"every program has {found}; arrays of references are declared, as node[]"
            raise StatementFault(token, message)

    def check(self) -> None:
        """Record a fault if the declarations do not fit together and nothing else is wrong."""
        try:
            check_declarations(self._types.declared)
        except DeclarationFault as fault:
            if not self._source.diagnostics:
                token = next(iter(self._structs.values()), Token("", 1, 1))
                self._source.fault(token, str(fault))
