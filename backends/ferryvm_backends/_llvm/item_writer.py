# SPDX-License-Identifier: Apache-2.0
"""Pieces of a launch's record made of slots by native code: `ferryvm.machine.item_map.WRITE`.

    the highest slot of all runs ──> words │ references │ piece ──> the next one
         └─ frames not known yet, too large, or none ──> return

Objects are made from `object_top` up, as `ferryvm.machine.piece` makes them, so which way a record was
made cannot be seen after a collection.
"""

from __future__ import annotations

import functools

from ferryvm import cache
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
from ferryvm.machine.item_batch import (
    FRAME,
    ITEM,
    PC,
    SIZE,
    SLOT_WORDS,
)
from ferryvm.machine.item_map import ROW_WORDS, MapAddresses, WriterOutcome, WriterRequest
from ferryvm.machine.piece import Piece
from ferryvm_backends._llvm import cache_entry, ir, native
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.word_code import WordCode

_SYMBOL = "ferry_write_items"
_PIECE_BYTES = STRUCT_HEADER_BYTES + WORD_BYTES * len(Piece._fields)


def address() -> int:
    """The address of the function. Raises BackendError."""
    return _loaded().address(_SYMBOL)


@functools.cache
def _loaded() -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_loops  # it takes LLVM

        return cache_entry.packed(b"", compile_loops(module()))

    key = cache.key([native.key("ferryvm_backends._llvm"), _SYMBOL])
    payload = cache.Entry("items", key).get(build, cache_entry.fault)
    return native.load(cache_entry.unpacked(payload)[1])


def module() -> ir.Module:
    """The function as LLVM IR."""
    made = ir.Module(_SYMBOL)
    function = ir.Function(made, ir.FunctionType(WORD, [ir.PointerType()]), _SYMBOL)
    # A loop that copies a few words is not to become a call of memcpy.
    function.attributes |= {"nounwind", '"no-builtins"'}
    _Writer(function).build()
    return made


class _Writer(WordCode):
    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self._request = self.builder.ptrtoint(function.args[0], WORD)
        self._control = self._get("control")
        self._base = self.at(self._control, vars(ControlBlock)["objects"].offset)
        self._map = self._get("map")

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        again = self.function.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        pair = self._highest()
        with builder.if_then(self._is_zero(pair), likely=False):
            builder.ret(word(WriterOutcome.DONE))
        slot = self.at(builder.sub(self.at(pair, WORD_BYTES), word(WORD_BYTES)))
        self._set("slot", slot)
        self._set("pair", builder.add(pair, word(WORD_BYTES)))
        size = self.at(slot, WORD_BYTES * SIZE)
        first = self.at(slot, WORD_BYTES * ITEM)
        end = self.variable(self.at(slot, WORD_BYTES * FRAME))
        pc, frame, words, references = (self.variable(word(0)) for _ in range(4))
        with builder.if_then(builder.not_(self._is_zero(size))):
            is_large = builder.icmp_unsigned(">", size, word(LARGEST_INLINE // WORD_BYTES))
            at_frame = builder.add(self.at(slot, WORD_BYTES * FRAME), word(1))
            is_outside = builder.icmp_unsigned(">=", at_frame, size)
            self._return_if(builder.or_(is_large, is_outside), WriterOutcome.REFUSED)
            at = builder.add(slot, word(WORD_BYTES * SLOT_WORDS))
            count = self._references(slot, at, None)
            words_at, words_place = self._array(Element.I64.array.number, size)
            with self.each(size) as number:
                self.put(self.at(self.element(at, number)), self.element(words_place, number))
            held_at, held_place = self._array(FRAME_REFERENCES.number, count)
            self._references(slot, words_place, self.element(held_place, count))
            builder.store(words_at, words)
            builder.store(held_at, references)
            builder.store(self.at(slot, WORD_BYTES * PC), pc)
            builder.store(self.at(slot, WORD_BYTES * FRAME), frame)
            builder.store(builder.add(first, word(1)), end)
        made, piece = self._object(LAUNCH.number, word(_PIECE_BYTES))
        fields = {
            "first": first,
            "next": self._get("record"),
            "end": builder.load(end),
            "pc": builder.load(pc),
            "frame": builder.load(frame),
            "words": builder.load(words),
            "references": builder.load(references),
            "waiting": word(0),
        }
        for place, name in enumerate(Piece._fields):
            self.put(fields[name], piece, STRUCT_HEADER_BYTES + WORD_BYTES * place)
        self._set("record", made)
        last = builder.sub(self.at(pair, WORD_BYTES), word(WORD_BYTES))
        self.put(last, pair, WORD_BYTES)
        builder.branch(again)

    # --- memory -----------------------------------------------------------------------------

    def _get(self, name: str) -> ir.Value:
        return self.at(self._request, getattr(WriterRequest, name).offset)

    def _set(self, name: str, value: ir.Value) -> None:
        self.put(value, self._request, getattr(WriterRequest, name).offset)

    def _is_zero(self, value: ir.Value) -> ir.Value:
        return self.builder.icmp_unsigned("==", value, word(0))

    def _return_if(self, p: ir.Value, outcome: WriterOutcome) -> None:
        with self.builder.if_then(p, likely=False):
            self.builder.ret(word(outcome))

    def _object(self, type_: int, size: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A new object of so many bytes: its reference and its address."""
        offset: int = vars(ControlBlock)["object_top"].offset
        made = self.at(self._control, offset)
        self.put(self.builder.add(made, size), self._control, offset)
        at = self.builder.add(self._base, made)
        self.put(word(header(type_)), at)
        return made, at

    def _array(self, type_: int, count: ir.Value) -> tuple[ir.Value, ir.Value]:
        """A new array of words: its reference, and the address of its elements."""
        builder, own = self.builder, word(ARRAY_HEADER_BYTES)
        made, at = self._object(type_, builder.add(own, builder.shl(count, word(3))))
        self.put(count, at, LENGTH_OFFSET)
        self.put(builder.add(made, own), at, PLACE_OFFSET)
        return made, builder.add(at, own)

    # --- slots ------------------------------------------------------------------------------

    def _highest(self) -> ir.Value:
        """The address of the pair of the run whose last slot has the highest item; 0 if all are
        empty."""
        builder = self.builder
        found, highest = self.variable(word(0)), self.variable(word(0))
        runs = self._get("runs")
        with self.each(self._get("run_count")) as number:
            pair = builder.add(runs, builder.shl(number, word(4)))
            first, end = self.at(pair), self.at(pair, WORD_BYTES)
            with builder.if_then(builder.icmp_unsigned("!=", first, end)):
                item = self.at(self.at(builder.sub(end, word(WORD_BYTES))))
                is_first = self._is_zero(builder.load(found))
                is_above = builder.icmp_signed(">", item, builder.load(highest))
                with builder.if_then(builder.or_(is_first, is_above)):
                    builder.store(pair, found)
                    builder.store(item, highest)
        return builder.load(found)

    def _references(self, slot: ir.Value, words: ir.Value, end: ir.Value | None) -> ir.Value:
        """The number of references in the frames of an item, whose words are at an address, from the
        innermost frame out. With `end` they are moved from there to the words below that address."""
        builder = self.builder
        count, is_last = self.variable(word(0)), self.variable(word(0))
        fp = self.variable(self.at(slot, WORD_BYTES * FRAME))
        row = self.variable(self._known("stops", self.at(slot, WORD_BYTES * PC)))
        with self.while_(lambda: self._is_zero(builder.load(is_last))):
            known, frame = builder.load(row), builder.load(fp)
            own = self.at(known, WORD_BYTES)
            if end is not None:
                top = builder.sub(end, builder.shl(builder.load(count), word(3)))
                below = builder.sub(top, builder.shl(own, word(3)))
                with self.each(own) as number:
                    at = self.element(known, builder.add(number, word(ROW_WORDS)))
                    place = self.element(words, builder.add(frame, self.at(at)))
                    self.put(self.at(place), self.element(below, number))
                    self.put(word(0), place)
            builder.store(builder.add(builder.load(count), own), count)
            frame_header = self.element(words, frame)
            distance = self.at(frame_header, WORD_BYTES)
            self._return_if(self._is_zero(distance), WriterOutcome.REFUSED)
            is_outer = builder.icmp_unsigned(">", distance, frame)
            builder.store(builder.zext(is_outer, WORD), is_last)
            with builder.if_then(builder.not_(is_outer)):
                call = builder.sub(self.at(frame_header), word(1))
                builder.store(self._known("calls", call), row)
                builder.store(builder.sub(frame, distance), fp)
        return builder.load(count)

    def _known(self, table: str, pc: ir.Value) -> ir.Value:
        """The row of a pc in a table of the map; returns where there is none."""
        count = self.at(self._map, MapAddresses.pc_count.offset)
        is_past = self.builder.icmp_unsigned(">=", pc, count)
        self._return_if(is_past, WriterOutcome.REFUSED)
        first = self.at(self._map, getattr(MapAddresses, table).offset)
        found = self.at(self.element(first, pc))
        self._return_if(self._is_zero(found), WriterOutcome.UNKNOWN)
        return found
