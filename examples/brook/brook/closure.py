# SPDX-License-Identifier: Apache-2.0
"""Scopes and captured variables: closures by hand.

A function value is the address of a record in the heap; every function has that address as its first
parameter, `self`, and finds there what it captured. Captured variables are copies of the values that
they had when the function was made, so they cannot be assigned.

    self ─> │ number in the function table │ captured 0 │ captured 1 │ …      8 bytes each
"""

from __future__ import annotations

import dataclasses

from brook.tree import Kind
from ferryvm.build import Function, Local, Static


@dataclasses.dataclass
class Variable:
    """A variable of the text, and where its value is."""

    kind: Kind
    home: Local | Static | Function | int
    """An int: the offset in the record of the function that captured it. A Function: the variable is
    a function of the program, called without a record."""


class Scope:
    """The names of a function, block within block; `outer` is the function around it."""

    def __init__(self, globals_: dict[str, Variable], outer: Scope | None = None) -> None:
        self.globals, self.outer = globals_, outer
        self.blocks: list[dict[str, Variable]] = [{}]
        self.captured: dict[str, Variable] = {}

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
        offset = 8 * (1 + len(self.captured))
        self.captured[name] = Variable(found.kind, offset)
        return self.captured[name]
