# SPDX-License-Identifier: Apache-2.0
"""Pieces of a launch as objects: read, and made.

    piece  │ first │ end │ pc │ frame │ words │ references │ next │ waiting │
                                          └─> i64[]  └─> launch.references

`ferryvm.isa.declared_type.PIECE` says what the fields are. The engine makes pieces between two runs
of a backend, so it allocates as the instructions do: from `object_top` up, after a collection if
need be.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from ferryvm.isa.declared_type import ITEM_BYTES, PHASE
from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    LARGEST_INLINE,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    STRUCT_HEADER_BYTES,
    header,
)
from ferryvm.isa.type import FRAME_REFERENCES, I64, LAUNCH, WORD_BYTES
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.named_tuple import NamedTuple


class Piece(NamedTuple):
    """The fields of a piece as words, see `ferryvm.isa.declared_type.PIECE`."""

    first: int
    end: int
    pc: int
    frame: int
    words: int
    references: int
    next: int
    waiting: int

    @property
    def is_phase(self) -> bool:
        """True for the record of a launch some of whose items wait at a barrier."""
        return self.pc == PHASE


class Block(NamedTuple):
    """A suspended item, outside of the objects."""

    pc: int
    frame: int
    """The word in which its innermost frame has its header."""
    words: array[int]
    """Its part of the stack, with zeros for references."""
    references: array[int]


def block(objects: ObjectMemory, words: array[int], pc: int, frame: int) -> Block:
    """The item with these words of the stack, where control is at a pc, in the frame whose header
    is at word `frame`. References are moved out of the words."""
    positions = objects.frame_references(memoryview(words), pc, frame, 0)
    references = array("Q", [words[position] for position in positions])
    for position in positions:
        words[position] = 0
    return Block(pc, frame, words, references)


def read(objects: ObjectMemory, reference: int) -> Piece:
    """The piece that a reference refers to."""
    at = (reference + STRUCT_HEADER_BYTES) // WORD_BYTES
    return Piece(*objects.space.words[at : at + len(Piece._fields)])


def pieces(objects: ObjectMemory, record: int) -> Iterator[Piece]:
    """The pieces of a record, in the order of items; those that wait at a barrier come last."""
    while record:
        piece = read(objects, record)
        if piece.is_phase:
            yield from pieces(objects, piece.next)
            yield from sorted(pieces(objects, piece.waiting))
            return
        yield piece
        record = piece.next


def opened(objects: ObjectMemory, record: int) -> tuple[Piece | None, int]:
    """The phase of a record, if items wait at a barrier, and the pieces of the others."""
    phase = read(objects, record) if record else None
    return (phase, phase.next) if phase is not None and phase.is_phase else (None, record)


def closed(objects: ObjectMemory, phase: Piece | None, others: int) -> int:
    """The record of such a phase, with other pieces in place of its own."""
    return others if phase is None else add_phase(objects, phase.first, phase.waiting, others)


def add_phase(objects: ObjectMemory, items: int, waiting: int, others: int) -> int:
    """A new record of a launch of so many items, of which some wait at a barrier."""
    return _add(objects, Piece(items, 0, PHASE, 0, 0, 0, others, waiting))


def add_again(objects: ObjectMemory, piece: Piece, following: int) -> int:
    """A new piece for an item that has one, in front of another piece."""
    return _add(objects, piece._replace(next=following))


def elements(objects: ObjectMemory, reference: int) -> memoryview:
    """The words of an array of words."""
    space, at = objects.space, reference // WORD_BYTES
    length = space.words[at + LENGTH_OFFSET // WORD_BYTES]
    place = space.words[at + PLACE_OFFSET // WORD_BYTES]
    if place == reference + ARRAY_HEADER_BYTES:
        first = place // WORD_BYTES
        return space.words[first : first + length]
    return space.block(place).cast("Q")[:length]


def reserve(objects: ObjectMemory, blocks: int, words: int, collects: bool = True) -> None:
    """Make room for so many pieces with so many words in all. References found before are not valid
    any more, unless there is to be no collection. Raises AddressSpaceError if the limit of objects
    leaves none."""
    control = objects.control
    wanted = blocks * ITEM_BYTES + WORD_BYTES * words
    if control.object_top + wanted > control.object_end:
        collects = collects and objects.gathered is None
        if not (objects.collect_for if collects else objects.enlarge_for)(wanted):
            limit = objects.space.limit
            message = f"suspended items of a launch take {wanted} bytes of objects"
            raise AddressSpaceError(f"{message}, the limit is {limit}; raise Limits.objects")
        control.object_end = max(control.object_end, control.object_top + wanted)


def add_range(objects: ObjectMemory, first: int, end: int, following: int) -> int:
    """A new piece for items that have not begun."""
    return _add(objects, Piece(first & I64.mask, end & I64.mask, 0, 0, 0, 0, following, 0))


def add_item(objects: ObjectMemory, item: int, block: Block, following: int) -> int:
    """A new piece for a suspended item."""
    words = _add_array(objects, Element.I64.array.number, block.words)
    references = _add_array(objects, FRAME_REFERENCES.number, block.references)
    return _add(
        objects,
        Piece(
            item & I64.mask,
            item + 1 & I64.mask,
            block.pc,
            block.frame,
            words,
            references,
            following,
            0,
        ),
    )


def _add(objects: ObjectMemory, piece: Piece) -> int:
    return _place(objects, array("Q", (header(LAUNCH.number), *piece)))


def _add_array(objects: ObjectMemory, type_: int, content: array[int]) -> int:
    size = WORD_BYTES * len(content)
    if size <= LARGEST_INLINE:
        place = objects.control.object_top + ARRAY_HEADER_BYTES
        return _place(objects, array("Q", (header(type_), len(content), place, *content)))
    found = objects.space.make_block(size)
    if found is None:
        raise AddressSpaceError(f"no memory for an array of {size} bytes")
    objects.space.block(found).cast("Q")[:] = memoryview(content)
    return _place(objects, array("Q", (header(type_), len(content), found)))


def _place(objects: ObjectMemory, words: array[int]) -> int:
    """The reference of a new object of these words, for which there is room."""
    control = objects.control
    reference: int = control.object_top
    at = reference // WORD_BYTES
    objects.space.words[at : at + len(words)] = memoryview(words)
    control.object_top = reference + WORD_BYTES * len(words)
    return reference
