# SPDX-License-Identifier: Apache-2.0
"""Objects one after another, in the words of an image or of an object space: the one reader of
headers in Python. A comparison names objects by it, a saved state is checked by it, and a device
that needs places of its own finds the arrays by it.

`ObjectMemory.outside` lists the elements outside of a space without it, in the time that their
number takes, but does not know the arrays that have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
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
)
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.collection import SHAPE_WORDS, ShapeKind
from ferryvm.machine.object_shape import Shapes

FLAGS = READ_ONLY
"""The flags that a header may have."""


class ImageFault(Exception):  # noqa: N818 - becomes an error of who reads the words
    """The reason that words are no objects of a program."""


class PlacedObject(NamedTuple):
    """An object, and its extent."""

    number: int
    """Its number in their order, from 0 up."""
    type: int
    kind: ShapeKind
    offset: int
    content: int
    """Offset of its first field or element; of elements outside the end of its header."""
    length: int
    """Number of its fields or elements."""
    element_bytes: int
    """Bytes of one of these."""
    end: int
    """Offset past the object."""
    outside: int | None
    """The place of its elements if they are outside of the space, in an image 0; else None."""

    @property
    def is_outside(self) -> bool:
        """True for an array whose elements are outside of the space."""
        return self.outside is not None


_Parts = tuple[int, int, ShapeKind, int, int, int, int, int, int | None]


def objects(
    words: memoryview,
    shapes: Shapes,
    first: int = FIRST_OFFSET,
    *,
    is_image: bool = True,
    gaps: Mapping[int, int] | None = None,
) -> Iterator[PlacedObject]:
    """The objects in words, from the offset `first` on, in their order. Raises ImageFault at a
    header of no type of the program, an object that ends past the words, a place that is neither
    inline nor 0, and flags that there are not.

    `is_image`: False for the words of an object space, where any other place is one outside, and
    there may be `gaps`, see `ferryvm.machine.object_space.ObjectSpace`.
    """
    offset, number, size = first, 0, WORD_BYTES * len(words)
    if first == FIRST_OFFSET and (not words or words[0]):
        raise ImageFault("the objects do not begin with a word that is 0")
    kinds = [ShapeKind(kind) for kind in shapes.rows[::SHAPE_WORDS]]
    sizes = shapes.rows[1::SHAPE_WORDS].tolist()
    # Names of this function, and tuples without a check of their length: a device's objects are
    # many.
    count_of_types, unknown_flags = len(kinds), ~(TYPE_MASK | FLAGS)
    none, struct, made = ShapeKind.NONE, ShapeKind.STRUCT, partial(tuple.__new__, PlacedObject)
    found: _Parts
    while offset < size:
        at = offset // WORD_BYTES
        header = words[at]
        type_ = (header & TYPE_MASK) >> 1
        kind = kinds[type_] if type_ < count_of_types else none
        if kind is none or not header & 1 or header & unknown_flags:
            raise ImageFault(
                f"the object at {offset} has the header {header:#x}, which no type has"
            )
        bytes_ = sizes[type_]
        if kind is struct:
            count = (bytes_ - STRUCT_HEADER_BYTES) // WORD_BYTES
            content, end = offset + STRUCT_HEADER_BYTES, offset + bytes_
            found = number, type_, kind, offset, content, count, WORD_BYTES, end, None
            if header > TYPE_MASK:
                raise ImageFault(f"the object at {offset} is a struct with flags")
        else:
            content = end = offset + ARRAY_HEADER_BYTES
            if content > size:
                raise ImageFault(f"the object at {offset} ends past the objects")
            length, place = words[at + LENGTH_OFFSET // 8], words[at + PLACE_OFFSET // 8]
            is_outside = place != content
            if length > LARGEST_LENGTH or (is_outside and is_image and place):
                raise ImageFault(
                    f"the object at {offset} is an array of {length} elements at {place}"
                )
            if not is_outside:
                end += padded(length * bytes_)
            elif gaps:
                end += gaps.get(offset, 0)
            outside = place if is_outside else None
            found = number, type_, kind, offset, content, length, bytes_, end, outside
        if end > size:
            raise ImageFault(f"the object at {offset} ends past the objects")
        yield made(found)
        offset, number = end, number + 1
