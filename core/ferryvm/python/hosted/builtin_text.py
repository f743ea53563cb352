# SPDX-License-Identifier: Apache-2.0
"""Functions of texts and bytes that are Python functions of the subset, see `builtin_list`."""

from __future__ import annotations

from typing import Any

TEXT_METHODS = frozenset(
    {
        *("find", "index", "count", "startswith", "endswith"),
        *("upper", "lower", "strip", "lstrip", "rstrip"),
    }
)
"""Methods of texts for which a function stands here."""

CHARACTER_TESTS = {
    "isdigit": [("0", "9")],
    "isalpha": [("A", "Z"), ("a", "z")],
    "isalnum": [("0", "9"), ("A", "Z"), ("a", "z")],
    "isupper": [("A", "Z")],
    "islower": [("a", "z")],
    "isspace": [("\t", "\r"), ("\x1c", " ")],
}
"""The ranges of ASCII for which a method of a character is true."""


def has_text(wanted: Any, text: Any) -> Any:
    """True if a text is a part of another one."""
    return find(text, wanted) >= 0


def has_byte(wanted: Any, values: Any) -> Any:
    """True if a number is among bytes."""
    if wanted < 0 or wanted > 255:
        raise ValueError(f"{wanted} is no byte")
    for value in values:  # noqa: SIM110  # it is code of the subset
        if value == wanted:
            return True
    return False


def find(text: Any, wanted: Any) -> Any:
    """`text.find(wanted)`."""
    size = len(wanted)
    for start in range(len(text) - size + 1):
        at = 0
        while at < size and text[start + at] == wanted[at]:
            at += 1
        if at == size:
            return start
    return -1


def index(text: Any, wanted: Any) -> Any:
    """`text.index(wanted)`."""
    at = find(text, wanted)
    if at < 0:
        raise ValueError(f"{at}")
    return at


def count(text: Any, wanted: Any) -> Any:
    """`text.count(wanted)`: parts that do not overlap."""
    size = len(wanted)
    if size == 0:
        return len(text) + 1
    found, start = 0, 0
    while start + size <= len(text):
        at = 0
        while at < size and text[start + at] == wanted[at]:
            at += 1
        if at == size:
            found += 1
            start += size
        else:
            start += 1
    return found


def startswith(text: Any, wanted: Any) -> Any:
    """`text.startswith(wanted)`."""
    if len(wanted) > len(text):
        return False
    for at in range(len(wanted)):  # noqa: SIM110  # it is code of the subset
        if text[at] != wanted[at]:
            return False
    return True


def endswith(text: Any, wanted: Any) -> Any:
    """`text.endswith(wanted)`."""
    first = len(text) - len(wanted)
    if first < 0:
        return False
    for at in range(len(wanted)):  # noqa: SIM110  # it is code of the subset
        if text[first + at] != wanted[at]:
            return False
    return True


def upper(text: Any) -> Any:
    """`text.upper()` of ASCII; CPython has the tables for other characters."""
    found = []
    for c in text:
        code = ord(c)
        if code > 127:
            raise ValueError(f"{code}")
        found.append(chr(code - 32) if 97 <= code <= 122 else c)
    return "".join(found)


def lower(text: Any) -> Any:
    """`text.lower()` of ASCII."""
    found = []
    for c in text:
        code = ord(c)
        if code > 127:
            raise ValueError(f"{code}")
        found.append(chr(code + 32) if 65 <= code <= 90 else c)
    return "".join(found)


def _is_space(c: Any) -> Any:
    code = ord(c)
    if code > 127:
        raise ValueError(f"{code}")
    return code == 32 or 9 <= code <= 13 or 28 <= code <= 31


def lstrip(text: Any) -> Any:
    """`text.lstrip()`."""
    first = 0
    while first < len(text) and _is_space(text[first]):
        first += 1
    return text[first:]


def rstrip(text: Any) -> Any:
    """`text.rstrip()`."""
    end = len(text)
    while end > 0 and _is_space(text[end - 1]):
        end -= 1
    return text[:end]


def strip(text: Any) -> Any:
    """`text.strip()`."""
    return lstrip(rstrip(text))
