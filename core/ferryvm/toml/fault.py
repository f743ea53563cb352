# SPDX-License-Identifier: Apache-2.0
"""Faults of a file, in the order of its text, all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferryvm import record
from ferryvm.errors import FerryError, Position, first_of, suggestion

Path = tuple[str | int, ...]
"""A position in a TOML document: keys, and indices of arrays from 0."""

_WIDTH = 60
"""The largest number of characters of a value in a message."""

_LISTED = 24
"""The largest number of names that a message lists."""


@record.dataclass(frozen=True)
class TomlFault:
    """A fault at one position of a document."""

    path: Path
    found: str
    """The value found, or its fault."""
    allowed: str = ""
    """The values allowed there; empty if the fault needs no more explanation."""
    nearest: str | None = None
    """The allowed name that is most similar to the one found."""
    is_warning: bool = False
    """True if the file can be used, but a part of it has no effect."""

    @property
    def key(self) -> str:
        """The position as a dotted key; elements of an array count from 1."""
        return dotted(self.path)

    def __str__(self) -> str:
        near = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        allowed = f" (allowed: {self.allowed})" if self.allowed else ""
        return f"{'warning: ' if self.is_warning else ''}{self.key}: {self.found}{near}{allowed}"


@record.dataclass(frozen=True)
class PlacedFault:
    """A fault with its position in a file."""

    position: Position
    fault: TomlFault

    def __str__(self) -> str:
        return f"{self.position}: {self.fault}"


class DocumentError(FerryError):
    """An unusable file with all its faults; the message has a line for each of the first."""

    def __init__(self, faults: Sequence[PlacedFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(first_of(faults)))


def dotted(path: Path) -> str:
    """`rule[2].when.work` for ("rule", 1, "when", "work")."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            shown = part if part.isprintable() and len(part) <= _WIDTH else show(part)
            text += f".{shown}" if text else shown
    return text or "the file"


def unknown(path: Path, kind: str, name: str, known: Iterable[str]) -> TomlFault:
    """The fault of an unknown name."""
    names = sorted(known)
    return TomlFault(path, f"unknown {kind} {show(name)}", listed(names), nearest(name, names))


def listed(names: Iterable[str]) -> str:
    """The allowed names in words; only their number if they are many."""
    known = sorted(names)
    shown = ", ".join(known) if len(known) <= _LISTED else f"one of {len(known)}"
    return shown or "none"


def nearest(name: str, names: Sequence[str]) -> str | None:
    """The name most similar to `name`, or None; the last part of a dotted name matches, too."""
    for known in names:
        if known.rpartition(".")[2] == name:
            return known
    quoted = suggestion(name, names)
    return next((known for known in names if f" {known!r}?" in quoted), None)


def show(value: object) -> str:
    """A value as TOML writes it, truncated if it is long."""
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list):
        text = f"[{', '.join(show(element) for element in value[:_LISTED])}]"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = quote(value)
    else:
        text = str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."


def quote(text: str) -> str:
    """A text as TOML writes it."""
    import json  # imported on demand: a run without faults quotes nothing

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
