# SPDX-License-Identifier: Apache-2.0
"""Native functions over the records of launches: pieces read and made, frames walked.

Objects are made from `object_top` up, as `ferryvm.machine.piece` makes them, so whether native code
has made a record cannot be seen after a collection.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.isa.declared_type import ITEM_BYTES, PIECE_BYTES
from ferryvm.isa.element import Element
from ferryvm.isa.object import (
    ARRAY_HEADER_BYTES,
    LARGEST_INLINE,
    LENGTH_OFFSET,
    PLACE_OFFSET,
    STRUCT_HEADER_BYTES,
    header,
)
from ferryvm.isa.type import FRAME_REFERENCES, LAUNCH, WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.item_map import ROW_WORDS, ItemOutcome, MapAddresses
from ferryvm.machine.piece import Piece
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.word_code import WordCode

_CONTROL = vars(ControlBlock)


class PieceCode(WordCode):
    """A function that returns an `ItemOutcome`, with a map and a control block."""

    map: ir.Value
    """Address of a `MapAddresses`."""
    control: ir.Value
    """Address of a `ControlBlock`."""

    # --- the control block ------------------------------------------------------------------

    def get(self, name: str) -> ir.Value:
        """A word of the control block."""
        return self.at(self.control, _CONTROL[name].offset)

    def set(self, name: str, value: ir.Value) -> None:
        """Store a word of the control block."""
        self.put(value, self.control, _CONTROL[name].offset)

    # --- conditions -------------------------------------------------------------------------

    def is_zero(self, value: ir.Value) -> ir.Value:
        """A condition."""
        return self.builder.icmp_unsigned("==", value, word(0))

    def return_if(self, p: ir.Value, outcome: ItemOutcome) -> None:
        """Return if a condition holds."""
        with self.builder.if_then(p, likely=False):
            self.builder.ret(word(outcome))

    def known(self, table: str, pc: ir.Value) -> ir.Value:
        """The word of a pc in a table of the map; returns where there is none."""
        fields = MapAddresses
        is_past = self.builder.icmp_unsigned(">=", pc, self.at(self.map, fields.pc_count.offset))
        self.return_if(is_past, ItemOutcome.REFUSED)
        found = self.at(self.element(self.at(self.map, getattr(fields, table).offset), pc))
        self.return_if(self.is_zero(found), ItemOutcome.UNKNOWN)
        return found

    # --- objects ----------------------------------------------------------------------------

    def return_unless_fits(self, blocks: ir.Value, words: ir.Value) -> None:
        """Return unless there is room for so many pieces with so many words in all, as in
        `ferryvm.machine.piece.reserve`: wherever a launch runs, it then leaves at the same
        places."""
        builder = self.builder
        pieces = builder.mul(blocks, word(ITEM_BYTES))
        size = builder.add(pieces, builder.shl(words, word(3)))
        end = builder.add(self.get("object_top"), size)
        is_past = builder.icmp_unsigned(">", end, self.get("object_end"))
        self.return_if(is_past, ItemOutcome.REFUSED)

    def return_if_large(self, count: ir.Value) -> None:
        """Return if an array of so many words is not within the object space."""
        is_large = self.builder.icmp_unsigned(">", count, word(LARGEST_INLINE // WORD_BYTES))
        self.return_if(is_large, ItemOutcome.REFUSED)

    def piece(self, reference: ir.Value) -> dict[str, ir.Value]:
        """The fields of a piece."""
        first = self.builder.add(self.get("objects"), reference)
        return {
            name: self.at(first, STRUCT_HEADER_BYTES + WORD_BYTES * number)
            for number, name in enumerate(Piece._fields)
        }

    def elements(self, reference: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The number and the address of the words of an array."""
        base = self.get("objects")
        array = self.builder.add(base, reference)
        return self.at(array, LENGTH_OFFSET), self.builder.add(base, self.at(array, PLACE_OFFSET))

    def make_piece(self, **fields: ir.Value) -> ir.Value:
        """The reference of a new piece; a field that is not given is 0."""
        made, at = self._object(LAUNCH.number, word(PIECE_BYTES))
        for number, name in enumerate(Piece._fields):
            value = fields.pop(name, word(0))
            self.put(value, at, STRUCT_HEADER_BYTES + WORD_BYTES * number)
        assert not fields
        return made

    def make_item(
        self,
        source: ir.Value,
        size: ir.Value,
        references: ir.Value,
        *,
        item: ir.Value,
        pc: ir.Value,
        frame: ir.Value,
        following: ir.Value,
    ) -> tuple[ir.Value, ir.Value]:
        """A new piece for a suspended item whose frames are `size` words at an address, with so many
        references: its reference, and the address of its own words."""
        words, place = self._array(Element.I64.array.number, size)
        with self.each(size) as number:
            self.put(self.at(self.element(source, number)), self.element(place, number))
        held, held_place = self._array(FRAME_REFERENCES.number, references)
        self.references(place, pc, frame, self.element(held_place, references))
        piece = self.make_piece(
            first=item,
            end=self.builder.add(item, word(1)),
            pc=pc,
            frame=frame,
            words=words,
            references=held,
            next=following,
        )
        return piece, place

    def _object(self, type_: int, size: ir.Value) -> tuple[ir.Value, ir.Value]:
        made = self.get("object_top")
        self.set("object_top", self.builder.add(made, size))
        at = self.builder.add(self.get("objects"), made)
        self.put(word(header(type_)), at)
        return made, at

    def _array(self, type_: int, count: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A new array of words: its reference, and the address of its elements."""
        builder, own = self.builder, word(ARRAY_HEADER_BYTES)
        made, at = self._object(type_, builder.add(own, builder.shl(count, word(3))))
        self.put(count, at, LENGTH_OFFSET)
        self.put(builder.add(made, own), at, PLACE_OFFSET)
        return made, builder.add(at, own)

    # --- frames -----------------------------------------------------------------------------

    def references(
        self, words: ir.Value, pc: ir.Value, frame: ir.Value, end: ir.Value | None = None
    ) -> ir.Value:
        """The number of references in the frames of an item, whose words are at an address, with
        control at a pc in the frame whose header is at word `frame`, from the innermost frame out.
        With `end` they are moved from there to the words below that address."""
        builder = self.builder
        count, row = self.variable(word(0)), self.variable(self.known("stops", pc))

        def visit(fp: ir.Value, call: ir.Value | None) -> None:
            if call is not None:
                builder.store(self.known("calls", call), row)
            known = builder.load(row)
            own = self.at(known, WORD_BYTES)
            if end is not None:
                top = builder.sub(end, builder.shl(builder.load(count), word(3)))
                below = builder.sub(top, builder.shl(own, word(3)))
                with self.each(own) as number:
                    at = self.element(known, builder.add(number, word(ROW_WORDS)))
                    place = self.element(words, builder.add(fp, self.at(at)))
                    self.put(self.at(place), self.element(below, number))
                    self.put(word(0), place)
            builder.store(builder.add(builder.load(count), own), count)

        self.frames(words, frame, visit)
        return builder.load(count)

    def frames(
        self, words: ir.Value, frame: ir.Value, visit: Callable[[ir.Value, ir.Value | None], None]
    ) -> None:
        """Code for each frame of an item whose words are at an address, from the innermost one out:
        `visit` gets the word of its header and, but for the first one, the pc of the call in it.
        Returns where the words are not those of frames."""
        builder = self.builder
        fp, is_last = self.variable(frame), self.variable(word(0))
        visit(frame, None)
        with self.while_(lambda: self.is_zero(builder.load(is_last))):
            current = builder.load(fp)
            at = self.element(words, current)
            distance = self.at(at, WORD_BYTES)
            self.return_if(self.is_zero(distance), ItemOutcome.REFUSED)
            is_outer = builder.icmp_unsigned(">", distance, current)
            builder.store(builder.zext(is_outer, WORD), is_last)
            with builder.if_then(builder.not_(is_outer)):
                builder.store(builder.sub(current, distance), fp)
                visit(builder.load(fp), builder.sub(self.at(at), word(1)))
