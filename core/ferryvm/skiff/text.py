# SPDX-License-Identifier: Apache-2.0
"""String and character literals.

    "a \"b\"\n"    "\x3bb;"    #\a    #\\space    #\x3bb

A string is its text in UTF-8; a character is an integer literal, its code point.
"""

from __future__ import annotations

import re

from ferryvm import pattern
from ferryvm.skiff.number import Number

_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "\\": "\\", '"': '"',
}  # fmt: skip
_NAMES = {
    "alarm": 7, "backspace": 8, "delete": 127, "escape": 27, "newline": 10, "null": 0,
    "return": 13, "space": 32, "tab": 9,
}  # fmt: skip
_PIECE = pattern.lazy(r"\\x(?P<hex>[0-9a-fA-F]{1,6});|\\(?P<escape>.)|(?P<plain>[^\\]+)", re.DOTALL)
_HEX = pattern.lazy(r"x([0-9a-fA-F]{1,6})")
ALLOWED = r"\n \t \r \0 \a \b \\ \" and \x41; (a code point in base 16)"
"""The escapes of strings, as messages name them."""


class TextFault(Exception):  # noqa: N818 - becomes a recorded fault of who reads the literal
    """A literal that means nothing: the offset and length of the wrong part, and the message."""

    def __init__(self, offset: int, length: int, message: str) -> None:
        super().__init__(message)
        self.offset, self.length, self.message = offset, length, message


def is_string(text: str) -> bool:
    """True if an atom is a string literal."""
    return text.startswith('"')


def is_character(text: str) -> bool:
    """True if an atom is a character literal."""
    return text.startswith("#\\")


def _is_scalar(code: int) -> bool:
    """True for a code point that UTF-8 has."""
    return code < 0xD800 or 0xE000 <= code <= 0x10FFFF


def string_bytes(text: str) -> bytes:
    """The bytes of a string literal, quotes included in the text. Raises TextFault."""
    found = []
    place = 1
    while place < len(text) - 1:
        match = _PIECE.match(text, place, len(text) - 1)
        assert match is not None, "the reader has ended the string at a quote of its own"
        if match["hex"]:
            code = int(match["hex"], 16)
            if not _is_scalar(code):
                raise TextFault(place, len(match[0]), f"{code:#x} is no code point of a character")
            found.append(chr(code))
        elif match["escape"]:
            if match["escape"] not in _ESCAPES:
                message = f"'{match[0]}' is no escape in a string; there are {ALLOWED}"
                raise TextFault(place, len(match[0]), message)
            found.append(_ESCAPES[match["escape"]])
        else:
            found.append(match["plain"])
        place = match.end()
    # A lone surrogate can come from a text that was made in Python.
    return "".join(found).encode("utf-8", "surrogatepass")


def character(text: str) -> Number:
    """The number of a character literal. Raises TextFault."""
    name = text[2:]
    code = ord(name) if len(name) == 1 else _NAMES.get(name)
    if code is None and (match := _HEX.fullmatch(name)):
        code = int(match[1], 16)
        code = code if _is_scalar(code) else None
    if code is None:
        names = " ".join(sorted(_NAMES))
        raise TextFault(
            0, len(text), f"'{text}' is no character; there are #\\a, #\\x61 and the names {names}"
        )
    return Number(text, code)
