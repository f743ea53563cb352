# SPDX-License-Identifier: Apache-2.0
"""A collection: objects that can be reached, copied into a fresh space in breadth-first order.

    roots ── statics, by number │ frames, outermost first │ handles, by number
      └──> forward each ──> to-space:  8 │ copied, scanned │ copied, to be scanned │ free
                                           references forwarded

The algorithm is that of C. J. Cheney, "A nonrecursive list compacting algorithm", 1970: the copied
objects are the queue of a breadth-first traversal. So an object's new offset depends only on what
can be reached from the roots, and in which order: all backends number objects alike.

`collect` is the definition. Backends may offer the same function as native code (see
`Artifact.collector`); tests compare the two. It trusts neither references nor headers: whatever
words a backend has left in a state, it accesses only the memory that the request names.
"""

from __future__ import annotations

import ctypes
import enum

from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    FIRST_OFFSET,
    LARGEST_LENGTH,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    padded,
    type_number,
)
from ferryvm.isa.type import WORD_BYTES

assert HEADER_WORDS == 2

MASK = (1 << 64) - 1


class CollectionFault(enum.IntEnum):
    """The reason that a state cannot be collected: no program can be in it."""

    NONE = 0
    REFERENCE = 1
    """A reference is the offset of no object."""
    HEADER = 2
    """An object has the header of no type."""
    SIZE = 3
    """An object ends past the space."""
    ELEMENTS = 4
    """The elements of an array are neither inline nor in memory of the space."""
    FRAME = 5
    """A frame has no caller where its header says."""


class ShapeKind(enum.IntEnum):
    """The parts of the objects of a type."""

    NONE = 0
    """There are no objects of the type itself."""
    STRUCT = 1
    NUMBERS = 2
    """Arrays of numbers."""
    REFERENCES = 3
    """Arrays of references."""


SHAPE_WORDS = 4
"""Words of a row of `Request.shapes`: the ShapeKind; bytes of a struct or of an element; the first
one of `Request.offsets` and their number, for a struct."""

OUTSIDE_WORDS = 3
"""Words of a row of `Request.outside`: address, bytes, and the new offset of the array whose
elements these are; 0: no array has them."""


class Request(ctypes.Structure):
    """The input and output of a collection; words. Positions in spaces are bytes, in the stack
    words."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "from_base",  # address of the space that is collected
            "from_top",  # its bytes in use
            "to_base",  # address of the fresh space, all zero
            "to_end",  # its bytes
            "to_top",  # result: its bytes in use
            "fault",  # result: a CollectionFault
            "statics",  # address
            "static_numbers",  # address of the numbers of those that are references
            "static_count",
            "stack",  # address
            "fp",  # of the running function
            "row",  # position in `rows` of its references
            "rows",  # address: a number of references, the words from fp on where they are; ...
            "calls",  # address: by pc of a call the position in `rows`
            "call_count",  # pcs in `calls`
            "slots",  # address past free memory for the words of the stack with references
            "handles",  # address
            "handle_count",
            "shapes",  # address of rows by type number
            "shape_count",
            "offsets",  # address: bytes from a struct to a field with a reference
            "outside",  # address of rows of elements outside of the space, by address
            "outside_count",
        )
    ]

    from_base: int
    from_top: int
    to_base: int
    to_end: int
    to_top: int
    fault: int
    statics: int
    static_numbers: int
    static_count: int
    stack: int
    fp: int
    row: int
    rows: int
    calls: int
    call_count: int
    slots: int
    handles: int
    handle_count: int
    shapes: int
    shape_count: int
    offsets: int
    outside: int
    outside_count: int


class _FaultError(Exception):
    """The collection cannot continue; its argument is the CollectionFault."""


def collect(request: Request) -> int:
    """Perform a collection; its CollectionFault, which is also in the request."""
    try:
        _Collection(request).run()
        request.fault = CollectionFault.NONE
    except _FaultError as error:
        request.fault = error.args[0]
    return request.fault


def _words(address: int, count: int) -> ctypes.Array[ctypes.c_uint64]:
    """Words in memory from an address on."""
    return (ctypes.c_uint64 * count).from_address(address)


class _Collection:
    """A collection in Python."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._from = _words(request.from_base, request.from_top // WORD_BYTES)
        self._to = _words(request.to_base, request.to_end // WORD_BYTES)
        self._shapes = _words(request.shapes, SHAPE_WORDS * request.shape_count)
        self._outside = _words(request.outside, OUTSIDE_WORDS * request.outside_count)
        self._places = {
            self._outside[row]: row for row in range(0, len(self._outside), OUTSIDE_WORDS)
        }
        self._top = FIRST_OFFSET

    def run(self) -> None:
        request = self._request
        statics = request.statics
        for number in _words(request.static_numbers, request.static_count):
            self._forward_at(statics + WORD_BYTES * number)
        for slot in reversed(self._stack_slots()):
            self._forward_at(request.stack + WORD_BYTES * slot)
        for number in range(request.handle_count):
            self._forward_at(request.handles + WORD_BYTES * number)
        scanned = FIRST_OFFSET
        while scanned < self._top:
            scanned += self._scan(scanned)
        request.to_top = self._top

    def _stack_slots(self) -> list[int]:
        """The words of the stack with references, from the end on."""
        request = self._request
        stack, calls = request.stack, _words(request.calls, request.call_count)
        fp, row, found = request.fp, request.row, []
        while True:
            at = request.rows + WORD_BYTES * row
            offsets = _words(at + WORD_BYTES, _words(at, 1)[0])
            found += [(fp + offset) & MASK for offset in reversed(offsets)]
            return_pc, distance = _words(stack + WORD_BYTES * fp, HEADER_WORDS)
            if not distance:
                return found
            if distance > fp or not 0 < return_pc <= len(calls):
                raise _FaultError(CollectionFault.FRAME)
            fp, row = fp - distance, calls[return_pc - 1]

    def _forward_at(self, address: int) -> None:
        """Replace a reference in memory by the one of the copy."""
        word = _words(address, 1)
        word[0] = self._forward(word[0])

    def _forward(self, reference: int) -> int:
        """The reference of the copy of an object, which is made if there is none."""
        if not reference or reference & 1:
            return reference
        top = self._request.from_top
        if reference % WORD_BYTES or reference >= top:
            raise _FaultError(CollectionFault.REFERENCE)
        at = reference // WORD_BYTES
        header = self._from[at]
        if not header & 1:
            if not 0 < header < self._top:
                raise _FaultError(CollectionFault.HEADER)
            return header
        kind, bytes_, _, _ = self._shape(header)
        is_array = kind != ShapeKind.STRUCT
        size, place = bytes_, 0
        if is_array:
            size = ARRAY_HEADER_BYTES
            if reference + size > top:
                raise _FaultError(CollectionFault.SIZE)
            length = self._from[at + LENGTH_OFFSET // WORD_BYTES]
            place = self._from[at + PLACE_OFFSET // WORD_BYTES]
            elements = self._element_bytes(length, bytes_)
            is_inline = place == reference + size
            size += elements if is_inline else 0
        new = self._top
        if reference + size > top or new + size > self._request.to_end:
            raise _FaultError(CollectionFault.SIZE)
        to = new // WORD_BYTES
        ctypes.memmove(self._request.to_base + new, self._request.from_base + reference, size)
        if is_array:
            moved = new + ARRAY_HEADER_BYTES
            if not is_inline:
                moved = (place + self._request.from_base - self._request.to_base) & MASK
            self._to[to + PLACE_OFFSET // WORD_BYTES] = moved
        self._from[at] = new
        self._top = new + size
        return new

    def _scan(self, offset: int) -> int:
        """Forward the references in a copied object; the bytes that it takes."""
        at = offset // WORD_BYTES
        kind, bytes_, first, count = self._shape(self._to[at])
        if kind == ShapeKind.STRUCT:
            fields = _words(self._request.offsets + WORD_BYTES * first, count)
            for field in fields:
                self._forward_at(self._request.to_base + offset + field)
            return bytes_
        length = self._to[at + LENGTH_OFFSET // WORD_BYTES]
        place = self._to[at + PLACE_OFFSET // WORD_BYTES]
        elements = self._element_bytes(length, bytes_)
        address = (self._request.to_base + place) & MASK
        is_inline = place == offset + ARRAY_HEADER_BYTES
        if not is_inline:
            self._mark(address, elements, offset)
        if kind == ShapeKind.REFERENCES:
            for number in range(length):
                self._forward_at(address + WORD_BYTES * number)
        return ARRAY_HEADER_BYTES + (elements if is_inline else 0)

    def _shape(self, header: int) -> list[int]:
        """The row of the type of an object with this header."""
        number = type_number(header)
        row = self._shapes[SHAPE_WORDS * number : SHAPE_WORDS * (number + 1)]
        if not row or row[0] == ShapeKind.NONE:
            raise _FaultError(CollectionFault.HEADER)
        return row

    @staticmethod
    def _element_bytes(length: int, bytes_: int) -> int:
        """Bytes of the elements of an array, with padding."""
        if length > LARGEST_LENGTH:
            raise _FaultError(CollectionFault.SIZE)
        return padded(length * bytes_)

    def _mark(self, address: int, elements: int, offset: int) -> None:
        """Note that the array at an offset has the elements at an address."""
        row = self._places.get(address)
        if row is None or self._outside[row + 1] < elements:
            raise _FaultError(CollectionFault.ELEMENTS)
        self._outside[row + 2] = offset
