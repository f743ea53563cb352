# SPDX-License-Identifier: Apache-2.0
"""The source lines of a program's instructions, with their texts where these can be read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ferryvm.errors import Position
from ferryvm.program import SourceMap

_LARGEST = 16 << 20
"""Bytes of a source file that is read."""

Line = tuple[str, int]
"""File and line, from 1."""


def line_at(source_map: SourceMap, pc: int) -> Line | None:
    """The line of an instruction, None if it is unknown."""
    position: Position | None = source_map.position(pc)
    return None if position is None else (position.file, position.line)


def texts(lines: Iterable[Line]) -> dict[Line, str]:
    """The texts of lines, without those that cannot be read."""
    wanted = sorted(set(lines))
    found: dict[Line, str] = {}
    for file in dict.fromkeys(file for file, _ in wanted):
        read = _read(Path(file))
        for line in (line for line in wanted if line[0] == file and line[1] <= len(read)):
            found[line] = read[line[1] - 1].strip()
    return found


def _read(path: Path) -> list[str]:
    # An image may name any file at all: nothing endless, nothing huge.
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return []
        return path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError):  # not text, or a name that no file can have
        return []
