# SPDX-License-Identifier: Apache-2.0
"""The code of one function as arrays, not linked yet: the form for producers of much code.

A listing's items are an object for each instruction, which suits the peephole and people. Here an
instruction is two numbers, its opcode and its immediate, as they stand in a program, and a
relocation if the immediate is known only when all functions are together. Linking is then a copy
and a few additions.

Invariants: an opcode is the table's; a pc counts from the function's start; positions have
increasing pcs, and each applies to the instructions up to the next one.
"""

from __future__ import annotations

import bisect

from ferryvm import record
from ferryvm.errors import Position
from ferryvm.program import Signature

Relocation = tuple[int, str | Signature]
"""A pc, and the thing whose number its immediate is: a signature, or a name, whose kind (label,
function, host import) the instruction determines."""


@record.dataclass
class Positions:
    """Positions of instructions, as parallel lists: an object for each would burden the garbage
    collector."""

    pcs: list[int] = record.field(default_factory=list)
    files: list[str | None] = record.field(default_factory=list)
    """None: there is no position."""
    lines: list[int] = record.field(default_factory=list)
    columns: list[int] = record.field(default_factory=list)

    def set(self, pc: int, position: Position | None) -> None:
        """Give the instructions from `pc` on a position; `pc` is past those that have one."""
        self.cut(pc)
        if (self._row(-1) if self.pcs else None) != position:
            file, line, column = position or (None, 0, 0)
            self.pcs.append(pc)
            self.files.append(file)
            self.lines.append(line)
            self.columns.append(column)

    def cut(self, pc: int) -> None:
        """Forget a position that was set for `pc`, if it is the last one."""
        if self.pcs and self.pcs[-1] == pc:
            for column in (self.pcs, self.files, self.lines, self.columns):
                column.pop()

    def at(self, pc: int) -> Position | None:
        """The position of an instruction; None if it has none."""
        index = bisect.bisect_right(self.pcs, pc) - 1
        return self._row(index) if index >= 0 else None

    def _row(self, index: int) -> Position | None:
        file = self.files[index]
        return None if file is None else Position(file, self.lines[index], self.columns[index])

    def copy(self) -> Positions:
        """A copy that shares nothing with these positions."""
        return Positions([*self.pcs], [*self.files], [*self.lines], [*self.columns])


@record.dataclass
class FunctionCode:
    """Instructions of a function, with names where numbers depend on other functions."""

    opcodes: list[int] = record.field(default_factory=list)
    immediates: list[int] = record.field(default_factory=list)
    """As in a program, 64 bits each; 0 where there is a relocation."""
    relocations: list[Relocation] = record.field(default_factory=list)
    """In the order of their pcs."""
    labels: dict[str, int] = record.field(default_factory=dict)
    """pcs of the labels, in their order."""
    positions: Positions = record.field(default_factory=Positions)
