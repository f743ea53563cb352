# SPDX-License-Identifier: Apache-2.0
"""Errors that users read: one base class, data in fields, one clear line in the message.

A message has the fault, its position, and the allowed values. The command line prints it and exits
with 2 (a trap, which is the program's own fault, exits with 1); it never shows a Python traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferryvm.named_tuple import NamedTuple

__all__ = ["Diagnostic", "FerryError", "Position", "SourceError", "UnknownNameError"]


class FerryError(Exception):
    """Base of every error that this package raises on purpose."""


class Position(NamedTuple):
    """A position in a source text; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


_WINDOW = 160
"""The largest number of characters of a source line that are shown, around the column."""

_SHOWN = 20
"""The largest number of faults of a file that a message shows."""


def first_of(faults: Sequence[object]) -> list[str]:
    """The first faults of a file, each as text, and a line with the number of the others."""
    lines = list(map(str, faults[:_SHOWN]))
    if len(faults) > _SHOWN:
        lines.append(f"... and {len(faults) - _SHOWN} more")
    return lines


class Diagnostic(NamedTuple):
    """One fault in a source text."""

    position: Position
    message: str
    source_line: str = ""
    """The text of the line, shown with a caret below the column; empty if there is none."""
    length: int = 1
    """Characters to underline."""

    def __str__(self) -> str:
        head = f"{self.position}: {self.message}"
        if not self.source_line:
            return head
        column = self.position.column - 1
        first = max(0, column - _WINDOW // 2) if len(self.source_line) > _WINDOW else 0
        shown = self.source_line[first : first + _WINDOW]
        before = ("..." if first else "") + shown[: column - first]
        after = shown[column - first :] + ("..." if first + _WINDOW < len(self.source_line) else "")
        caret = "^" * max(1, min(self.length, len(after)))
        return f"{head}\n    {before}{after}\n    {_blank(before)}{caret}"


def _blank(text: str) -> str:
    """White space as wide as `text` on a terminal: tabs are preserved, wide characters take two
    columns."""
    import unicodedata  # only to show a line of source

    return "".join(
        "\t" if character == "\t" else " " * (1 + (unicodedata.east_asian_width(character) in "WF"))
        for character in text
        if not unicodedata.combining(character)
    )


class SourceError(FerryError):
    """One or more faults in a source text, in the order of their positions."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda d: d.position))
        super().__init__("\n".join(first_of(self.diagnostics)))


_LISTED = 16
"""The number of known names that an error lists; more would hide the message."""


class UnknownNameError(FerryError):
    """An unknown name; the message suggests similar ones and lists the allowed names, after the
    `place` where it is used, if that is known."""

    def __init__(self, kind: str, name: str, known: Iterable[str], place: str = "") -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        known_ones = f" (known: {', '.join(self.known) or 'none'})"
        if len(self.known) > _LISTED:
            known_ones = f" (of {len(self.known)})"
        where = f"{place}: " if place else ""
        super().__init__(f"{where}no {kind} {name!r}{suggestion(name, self.known)}{known_ones}")


def by_likeness(name: str, known: Iterable[str]) -> list[str]:
    """Known names, the nearest to one first; those that are equally near in their order."""
    import difflib  # needed for messages only

    return sorted(known, key=lambda each: -difflib.SequenceMatcher(None, name, each).ratio())


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or nothing."""
    if not isinstance(name, str):  # a caller without type checks
        return ""
    import difflib  # needed for messages only

    names = [each for each in known if each != name]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    near = near or difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
