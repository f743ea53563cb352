# SPDX-License-Identifier: Apache-2.0
"""A large part of a device's memory, of which areas are taken: the first that fits, in the order of
addresses.

    0        │ taken │ gap │ taken     │ gap                  │ size

First fit in the order of addresses leaves less memory unusable than best fit, next fit or another
order of the gaps (Wilson et al., Dynamic Storage Allocation: A Survey and Critical Review, 1995,
section 3.3), and in large chunks it serves kernels well (Jääskeläinen et al., pocl: A
Performance-Portable OpenCL Implementation, 2015, section 3: Bufalloc). Chunks have few areas, so a
list of gaps is enough.
"""

from __future__ import annotations

import bisect


class Chunk:
    """The areas of so many bytes. It has no memory itself: only numbers."""

    def __init__(self, size: int, alignment: int) -> None:
        """`alignment`: bytes of which each start is a multiple."""
        self.size, self._alignment = size, alignment
        self._gaps = [(0, size)]
        """Start and end of each, in ascending order and not adjacent."""

    @property
    def is_empty(self) -> bool:
        """True if nothing of it is taken."""
        return self._gaps == [(0, self.size)]

    @property
    def largest_gap(self) -> int:
        """Bytes."""
        return max((end - start for start, end in self._gaps), default=0)

    def padded(self, size: int) -> int:
        """The bytes that an area of this size takes, if no end of the chunk cuts it."""
        return -(-size // self._alignment) * self._alignment

    def take(self, size: int) -> int | None:
        """The start of an area of at least one byte; None if it fits nowhere."""
        for number, (start, end) in enumerate(self._gaps):
            if end - start >= size:
                past = min(start + self.padded(size), end)
                self._gaps[number : number + 1] = [(past, end)] if past < end else []
                return start
        return None

    def give_back(self, start: int, size: int) -> None:
        """The area of this start and size is free again."""
        end = min(start + self.padded(size), self.size)
        number = bisect.bisect(self._gaps, (start, end))
        first = last = number
        if number and self._gaps[number - 1][1] == start:
            first, start = number - 1, self._gaps[number - 1][0]
        if number < len(self._gaps) and self._gaps[number][0] == end:
            last, end = number + 1, self._gaps[number][1]
        self._gaps[first:last] = [(start, end)]
