# SPDX-License-Identifier: Apache-2.0
"""Types of the machine, scopes and captured variables: closures by hand.

A function value is a reference to a struct, its record; every function has it as its first
parameter, and finds there what it captured. Captured variables are copies of the values that they
had when the function was made, so they cannot be assigned.

    closure              number in the function table
      ▲ extends
    closure_N            number, then a field for each captured variable
"""

from __future__ import annotations

import dataclasses

from brook.tree import Kind
from ferryvm.build import (
    F64,
    F64_ARRAY,
    I32,
    I32_ARRAY,
    I64,
    I64_ARRAY,
    U8_ARRAY,
    Array,
    Field,
    Function,
    Local,
    Program,
    Reference,
    Static,
    Struct,
    Type,
)

_NUMBERS = {"int": (I64, I64_ARRAY), "float": (F64, F64_ARRAY), "bool": (I32, I32_ARRAY)}


class Types:
    """Types of the machine for those of Brook."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.closure = program.struct("closure", {"number": I32})
        """The record of a function that captures nothing."""
        self.records = 0
        """Types of records that extend it."""

    def of(self, kind: Kind) -> Type | Reference:
        """The type of the values of a type."""
        if kind.name == "str":
            return U8_ARRAY
        if kind.name == "fun":
            return self.closure.type
        if kind.name == "array":
            element = kind.parts[0]
            return _NUMBERS[element.name][1] if element.name in _NUMBERS else self.array(kind).type
        return _NUMBERS[kind.name][0]

    def array(self, kind: Kind) -> Array:
        """The type of arrays of strings, arrays or functions."""
        return self.program.array(self.of(kind.parts[0]))

    def record(self) -> Struct:
        """A new type of records, without fields of its own yet."""
        self.records += 1
        return self.program.struct(f"closure_{self.records}", {}, self.closure)


@dataclasses.dataclass
class Variable:
    """A variable of the text, and where its value is."""

    kind: Kind
    home: Local | Static | Function | Field
    """A Field: of the record of the function that captured it. A Function: the variable is a
    function of the program, called without a record."""


class Scope:
    """The names of a function, block within block; `outer` is the function around it."""

    def __init__(
        self, globals_: dict[str, Variable], types: Types, outer: Scope | None = None
    ) -> None:
        self.globals, self.types, self.outer = globals_, types, outer
        self.blocks: list[dict[str, Variable]] = [{}]
        self.captured: dict[str, Variable] = {}
        self.record = types.closure
        """The type of the function's record."""

    def find(self, name: str) -> Variable | None:
        """The variable of a name; one of the function around becomes captured."""
        for block in reversed(self.blocks):
            if name in block:
                return block[name]
        if name in self.captured:
            return self.captured[name]
        found = self.outer.find(name) if self.outer is not None else self.globals.get(name)
        if found is None or isinstance(found.home, Static | Function):
            return found
        if not self.captured:
            self.record = self.types.record()
        field = self.record.field(f"captured_{len(self.captured)}", self.types.of(found.kind))
        self.captured[name] = Variable(found.kind, field)
        return self.captured[name]
