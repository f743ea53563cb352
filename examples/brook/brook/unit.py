# SPDX-License-Identifier: Apache-2.0
"""The state that functions of a program share while it is compiled."""

from __future__ import annotations

from brook.closure import Types, Variable
from brook.runtime import Runtime
from ferryvm.build import Function, Program, Static


class Unit:
    """A program that is compiled from one text, or from the inputs of a session."""

    def __init__(self) -> None:
        self.program = Program()
        self.types = Types(self.program)
        self.runtime = Runtime(self.program)
        self.globals: dict[str, Variable] = {}
        self.numbers: dict[str, int] = {}
        """Numbers in the function table."""
        self.names = 0
        """Functions that got a name of their own since theirs was taken."""
        self.texts: dict[str, Static] = {}
        """String literals, null until they are made."""

    def name(self, wanted: str) -> str:
        """A name of a function that no other one has, since functions may be defined anew."""
        if wanted not in self.globals:
            return wanted
        self.names += 1
        return f"{wanted}:{self.names}"

    def number(self, f: Function) -> int:
        """The number of a function in the table."""
        if f.name not in self.numbers:
            self.numbers[f.name] = self.program.table(f)
        return self.numbers[f.name]
