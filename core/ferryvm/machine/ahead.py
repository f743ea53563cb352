# SPDX-License-Identifier: Apache-2.0
"""Elements of large arrays that are prepared before they are asked for, for code that takes them in
place of leaving."""

from __future__ import annotations

from array import array

from ferryvm.isa.object import LARGEST_TRANSFER
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import MOST_AHEAD, Ahead
from ferryvm.machine.object_space import ObjectSpace

_MOST_BYTES = 1 << 20
"""Bytes that are prepared, at most: they should be in the processor's cache still when they are
taken."""

assert _MOST_BYTES <= LARGEST_TRANSFER  # larger ones need their first values, which these have not

_MOST_WASTED = 3
"""Times in a row that blocks are prepared for nothing."""


class ElementsAhead:
    """Zeroed blocks of one size. The state does not tell if there are any."""

    def __init__(self, space: ObjectSpace) -> None:
        self._space = space
        self._words = array("Q", bytes(WORD_BYTES * (Ahead.PLACES + MOST_AHEAD)))
        self._most = 0
        """Blocks that were prepared at the same time; 0: not all of them were taken."""
        self._wasted = 0
        """Times in a row that blocks were given back; a backend that takes none gets none."""
        self._last = 0
        """Bytes of the elements that were asked for last."""

    @property
    def address(self) -> int:
        """Their address, for the control block."""
        return self._words.buffer_info()[0]

    def prepare(self, size: int, free: int) -> None:
        """Elements of so many bytes were asked for: if it is the second time in a row, prepare one
        more block, and later twice as many while the program takes all of them.

        `free`: bytes of the budget that are left."""
        words = self._words
        if self._most:  # all were taken, or `discard` had been called
            self._wasted = 0
        if size == self._last and self._wasted < _MOST_WASTED:
            words[Ahead.BYTES] = size
            self._most = min(max(1, 2 * self._most), MOST_AHEAD)
            for number in range(min(self._most, min(free // 8 * 7, _MOST_BYTES) // size)):
                place = self._space.make_block(size)
                if place is None:
                    break
                words[Ahead.PLACES + number], words[Ahead.COUNT] = place, number + 1
        self._last = size

    def discard(self) -> bool:
        """Give back all blocks; True if there were any."""
        words = self._words
        count = words[Ahead.COUNT]
        for place in words[Ahead.PLACES : Ahead.PLACES + count]:
            self._space.free_block(place)
        if count:
            self._most = words[Ahead.COUNT] = 0
            self._wasted += 1
        return count > 0
