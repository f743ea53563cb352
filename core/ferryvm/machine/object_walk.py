# SPDX-License-Identifier: Apache-2.0
"""The objects of an image, one after another: how a comparison names them, and how a saved state is
checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FIRST_OFFSET,
    LARGEST_LENGTH,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    READ_ONLY,
    STRUCT_HEADER_BYTES,
    TYPE_MASK,
    padded,
    type_number,
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import SHAPE_WORDS, ShapeKind
from ferryvm.machine.object_shape import Shapes

FLAGS = READ_ONLY
"""The flags that a header may have."""


class ImageFault(Exception):  # noqa: N818 - becomes an error of who reads the image
    """The reason that words are no objects of a program."""


class PlacedObject(NamedTuple):
    """An object of an image."""

    number: int
    """Its number in the order of the image, from 0 up."""
    type: int
    kind: ShapeKind
    offset: int
    content: int
    """Offset of its first field or element; of elements outside the end of its header."""
    length: int
    """Number of its fields or elements."""
    element_bytes: int
    """Bytes of one of these."""
    is_outside: bool

    @property
    def end(self) -> int:
        """Offset past the object."""
        inside = 0 if self.is_outside else padded(self.length * self.element_bytes)
        return self.content + inside


def objects(words: memoryview, shapes: Shapes) -> Iterator[PlacedObject]:
    """The objects in the words of an image, in their order. Raises ImageFault at a header of no type
    of the program, an object that ends past the image, a place that is neither inline nor 0, and
    flags that there are not."""
    offset, number, size = FIRST_OFFSET, 0, WORD_BYTES * len(words)
    if not words or words[0]:
        raise ImageFault("the objects do not begin with a word that is 0")
    while offset < size:
        at = offset // WORD_BYTES
        header = words[at]
        type_ = type_number(header)
        is_known = header & 1 and type_ < shapes.count and not header & ~(TYPE_MASK | FLAGS)
        kind = ShapeKind(shapes.rows[SHAPE_WORDS * type_]) if is_known else ShapeKind.NONE
        if kind is ShapeKind.NONE:
            raise ImageFault(f"object {number} has the header {header:#x}, which no type has")
        bytes_ = shapes.rows[SHAPE_WORDS * type_ + 1]
        if kind is ShapeKind.STRUCT:
            count = (bytes_ - STRUCT_HEADER_BYTES) // WORD_BYTES
            content = offset + STRUCT_HEADER_BYTES
            found = PlacedObject(number, type_, kind, offset, content, count, WORD_BYTES, False)
            is_flagged = header > TYPE_MASK
        else:
            content = offset + ARRAY_HEADER_BYTES
            if content > size:
                raise ImageFault(f"object {number} ends past the objects")
            length, place = words[at + LENGTH_OFFSET // 8], words[at + PLACE_OFFSET // 8]
            if length > LARGEST_LENGTH or place not in (0, content):
                raise ImageFault(f"object {number} is an array of {length} elements at {place}")
            is_outside = place == 0
            found = PlacedObject(number, type_, kind, offset, content, length, bytes_, is_outside)
            is_flagged = False
        if is_flagged or found.end > size:
            raise ImageFault(f"object {number} ends past the objects, or is a struct with flags")
        yield found
        offset, number = found.end, number + 1
