# SPDX-License-Identifier: Apache-2.0
"""Positions in source texts, and the list of faults that all phases of the compiler share.

No phase stops at its first fault: it records the fault here and continues with a harmless
substitute, so that one run reports all faults. Nothing is compiled if the list is not empty.
"""

from __future__ import annotations

from ferryvm.errors import Diagnostic, Position, SourceError
from ferryvm.named_tuple import NamedTuple


class SourceSpan(NamedTuple):
    """The position of a piece of source, and its length in characters on its first line."""

    position: Position
    length: int = 1


class Faults:
    """The faults found so far, and the texts that they are in."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._found: dict[tuple[Position, str], Diagnostic] = {}
        self.lost_names: set[str] = set()
        """Names whose definitions could not be read: their uses are not faults."""

    def add_text(self, file: str, text: str) -> None:
        """Register the lines of a text, so that messages about it can show them."""
        self._lines[file] = text.split("\n")

    def add(self, place: SourceSpan, message: str) -> None:
        """Record a fault. The same message at the same position counts once."""
        position = place.position
        lines = self._lines.get(position.file, [])
        line = lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else ""
        diagnostic = Diagnostic(position, message, line, place.length)
        self._found.setdefault((position, message), diagnostic)

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Raise SourceError with all faults, if there are any."""
        if self._found:
            raise SourceError(list(self._found.values()))
