# SPDX-License-Identifier: Apache-2.0
"""The rest of a range of items, as words that native code makes pieces of.

    run      │ address │ address │ …            of slots, in the order of items
    slot     │ item │ pc │ frame │ size │ status │ word │ word │ …      a suspended item
             │ first │ - │ end │ 0 │ - │                                items that have not begun

A batch has several runs where several threads have suspended items. The words of a slot are the
item's part of the stack, references included. `write` makes the pieces of a record of them, as
`ferryvm.machine.piece` would one by one.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine.item_map import ItemOutcome, WriterRequest
from ferryvm.machine.piece import Block, add_item, add_range, block

if TYPE_CHECKING:
    from ferryvm.machine.object_memory import ObjectMemory

__all__ = ["FRAME", "ITEM", "PC", "SIZE", "SLOT_WORDS", "STATUS"]

ITEM = 0
"""Word of a slot: the item."""
PC = 1
"""Word of a slot: the item's pc."""
FRAME = 2
"""Word of a slot: the word in which the innermost frame has its header; or the end of the items
that have not begun."""
SIZE = 3
"""Word of a slot: the words of the item's part of the stack."""
STATUS = 4
"""Word of a slot: why the item is suspended."""
SLOT_WORDS = 5
"""Words of a slot before those of the stack."""


class ItemBatch:
    """Slots with the rest of a range."""

    def __init__(
        self, runs: Sequence[array[int]], memory: Sequence[object], most_words: int
    ) -> None:
        """`runs`: addresses of slots; `memory`: keeps them alive; `most_words`: the words of all
        items together, or more."""
        self.runs = [run for run in runs if run]
        self._memory = memory
        self.count = sum(map(len, self.runs))
        """Pieces."""
        self.words = 2 * most_words
        """Words of these pieces, at most: each may be a reference, for which there are two."""

    def joined(self, other: ItemBatch) -> ItemBatch:
        """The slots of both."""
        memory = [*self._memory, *other._memory]
        return ItemBatch([*self.runs, *other.runs], memory, (self.words + other.words) // 2)

    @property
    def first(self) -> int:
        """The lowest item."""
        return min(signed(I64, _words(run[0], 1)[ITEM]) for run in self.runs)

    def blocks(self, objects: ObjectMemory) -> Iterator[tuple[int, int | Block]]:
        """Its items and ranges, in the order of items."""
        slots = [address for run in self.runs for address in run]
        for item, address in sorted((signed(I64, _words(one, 1)[ITEM]), one) for one in slots):
            yield item, _content(objects, address)

    def write(self, objects: ObjectMemory, following: int) -> int:
        """The record with a piece for each slot, in front of a piece. There is room for them."""
        writer = objects.item_writer()
        if writer is None:
            for item, what in reversed([*self.blocks(objects)]):
                following = _add(objects, item, what, following)
            return following
        cursors = array("Q")
        for run in self.runs:
            start, count = run.buffer_info()
            cursors.extend((start, start + WORD_BYTES * count))
        request = WriterRequest(
            map=ctypes.addressof(objects.items.addresses),
            control=ctypes.addressof(objects.control),
            runs=cursors.buffer_info()[0],
            run_count=len(self.runs),
            record=following,
        )
        while (outcome := writer(ctypes.byref(request))) != ItemOutcome.DONE:
            slot = _words(request.slot, SLOT_WORDS)
            if outcome == ItemOutcome.UNKNOWN:
                words = _words(request.slot, SLOT_WORDS + slot[SIZE])[SLOT_WORDS:]
                objects.items.learn_item(words, slot[PC], slot[FRAME])
                continue
            item = signed(I64, slot[ITEM])
            request.record = _add(objects, item, _content(objects, request.slot), request.record)
            ctypes.c_uint64.from_address(request.pair).value -= WORD_BYTES
        return request.record


def _words(address: int, count: int) -> array[int]:
    return array("Q", ctypes.string_at(address, WORD_BYTES * count))


def _content(objects: ObjectMemory, address: int) -> int | Block:
    """The suspended item of a slot, or the end of its items."""
    head = _words(address, SLOT_WORDS)
    if not head[SIZE]:
        return signed(I64, head[FRAME])
    words = _words(address, SLOT_WORDS + head[SIZE])[SLOT_WORDS:]
    return block(objects, words, head[PC], head[FRAME])


def _add(objects: ObjectMemory, item: int, what: int | Block, following: int) -> int:
    if isinstance(what, Block):
        return add_item(objects, item, what, following)
    return add_range(objects, item, what, following)


def range_slot(first: int, end: int) -> tuple[int, ...]:
    """The words of a slot for items that have not begun."""
    return first & I64.mask, 0, end & I64.mask, 0, 0
