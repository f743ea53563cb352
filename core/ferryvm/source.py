# SPDX-License-Identifier: Apache-2.0
"""A source text that a front end reads, and the faults found in it.

No front end stops at its first fault: it records the fault here and continues, so that one run
shows all faults; `check` raises them together, each with its position, its line and a caret.
"""

from __future__ import annotations

from ferryvm.errors import Diagnostic, Position, SourceError

__all__ = ["SourceText"]

MOST_FAULTS = 100
"""After this many faults a text is probably in another language, and further reports do not
help."""

_LONGEST_SHOWN = 400
"""The length beyond which a line is not shown below its fault, and a message is truncated."""


class SourceText:
    """A text, its file's name and the faults found so far."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = [line.removesuffix("\r") for line in text.split("\n")]
        self.diagnostics: list[Diagnostic] = []

    def position(self, line: int, column: int) -> Position:
        """A position in the text; line and column count from 1."""
        return Position(self.file, line, column)

    def fault(self, line: int, column: int, message: str, length: int = 1) -> None:
        """Record a fault, with a caret below `length` characters.

        Raises SourceError when there are too many to continue.
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
