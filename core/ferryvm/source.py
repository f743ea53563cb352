# SPDX-License-Identifier: Apache-2.0
"""A source text that a front end reads, and the faults found in it.

No front end stops at its first fault: it notes it here and goes on, so that one run shows all that
is wrong; `check` raises them together, each with its place, its line and a caret.
"""

from __future__ import annotations

from ferryvm.errors import Diagnostic, Position, SourceError

__all__ = ["SourceText"]

MOST_FAULTS = 100
"""After this many faults a text is not what we take it for, and reading on helps nobody."""

_LONGEST_SHOWN = 400
"""Characters past which a line is not shown below its fault, and a message is cut."""


class SourceText:
    """A text, its file's name and the faults found so far."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.diagnostics: list[Diagnostic] = []

    def position(self, line: int, column: int) -> Position:
        """A place in the text; line and column count from 1."""
        return Position(self.file, line, column)

    def fault(self, line: int, column: int, message: str, length: int = 1) -> None:
        """Note a fault, with a caret below `length` characters.

        Raises SourceError when there are too many to go on.
        """
        shown = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if len(shown) > _LONGEST_SHOWN:
            shown = ""
        if len(message) > _LONGEST_SHOWN:
            message = f"{message[: _LONGEST_SHOWN // 2]} ... {message[-_LONGEST_SHOWN // 2 :]}"
        position = self.position(line, column)
        self.diagnostics.append(Diagnostic(position, message, shown, max(1, length)))
        if len(self.diagnostics) >= MOST_FAULTS:
            self.check()

    def check(self) -> None:
        """Raise SourceError if there are faults."""
        if self.diagnostics:
            raise SourceError(self.diagnostics)
