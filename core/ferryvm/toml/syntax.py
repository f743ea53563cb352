# SPDX-License-Identifier: Apache-2.0
"""The fault of a text that is not TOML: the first one, at which the parser stopped.

The parser's messages are Python's, which name no key. This module finds the key that is the cause.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ferryvm.toml.allowed import headed
from ferryvm.toml.fault import TomlFault
from ferryvm.toml.position import Place, last_key
from ferryvm.toml.table import Table

_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_TWICE = re.compile(r"Cannot (overwrite|declare|mutate|redefine)|Duplicate")
"""Beginnings of messages about duplicates."""

_LONG = re.compile(r"[+-]?\d[\d_]{4299,}")
"""An integer with more digits than Python reads, unless it is part of a text or comment."""


_MOST_PARTS = 50
"""The largest number of parts of a dotted key: the parser takes time and stack proportional to
their square."""

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{_MOST_PARTS}}}")
"""The beginning of a key with too many parts, unless it is part of a text or comment."""


class SyntaxFault(NamedTuple):
    """A fault and its position in the text."""

    place: Place
    fault: TomlFault


def syntax_fault(error: ValueError, text: str, keys: type[Table]) -> SyntaxFault:
    """The fault for which `tomli.loads` refused a text; `keys` are the allowed keys."""
    message, text = str(error), text.replace("\r\n", "\n")  # as the parser counts
    at = _AT.search(message)
    long = None if at else _long_number(text)
    if long is not None:
        return long
    place = _end(text) if at and not at[1] else (int(at[1]), int(at[2])) if at else (1, 1)
    if _TWICE.match(message):
        twice = _twice(text, place, keys)
        if twice is not None:
            return twice
    said = _AT.sub("", message)
    return SyntaxFault(place, TomlFault((), f"not TOML: {said[:1].lower()}{said[1:]}"))


def deep_key(text: str) -> SyntaxFault | None:
    """The fault of the first dotted key that has too many parts, for a check before the text is
    read.

    Texts and comments that look like such a key count as one: our files have none.
    """
    for number, line in enumerate(text.split("\n"), 1):
        found = _DEEP.search(line) if line.count(".") >= _MOST_PARTS else None
        if found is not None:
            said = f"found a key of more than {_MOST_PARTS} parts"
            place = (number, found.start() + 1)
            return SyntaxFault(place, TomlFault((), said, f"{_MOST_PARTS} at most"))
    return None


def _twice(text: str, place: Place, keys: type[Table]) -> SyntaxFault | None:
    """The fault of a key or table that a text sets twice before a position."""
    lines = text.split("\n")
    before = "\n".join([*lines[: place[0] - 1], lines[place[0] - 1][: place[1] - 1]])
    key = last_key(before, is_complete=True)
    if key is None or key.first == key.place:
        return None
    found = f"found again; first in line {key.first[0]}"
    return SyntaxFault(key.place, TomlFault(key.path, found, headed(keys, key.path) or "once"))


def _long_number(text: str) -> SyntaxFault | None:
    """The fault of the first number that is too long to be read."""
    for found in _LONG.finditer(text):
        key = last_key(text[: found.start()], is_complete=False)
        if key is not None:
            said = f"found a number of {len(found[0])} characters"
            return SyntaxFault(key.place, TomlFault(key.path, said, "19 digits at most"))
    return None


def _end(text: str) -> Place:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1
