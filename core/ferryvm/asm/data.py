# SPDX-License-Identifier: Apache-2.0
"""The initial contents of the memory: `.data` and `.bytes`."""

from __future__ import annotations

from ferryvm.asm import literal
from ferryvm.asm.source import StatementFault, Token
from ferryvm.asm.statement import TYPES, Statement, literal_of, reading, unsigned_of
from ferryvm.program import Data

_BITS = {"i8": 8, "i16": 16}
"""Item types that occur in data only; the four value types are the others."""


class DataSection:
    """The data of one text: addresses, and their bytes so far."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytearray]] = []

    def contents(self) -> list[Data]:
        """The data of the program."""
        return [Data(address, bytes(content)) for address, content in self._parts]

    def read_data(self, statement: Statement) -> None:
        """Read an address and the items there."""
        address = unsigned_of(statement.next("an address"), 64)
        self._parts.append((address, bytearray()))
        self._read_items(statement)

    def read_bytes(self, statement: Statement) -> None:
        """Read items that follow the last ones."""
        if not self._parts:
            raise StatementFault(
                statement.head, ".bytes goes on after a .data, and there is none above it"
            )
        self._read_items(statement)

    def _read_items(self, statement: Statement) -> None:
        content = self._parts[-1][1]
        kind: Token | None = None
        for token in statement.rest():
            if token.text.startswith('"'):
                with reading(token):
                    content += literal.string_bytes(token.text)
            elif token.text in TYPES or token.text in _BITS:
                kind = token
            elif kind is None:
                raise StatementFault(
                    token,
                    f"expected a string, or one of "
                    f"{', '.join([*_BITS, *TYPES])}; found {token.text!r}",
                )
            elif kind.text in TYPES:
                type_ = TYPES[kind.text]
                content += literal_of(type_, token).to_bytes(type_.bits // 8, "little")
            else:
                width = _BITS[kind.text]
                with reading(token):
                    bits = literal.integer_bits(width, kind.text, token.text)
                content += bits.to_bytes(width // 8, "little")
