# SPDX-License-Identifier: Apache-2.0
"""The objects of a saved state: the section OBJS.

    bytes of the space │ zlib: space as an image │ elements outside, one array after another

The space is in canonical order (docs/state.md), the place of an array whose elements are outside is
0. Nothing in a file is trusted: `SavedObjects` walks the objects, and `is_wrong` says if one
of some words is neither null, nor an i31, nor the offset of an object of the right type.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from ferryvm.isa.object import FIRST_OFFSET, padded
from ferryvm.isa.type import I31REF, WORD_BYTES, Reference, ValueType, with_article
from ferryvm.machine.collection import ShapeKind
from ferryvm.machine.object_memory import ObjectImage, ObjectMemory
from ferryvm.machine.object_shape import Shapes
from ferryvm.machine.object_walk import ImageFault, PlacedObject, objects
from ferryvm.verify import Verified

Words = npt.NDArray[np.uint64]

_SIZE = struct.Struct("<Q")
_LEVEL = 1
"""Of compression: zeros take no space at any level."""

_MOST_I31 = (1 << 32) - 1


class ObjectsTooLargeError(Exception):
    """The objects take more bytes than the limit; its argument is the bytes."""


def pack_objects(image: ObjectImage | None) -> bytes:
    """The section for an image; empty for a program that has no references."""
    if image is None:
        return b""
    packer = zlib.compressobj(_LEVEL)
    parts = [_SIZE.pack(len(image.space))]
    for one in (image.space, *image.elements):
        parts.append(packer.compress(one.cut(0, len(one))))
    return b"".join([*parts, packer.flush()])


class SavedObjects:
    """The objects of a section, checked but for the references to them from elsewhere."""

    def __init__(self, section: memoryview, verified: Verified, limit: int) -> None:
        """Raises ImageFault for what are no objects of the program, ObjectsTooLargeError."""
        self._types, self._shapes = verified.types, Shapes(verified.program)
        if len(section) < _SIZE.size:
            raise ImageFault(f"{len(section)} bytes in section OBJS, {_SIZE.size} at least")
        (size,) = _SIZE.unpack_from(section)
        if size > limit:
            raise ObjectsTooLargeError(size)
        if size < FIRST_OFFSET or size % WORD_BYTES:
            raise ImageFault(f"{size} bytes of objects, a multiple of {WORD_BYTES} expected")
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(section[_SIZE.size :], limit + 1)
        except zlib.error as error:
            raise ImageFault(f"its objects cannot be unpacked: {error}") from None
        if len(content) > limit:
            raise ObjectsTooLargeError(len(content))
        if not unpacker.eof or unpacker.unused_data or len(content) < size:
            raise ImageFault("its objects end early, or there is something after them")
        self.words: Words = np.frombuffer(content, "<u8", size // WORD_BYTES)
        found = list(objects(memoryview(content)[:size].cast("Q"), self._shapes))
        self._type_at = np.full(len(self.words), -1, np.int64)
        """The type number of the object at each word; -1 where none begins."""
        for one in found:
            self._type_at[one.offset // WORD_BYTES] = one.type
        self.arrays = [one for one in found if one.is_outside]
        self.elements: list[bytes] = []
        for one in self.arrays:
            end = size + padded(one.length * one.element_bytes)
            self.elements.append(content[size:end])
            size = end
        if size != len(content):
            raise ImageFault("its objects are more or fewer bytes than their headers say")
        self._check(found)

    def _check(self, found: list[PlacedObject]) -> None:
        """Check fields and elements."""
        by_type: dict[int, list[PlacedObject]] = {}
        for one in found:
            by_type.setdefault(one.type, []).append(one)
        outside = {one.number: each for one, each in zip(self.arrays, self.elements, strict=True)}
        for number, of_type in by_type.items():
            name, types = self._types.references[number], self._shapes.fields[number]
            if of_type[0].kind is ShapeKind.STRUCT:
                starts = np.array([one.content // WORD_BYTES for one in of_type])
                for index, t in enumerate(types):
                    if self.is_wrong(self.words[starts + index], t):
                        raise ImageFault(
                            f"field {index} of {with_article(name)} is not {with_article(t)}"
                        )
                continue
            (t,) = types
            for one in of_type:
                content = outside.get(one.number)
                if content is None:
                    content = self.words[
                        one.content // WORD_BYTES : one.end // WORD_BYTES
                    ].tobytes()
                if any(content[one.length * one.element_bytes :]):
                    raise ImageFault(
                        f"there is something after the elements of {with_article(name)}"
                    )
                if isinstance(t, Reference) and self.is_wrong(np.frombuffer(content, "<u8"), t):
                    raise ImageFault(f"an element of {with_article(name)} is not {with_article(t)}")

    def is_wrong(self, words: Words, t: ValueType) -> bool:
        """True if one of the words cannot be of that type."""
        if not isinstance(t, Reference):
            return bool((words & ~np.uint64(t.mask)).any())
        allowed = np.array(
            [self._types.is_subtype(n, t.number) for n in range(len(self._types.references))]
            + [False]  # of no object
        )
        is_i31 = (words & 1 == 1) & (words <= _MOST_I31) & allowed[I31REF.number]
        at = words // WORD_BYTES
        is_offset = (words % WORD_BYTES == 0) & (at < len(self.words))
        types = self._type_at[np.where(is_offset, at, 0).astype(np.int64)]
        return not bool(((words == 0) | is_i31 | (is_offset & allowed[types])).all())

    def offsets_of(self, type_: int) -> list[int]:
        """The offsets of all objects of a type number."""
        return [WORD_BYTES * int(at) for at in np.flatnonzero(self._type_at == type_)]

    def restore(self, memory: ObjectMemory) -> None:
        """Make a machine's objects be these. Raises AddressSpaceError."""
        offsets = [one.offset for one in self.arrays]
        memory.restore(self.words.tobytes(), offsets, self.elements)
