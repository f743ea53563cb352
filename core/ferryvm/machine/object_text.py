# SPDX-License-Identifier: Apache-2.0
"""The text of a reference, for people: the REPL, views in Python, uncaught exceptions.

    null      5      "text"      <f64[] of 3: 1.0, 2.0, 3.0>      <cell value=1 next=<cell ...>>

It reads the words of the object space, changes nothing, and has bounds: so many levels, elements of
an array, fields and elements in all. An object inside itself is not shown again. An array of bytes
whose content is text in UTF-8 is a string.
"""

from __future__ import annotations

import codecs
import struct
from typing import Final

from ferryvm.isa.declared_type import StructType
from ferryvm.isa.element import Element
from ferryvm.isa.object import LENGTH_OFFSET, STRUCT_HEADER_BYTES, type_number
from ferryvm.isa.type import (
    I32,
    WORD_BYTES,
    Reference,
    ValueType,
    format_number,
    format_value,
    signed,
)
from ferryvm.machine.object_memory import ObjectMemory

_LEVELS: Final = 3
"""Objects inside each other that are shown with their content."""
_ELEMENTS: Final = 8
"""Elements of an array that are shown."""
_PARTS: Final = 64
"""Fields and elements that are shown, in all."""
_TEXT_BYTES: Final = 200
"""Bytes of a string that are shown."""

_FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I"} | {
    "i64": "q",
    "f32": "f",
    "f64": "d",
}
_ESCAPES = {
    ord("\\"): "\\\\",
    ord('"'): '\\"',
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    ord("\r"): "\\r",
}


def object_text(objects: ObjectMemory, word: int) -> str:
    """The text of a reference to one of these objects."""
    return _Writer(objects).reference(word)


class _Writer:
    def __init__(self, objects: ObjectMemory) -> None:
        self._objects, self._space, self._types = objects, objects.space, objects.types
        self._elements = objects.shapes.elements
        self._parts = _PARTS
        self._outer: list[int] = []
        """The objects around the current one."""

    def reference(self, word: int) -> str:
        if not word:
            return "null"
        if word & 1:
            return str(signed(I32, word & I32.mask) >> 1)
        words, at = self._space.words, word // WORD_BYTES
        number = type_number(words[at])
        name, declared = self._types.references[number].name, self._types.declared(number)
        if number not in self._elements and (word in self._outer or len(self._outer) == _LEVELS):
            return f"<{name} ...>"
        self._outer.append(word)
        try:
            if isinstance(declared, StructType):
                return self._struct(declared, at + STRUCT_HEADER_BYTES // WORD_BYTES)
            return self._array(number, name, at)
        finally:
            self._outer.pop()

    def _struct(self, declared: StructType, at: int) -> str:
        shown = [declared.name]
        for number, field in enumerate(declared.fields):
            if not self._takes_part():
                shown.append("...")
                break
            shown.append(f"{field.name}={self._value(field.type, self._space.words[at + number])}")
        return f"<{' '.join(shown)}>"

    def _array(self, number: int, name: str, at: int) -> str:
        words = self._space.words
        length: int = words[at + LENGTH_OFFSET // WORD_BYTES]
        element = self._elements.get(number)
        if element is Element.U8:
            text = _string(self._objects.elements(WORD_BYTES * at, _TEXT_BYTES), length)
            if text is not None:
                return text
        bytes_ = WORD_BYTES if element is None else element.bytes
        content = self._objects.elements(WORD_BYTES * at, bytes_ * _ELEMENTS)
        code = "Q" if element is None else _FORMATS[element.kind]
        shown = []
        for (value,) in struct.iter_unpack(f"<{code}", content):
            if not self._takes_part():
                break
            shown.append(
                self.reference(value) if element is None else format_number(element.type, value)
            )
        if len(shown) < length:
            shown.append("...")
        return f"<{name} of {length}: {', '.join(shown)}>" if length else f"<{name} of 0>"

    def _value(self, t: ValueType, word: int) -> str:
        return self.reference(word) if isinstance(t, Reference) else format_value(t, word & t.mask)

    def _takes_part(self) -> bool:
        self._parts -= 1
        return self._parts >= 0


def _string(content: bytes, length: int) -> str | None:
    """Bytes as text in quotes, the first ones of so many; None if they are no text."""
    is_whole = len(content) == length
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(content, final=is_whole)
    except UnicodeDecodeError:
        return None
    if not all(character.isprintable() or character in "\n\t\r" for character in text):
        return None
    shown = text.translate(_ESCAPES)
    return f'"{shown}"' if is_whole else f'"{shown}..." of {length} bytes'
