# SPDX-License-Identifier: Apache-2.0
"""A collection: objects that can be reached, copied into a fresh space in breadth-first order.

    roots ── statics, by number │ frames, outermost first ║ then handles, by number
      └──> forward each ──> to-space:  8 │ copied, scanned │ copied, to be scanned │ free
                                           references forwarded

The algorithm is that of C. J. Cheney, "A nonrecursive list compacting algorithm", 1970: the copied
objects are the queue of a breadth-first traversal. So an object's new offset depends only on what
can be reached from the roots, and in which order: all backends number objects alike. Handles
come when all that the program itself can reach has been copied: so the objects that only Python
holds are behind the others, and no part of the program's state.

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

ROW_WORDS = 2
"""Words of a row of `Request.rows` before the positions: their number; 1 if the function of the
frame is only entered from outside, so that it stands on whatever instruction had stopped, else 0.
Positions are words from fp on, ascending, modulo 2^64."""

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
            "own_top",  # result: those of them that the program itself can reach
            "fault",  # result: a CollectionFault
            "statics",  # address
            "static_numbers",  # address of the numbers of those that are references
            "static_count",
            "stack",  # address
            "fp",  # of the running function
            "row",  # position in `rows` of its references
            "rows",  # address of rows: number of references, is it entered from outside, positions
            "calls",  # address: by pc of a call the position in `rows` of the caller's references
            "stops",  # address: by pc the position for a frame on which a call from outside stands
            "pc_count",  # pcs in each of these
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
    own_top: int
    fault: int
    statics: int
    static_numbers: int
    static_count: int
    stack: int
    fp: int
    row: int
    rows: int
    calls: int
    stops: int
    pc_count: int
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
    return Collection(request).perform()


def _words(address: int, count: int) -> ctypes.Array[ctypes.c_uint64]:
    """Words in memory from an address on."""
    return (ctypes.c_uint64 * count).from_address(address)


class Collection:
    """A collection in Python."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.from_words = _words(request.from_base, request.from_top // WORD_BYTES)
        self.to_words = _words(request.to_base, request.to_end // WORD_BYTES)
        self.shapes = _words(request.shapes, SHAPE_WORDS * request.shape_count)
        self.outside = _words(request.outside, OUTSIDE_WORDS * request.outside_count)
        self.places = {self.outside[row]: row for row in range(0, len(self.outside), OUTSIDE_WORDS)}
        self.top = FIRST_OFFSET

    def perform(self) -> int:
        """Its fault, which is then in the request, too."""
        try:
            self.run()
            self.request.fault = CollectionFault.NONE
        except _FaultError as error:
            self.request.fault = error.args[0]
        return self.request.fault

    def run(self) -> None:
        """Forward the roots of the program and what they lead to, then the same for handles."""
        scanned = FIRST_OFFSET
        for roots in (self.roots(), self.handles()):
            self.request.own_top = self.top
            for address in roots:
                self.forward_at(address)
            while scanned < self.top:
                scanned += self.scan(scanned)
        self.request.to_top = self.top

    def roots(self) -> list[int]:
        """The addresses of the program's roots in their order."""
        request = self.request
        numbers = _words(request.static_numbers, request.static_count)
        found = [request.statics + WORD_BYTES * number for number in numbers]
        return found + [request.stack + WORD_BYTES * slot for slot in reversed(self.stack_slots())]

    def handles(self) -> list[int]:
        """The addresses of the references of handles."""
        request = self.request
        return [request.handles + WORD_BYTES * number for number in range(request.handle_count)]

    def stack_slots(self) -> list[int]:
        """The words of the stack with references, from the end on."""
        request = self.request
        stack = request.stack
        tables = [_words(each, request.pc_count) for each in (request.calls, request.stops)]
        fp, row, found = request.fp, request.row, []
        while True:
            at = request.rows + WORD_BYTES * row
            count, is_entered = _words(at, ROW_WORDS)
            found += self.frame_slots(fp, _words(at + WORD_BYTES * ROW_WORDS, count)[::-1])
            return_pc, distance = _words(stack + WORD_BYTES * fp, HEADER_WORDS)
            if not distance:
                return found
            if distance > fp or not 0 < return_pc <= request.pc_count:
                raise _FaultError(CollectionFault.FRAME)
            fp, row = fp - distance, tables[is_entered][return_pc - 1]

    def frame_slots(self, fp: int, offsets: list[int]) -> list[int]:
        """The words of a frame with references, from the end on; `offsets`: from its header."""
        return [(fp + offset) & MASK for offset in offsets]

    def forward_at(self, address: int) -> None:
        """Replace a reference in memory by the one of the copy."""
        word = _words(address, 1)
        word[0] = self.forward(word[0])

    def forward(self, reference: int) -> int:
        """The reference of the copy of an object, which is made if there is none."""
        if not reference or reference & 1:
            return reference
        top = self.request.from_top
        if reference % WORD_BYTES or reference >= top:
            raise _FaultError(CollectionFault.REFERENCE)
        at = reference // WORD_BYTES
        header = self.from_words[at]
        if not header & 1:
            if not 0 < header < self.top:
                raise _FaultError(CollectionFault.HEADER)
            return header
        kind, bytes_, _, _ = self.shape(header)
        is_array = kind != ShapeKind.STRUCT
        size, place = bytes_, 0
        if is_array:
            size = ARRAY_HEADER_BYTES
            if reference + size > top:
                raise _FaultError(CollectionFault.SIZE)
            length = self.from_words[at + LENGTH_OFFSET // WORD_BYTES]
            place = self.from_words[at + PLACE_OFFSET // WORD_BYTES]
            elements = self.element_bytes(length, bytes_)
            is_inline = place == reference + size
            size += elements if is_inline else 0
        new = self.top
        if reference + size > top or new + size > self.request.to_end:
            raise _FaultError(CollectionFault.SIZE)
        to = new // WORD_BYTES
        ctypes.memmove(self.request.to_base + new, self.request.from_base + reference, size)
        if is_array:
            moved = self.moved_place(new, None if is_inline else place)
            self.to_words[to + PLACE_OFFSET // WORD_BYTES] = moved
        self.from_words[at] = new
        self.top = new + size
        return new

    def moved_place(self, new: int, outside: int | None) -> int:
        """The place of the elements of an array's copy; `outside`: the old place of elements that
        do not move."""
        if outside is None:
            return new + ARRAY_HEADER_BYTES
        return (outside + self.request.from_base - self.request.to_base) & MASK

    def scan(self, offset: int) -> int:
        """Forward the references in a copied object; the bytes that it takes."""
        at = offset // WORD_BYTES
        kind, bytes_, first, count = self.shape(self.to_words[at])
        if kind == ShapeKind.STRUCT:
            for field in self.fields(first, count):
                self.forward_at(self.request.to_base + offset + field)
            return bytes_
        length = self.to_words[at + LENGTH_OFFSET // WORD_BYTES]
        place = self.to_words[at + PLACE_OFFSET // WORD_BYTES]
        elements = self.element_bytes(length, bytes_)
        address = (self.request.to_base + place) & MASK
        is_inline = place == offset + ARRAY_HEADER_BYTES
        if not is_inline:
            self.mark(address, elements, offset)
        if kind == ShapeKind.REFERENCES:
            for element in self.elements(address, length, is_inline):
                self.forward_at(element)
        return ARRAY_HEADER_BYTES + (elements if is_inline else 0)

    def fields(self, first: int, count: int) -> list[int]:
        """Bytes from a struct to its fields with references."""
        return list(_words(self.request.offsets + WORD_BYTES * first, count))

    def elements(self, address: int, length: int, is_inline: bool) -> range:
        """The addresses of the elements of an array of references."""
        return range(address, address + WORD_BYTES * length, WORD_BYTES)

    def shape(self, header: int) -> list[int]:
        """The row of the type of an object with this header."""
        number = type_number(header)
        row = self.shapes[SHAPE_WORDS * number : SHAPE_WORDS * (number + 1)]
        if not row or row[0] == ShapeKind.NONE:
            raise _FaultError(CollectionFault.HEADER)
        return row

    @staticmethod
    def element_bytes(length: int, bytes_: int) -> int:
        """Bytes of the elements of an array, with padding."""
        if length > LARGEST_LENGTH:
            raise _FaultError(CollectionFault.SIZE)
        return padded(length * bytes_)

    def mark(self, address: int, elements: int, offset: int) -> None:
        """Note that the array at an offset has the elements at an address."""
        row = self.places.get(address)
        if row is None or self.outside[row + 1] < elements:
            raise _FaultError(CollectionFault.ELEMENTS)
        self.outside[row + 2] = offset
