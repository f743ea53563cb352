# SPDX-License-Identifier: Apache-2.0
"""Places in source texts, and the list in which every phase of the compiler leaves its faults.

No phase stops at its first fault: it notes it here and goes on with something harmless in its
place, so that one run reports all that is wrong. Nothing is compiled when the list is not empty.
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.errors import Diagnostic, Position, SourceError


class SourceSpan(NamedTuple):
    """The position of something, and how many characters of its first line it takes."""

    position: Position
    length: int = 1


class Faults:
    """The faults found so far, and the texts that they are in."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._found: dict[tuple[Position, str], Diagnostic] = {}
        self.lost_names: set[str] = set()
        """Names whose definitions could not be read: their uses are no faults."""

    def add_text(self, file: str, text: str) -> None:
        """Make the lines of a text known, so that faults in it can show them."""
        self._lines[file] = text.split("\n")

    def add(self, place: SourceSpan, message: str) -> None:
        """Note a fault. The same message at the same place counts once."""
        position = place.position
        lines = self._lines.get(position.file, [])
        line = lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else ""
        diagnostic = Diagnostic(position, message, line, place.length)
        self._found.setdefault((position, message), diagnostic)

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Nothing, if there are no faults; else raises SourceError with all of them."""
        if self._found:
            raise SourceError(list(self._found.values()))
