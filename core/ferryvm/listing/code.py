# SPDX-License-Identifier: Apache-2.0
"""The code of one function as arrays, not linked yet: what producers of much code write.

A listing's items are an object for each instruction, which the peephole and people can work with.
Here an instruction is two numbers, its opcode and its immediate, as they stand in a program, and a
relocation where the immediate is known only when all functions are together. Linking is then a
copy and a few additions.

Invariants: an opcode is the table's; a pc counts from the function's start; positions have
increasing pcs, and each is that of the instructions up to the next one.
"""

from __future__ import annotations

import dataclasses

from ferryvm.program import Signature

Relocation = tuple[int, str | Signature]
"""A pc, and what its immediate is the number of: a name (label, function, host import), which the
instruction tells the kind of, or a signature."""


@dataclasses.dataclass(slots=True)
class FunctionCode:
    """Instructions of a function, with names where numbers depend on other functions."""

    opcodes: list[int] = dataclasses.field(default_factory=list)
    immediates: list[int] = dataclasses.field(default_factory=list)
    """As in a program, 64 bits each; 0 where there is a relocation."""
    relocations: list[Relocation] = dataclasses.field(default_factory=list)
    """In the order of their pcs."""
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    """pcs of the labels, in their order."""
    positions: list[tuple[int, str, int, int]] = dataclasses.field(default_factory=list)
    """(pc, file, line, column); line 0: no position. None before the first one."""

    def locate(self, file: str, line: int, column: int) -> None:
        """Give the instructions from here on a position (line 0: none)."""
        pc, positions = len(self.opcodes), self.positions
        if positions and positions[-1][0] == pc:
            positions.pop()
        if not positions or positions[-1][1:] != (file, line, column):
            positions.append((pc, file, line, column))
