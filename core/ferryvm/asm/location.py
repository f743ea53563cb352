# SPDX-License-Identifier: Apache-2.0
"""The positions that instructions get: their own lines, or what `.file` and `.loc` state."""

from __future__ import annotations

from ferryvm.asm.source import Source, StatementFault, Token
from ferryvm.asm.statement import Statement, name_of, unsigned_of
from ferryvm.errors import Position
from ferryvm.listing import FunctionCode


class Locations:
    """The files and the position that a text has stated so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._files: dict[int, str] = {}
        self._stated: Position | None = None
        self.is_self_located = True
        """True if instructions get the positions of their own lines."""

    def locate(self, code: FunctionCode, head: Token) -> None:
        """Give the next instruction the position of its mnemonic, unless `.loc` stated another."""
        if self.is_self_located:
            code.positions.set(len(code.opcodes), self._source.position(head))

    def begin(self, code: FunctionCode) -> None:
        """Give the following instructions the position that `.loc` stated, if there was one."""
        if self.is_self_located:
            code.positions.cut(len(code.opcodes))
        else:
            code.positions.set(len(code.opcodes), self._stated)

    def read_file(self, statement: Statement) -> None:
        """Read the number and the name of a file."""
        token = statement.next("a number")
        number = unsigned_of(token, 32)
        if number in self._files:
            raise StatementFault(token, f"file {number} is already {self._files[number]!r}")
        self._files[number] = name_of(statement.next("a file's name in quotes"))

    def read_location(self, statement: Statement) -> None:
        """Read a position, for the instructions that follow."""
        expected = "a file's number and a line, or none, or self"
        token = statement.next(expected)
        self.is_self_located = token.text == "self"
        self._stated = None
        if token.text in ("self", "none"):
            return
        number = unsigned_of(token, 32)
        if number not in self._files:
            known = ", ".join(map(str, self._files)) or "none"
            raise StatementFault(token, f"no .file has number {number} (known: {known})")
        line = unsigned_of(statement.next("a line after the file"), 32)
        column = unsigned_of(statement.next("a column"), 32) if statement.peek() else 1
        self._stated = Position(self._files[number], line, column)
