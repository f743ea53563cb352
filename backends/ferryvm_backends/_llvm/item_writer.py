# SPDX-License-Identifier: Apache-2.0
"""Pieces of a launch's record made of slots by native code: `ferryvm.machine.item_map.WRITE`.

    the highest slot of all runs ──> words │ references │ piece ──> the next one
         └─ frames not known yet, too large, or none ──> return

An item's words may be frames that the map does not know, or too many: then Python makes its piece.
"""

from __future__ import annotations

import functools

from ferryvm import cache
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.item_batch import (
    FRAME,
    ITEM,
    PC,
    SIZE,
    SLOT_WORDS,
)
from ferryvm.machine.item_map import ItemOutcome, WriterRequest
from ferryvm_backends._llvm import ir, native
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.piece_code import PieceCode

_SYMBOL = "ferry_write_items"


def address() -> int:
    """The address of the function. Raises BackendError."""
    return _loaded().address(_SYMBOL)


def soon() -> int:
    """The same. Raises NotYetError while it is compiled, in the background."""
    return native.soon(_entry(), _loaded).address(_SYMBOL)


def _entry() -> cache.Entry:
    key = cache.key([native.key("ferryvm_backends._llvm"), _SYMBOL])
    return cache.Entry("items", key)


@functools.cache
def _loaded() -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_loops  # it takes LLVM

        return compile_loops(module())

    return native.made(_entry(), build)[0]


def module() -> ir.Module:
    """The function as LLVM IR."""
    made = ir.Module(_SYMBOL)
    function = ir.Function(made, ir.FunctionType(WORD, [ir.PointerType()]), _SYMBOL)
    # A loop that copies a few words is not to become a call of memcpy.
    function.attributes |= {"nounwind", '"no-builtins"'}
    _Writer(function).build()
    return made


class _Writer(PieceCode):
    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self._request = self.builder.ptrtoint(function.args[0], WORD)
        self.control, self.map = self._field("control"), self._field("map")

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        again = self.function.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        pair = self._highest()
        with builder.if_then(self.is_zero(pair), likely=False):
            builder.ret(word(ItemOutcome.DONE))
        slot = self.at(builder.sub(self.at(pair, WORD_BYTES), word(WORD_BYTES)))
        self._set_field("slot", slot)
        self._set_field("pair", builder.add(pair, word(WORD_BYTES)))
        size, first, frame, pc = (self.at(slot, WORD_BYTES * n) for n in (SIZE, ITEM, FRAME, PC))
        following = self._field("record")
        made = self.variable(word(0))
        with builder.if_then(self.is_zero(size)):
            builder.store(self.make_piece(first=first, end=frame, next=following), made)
        with builder.if_then(builder.not_(self.is_zero(size))):
            self.return_if_large(size)
            is_outside = builder.icmp_unsigned(">=", builder.add(frame, word(1)), size)
            self.return_if(is_outside, ItemOutcome.REFUSED)
            at = builder.add(slot, word(WORD_BYTES * SLOT_WORDS))
            count = self.references(at, pc, frame)
            item, _ = self.make_item(
                at, size, count, item=first, pc=pc, frame=frame, following=following
            )
            builder.store(item, made)
        self._set_field("record", builder.load(made))
        last = builder.sub(self.at(pair, WORD_BYTES), word(WORD_BYTES))
        self.put(last, pair, WORD_BYTES)
        builder.branch(again)

    # --- memory -----------------------------------------------------------------------------

    def _field(self, name: str) -> ir.Value:
        return self.at(self._request, getattr(WriterRequest, name).offset)

    def _set_field(self, name: str, value: ir.Value) -> None:
        self.put(value, self._request, getattr(WriterRequest, name).offset)

    # --- slots ------------------------------------------------------------------------------

    def _highest(self) -> ir.Value:
        """The address of the pair of the run whose last slot has the highest item; 0 if all are
        empty."""
        builder = self.builder
        found, highest = self.variable(word(0)), self.variable(word(0))
        runs = self._field("runs")
        with self.each(self._field("run_count")) as number:
            pair = builder.add(runs, builder.shl(number, word(4)))
            first, end = self.at(pair), self.at(pair, WORD_BYTES)
            with builder.if_then(builder.icmp_unsigned("!=", first, end)):
                item = self.at(self.at(builder.sub(end, word(WORD_BYTES))))
                is_first = self.is_zero(builder.load(found))
                is_above = builder.icmp_signed(">", item, builder.load(highest))
                with builder.if_then(builder.or_(is_first, is_above)):
                    builder.store(pair, found)
                    builder.store(item, highest)
        return builder.load(found)
