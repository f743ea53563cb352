# SPDX-License-Identifier: Apache-2.0
"""Symbols of code as objects: locals, labels, statics, host imports, tags.

A name would have to be looked up, and could be misspelled; an object exists or does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.build.shape import Shape, pop_key
from ferryvm.isa.frame import word_of
from ferryvm.isa.type import ValueType
from ferryvm.program import Signature

if TYPE_CHECKING:
    from ferryvm.build.fault import Place

_ALL_BITS = (1 << 64) - 1


class Local:
    """A parameter or local of a function."""

    __slots__ = ("function", "name", "number", "pop", "type", "word")

    def __init__(
        self, function: object, name: str | None, type_: ValueType, number: int, parameters: int
    ) -> None:
        self.function, self.name, self.type, self.number = function, name, type_, number
        self.word = word_of(number, parameters) & _ALL_BITS
        self.pop = pop_key(type_)

    def __repr__(self) -> str:
        return f"<local {self.name or self.number} {self.type}>"


class Static:
    """A variable of the whole program."""

    __slots__ = ("name", "number", "pop", "program", "type")

    def __init__(self, program: object, name: str, type_: ValueType, number: int) -> None:
        self.program, self.name, self.type, self.number = program, name, type_, number
        self.pop = pop_key(type_)

    def __repr__(self) -> str:
        return f"<static {self.name} {self.type}>"


class Host:
    """A host function that the program imports."""

    __slots__ = ("effect", "name", "program", "signature")

    def __init__(self, program: object, name: str, signature: Signature, effect: int) -> None:
        self.program, self.name, self.signature, self.effect = program, name, signature, effect

    def __repr__(self) -> str:
        return f"<host {self.name} {self.signature}>"


class Tag:
    """A kind of exception."""

    __slots__ = ("name", "parameters", "program")

    def __init__(self, program: object, name: str, parameters: tuple[ValueType, ...]) -> None:
        self.program, self.name, self.parameters = program, name, parameters

    def __repr__(self) -> str:
        return f"<tag {self.name} ({' '.join(map(str, self.parameters))})>"


class Label:
    """A target of jumps in a function."""

    __slots__ = ("function", "is_reached", "is_settled", "jumped", "name", "pc", "shape")

    def __init__(self, function: object, name: str) -> None:
        self.function, self.name = function, name
        self.pc: int | None = None
        """The instruction that it precedes."""
        self.shape: Shape | None = None
        """The operands there, once they are known; without floors."""
        self.jumped: Place | None = None
        """The line of its first jump before it was placed."""
        self.is_settled = False
        """True if the operands were stated; otherwise jumps to it may make them more general up to
        its placing."""
        self.is_reached = False
        """True if a jump makes it reachable."""

    def __repr__(self) -> str:
        return f"<label {self.name}>"
