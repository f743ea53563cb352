# SPDX-License-Identifier: Apache-2.0
"""The positions of the keys and elements of a TOML document in its text.

TOML parsers return values without positions. This module walks over a text that a parser has
accepted, so it only has to know where things begin and end, and never has to refuse anything. In a
refused text it can walk over the part before the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import tomli

from ferryvm.toml.fault import Path

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
"""White space, ends of lines and comments, which may be between any two tokens."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
"""A number, boolean or date: up to the characters that can follow a value."""

_STRINGS = (
    # The closing quotes may follow up to two more quotes.
    re.compile(r'"""(?:\\.|(?!""")[^\\])*"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''(?:(?!''').)*'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\])*"'),
    re.compile(r"'[^']*'"),
)

_DEEPEST = 50
"""The number of parts of a dotted key that have a position: each costs as much as all before it."""

Place = tuple[int, int]
"""Line and column, from 1."""


def places(text: str) -> Mapping[Path, Place]:
    """The position of every key and array element of a valid TOML document.

    A table's position is its first mention; that of an element of an array of tables is its header.
    """
    return _Walk(text).run()


class Key(NamedTuple):
    """A key or header of a text."""

    path: Path
    """Its path, without the index of an element if it is the header of one."""
    place: Place
    first: Place
    """The first position of the same key, or of its container; `place` if it was not set before."""


def last_key(text: str, is_complete: bool) -> Key | None:
    """The last key of the beginning of a document, up to a mistake; None if there is none.

    `is_complete`: the last key with a complete value. Otherwise the key whose value would begin at
    the end of the text; None if no value would.
    """
    walk, is_open = _Walk(text), False
    try:
        walk.run()
    except IndexError:  # the text ends before a value, or in an array or inline table
        is_open = True
    except StopIteration:  # the text ends in a key or string
        pass
    found = walk.completed if is_complete else walk.started
    if found is None or not (is_complete or is_open):
        return None
    path, start = found
    while path and isinstance(path[-1], int):
        path = path[:-1]
    before = (walk.found.get(path[:length], start) for length in range(len(path), 0, -1))
    earlier = next((offset for offset in before if offset < start), start)
    return Key(path, walk.place(start), walk.place(earlier))


class _Walk:
    """One pass over a document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[Path, int] = {}
        self.elements: dict[Path, int] = {}
        """The number of headers of each array of tables so far."""
        self.started: tuple[Path, int] | None = None
        self.completed: tuple[Path, int] | None = None
        """The last keys and headers, with their starts."""

    def run(self) -> Mapping[Path, Place]:
        table: Path = ()
        self._skip()
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip()
        return self._lines()

    def _lines(self) -> dict[Path, Place]:
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        places, line = {}, 0
        for path, offset in sorted(self.found.items(), key=lambda item: item[1]):
            while line + 1 < len(starts) and starts[line + 1] <= offset:
                line += 1
            places[path] = (line + 1, offset - starts[line] + 1)
        return places

    def place(self, offset: int) -> Place:
        """The position of a character."""
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        assert match  # the pattern matches the empty text, too
        self.at = match.end()

    def _header(self) -> Path:
        """Skip `[a.b]` or `[[a.b]]`; the table that it opens."""
        start = self.at
        is_element = self.text.startswith("[[", self.at)
        self.at += 2 if is_element else 1
        path: Path = ()
        keys = self._keys()
        last = min(len(keys), _DEEPEST) - 1
        for index, key in enumerate(keys[:_DEEPEST]):
            path = (*path, key)
            self.found.setdefault(path, start)
            if is_element and index == last:
                self.elements[path] = self.elements.get(path, 0) + 1
            if path in self.elements:
                path = (*path, self.elements[path] - 1)
                self.found.setdefault(path, start)
        self.started = self.completed = (path, start)
        self._skip()
        self.at += 2 if is_element else 1
        return path

    def _pair(self, table: Path) -> None:
        """Skip `a.b = value`."""
        self._skip()
        start = self.at
        path = table
        for key in self._keys()[:_DEEPEST]:
            path = (*path, key)
            self.found.setdefault(path, start)
        self.started = (path, start)
        self._skip()
        self.at += 1  # the equals sign
        self._value(path)
        self.completed = (path, start)

    def _keys(self) -> list[str]:
        """Skip a dotted key; its parts."""
        keys = []
        while True:
            self._skip()
            bare = _BARE.match(self.text, self.at)
            if bare:
                keys.append(bare[0])
                self.at = bare.end()
            else:
                quoted = self._string()
                keys.extend(tomli.loads(f"{quoted} = 0"))
            self._skip()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _string(self) -> str:
        start = self.at
        match = next(filter(None, (form.match(self.text, start) for form in _STRINGS)))
        self.at = match.end()
        return match[0]

    def _value(self, path: Path) -> None:
        """Skip a value; arrays and inline tables have positions inside."""
        self._skip()
        first = self.text[self.at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._inside("]", path)
        elif first == "{":
            self._inside("}", path)
        else:
            match = _SCALAR.match(self.text, self.at)
            assert match
            self.at = match.end()

    def _inside(self, end: str, path: Path) -> None:
        """Skip an array or an inline table."""
        self.at += 1
        index = 0
        self._skip()
        while self.text[self.at] != end:
            if end == "]":
                element = (*path, index)
                self.found[element] = self.at
                self._value(element)
                index += 1
            else:
                self._pair(path)
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
                self._skip()
        self.at += 1
