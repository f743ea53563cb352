# SPDX-License-Identifier: Apache-2.0
"""Sparse bytes: the nonzero parts of bytes that are mostly zero, as runs.

Bytes are divided into *granules* of 4096, whatever the page size of the machine: a granule with a
nonzero byte belongs to a run, and runs are maximal. So equal bytes have equal runs, in memory, in
files and on every machine.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from ferryvm.isa.type import WORD_BYTES

GRANULE = 4096
"""Bytes of a granule."""

_AT_ONCE = 1 << 22
"""Bytes that are examined at a time, a multiple of GRANULE."""

Run = tuple[int, int]
"""A run's start and end, in bytes."""


def runs(content: memoryview, ranges: Iterable[Run]) -> Iterator[Run]:
    """The runs of some bytes; `ranges`, in ascending order, cover all nonzero bytes."""
    run_start = end = 0
    seen = 0
    for first, last in ranges:
        at = max(first // GRANULE * GRANULE, seen)
        while at < last:
            part = np.frombuffer(content[at : min(at + _AT_ONCE, len(content))], np.uint8)
            for low, high in _full(part):
                if at + low != end:
                    if run_start < end:
                        yield run_start, end
                    run_start = at + low
                end = at + high
            at += len(part)
            seen = at
    if run_start < end:
        yield run_start, end


def _full(part: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> list[Run]:
    """The runs of a few granules, the last of which may be partial."""
    whole = len(part) // GRANULE
    is_full = (
        part[: whole * GRANULE].view(np.uint64).reshape(whole, GRANULE // WORD_BYTES).any(axis=1)
    )
    if whole * GRANULE < len(part):
        is_full = np.append(is_full, part[whole * GRANULE :].any())
    edges = np.flatnonzero(np.diff(is_full, prepend=False, append=False)) * GRANULE
    ends = np.minimum(edges[1::2], len(part))
    return list(zip(edges[::2].tolist(), ends.tolist(), strict=True))


@dataclasses.dataclass(frozen=True)
class Sparse:
    """Sparse bytes as an immutable value; equality is that of the bytes."""

    size: int
    parts: tuple[tuple[int, bytes], ...]
    """The start of each run, and its bytes."""

    @classmethod
    def of(cls, content: bytes) -> Sparse:
        """The same bytes."""
        view = memoryview(content)
        found = runs(view, [(0, len(view))])
        return cls(len(view), tuple((start, bytes(view[start:end])) for start, end in found))

    def __len__(self) -> int:
        return self.size

    def cut(self, start: int, end: int) -> bytes:
        """The bytes from `start` to `end`; fewer if the value ends before."""
        end = min(end, self.size)
        found = bytearray(max(end - start, 0))
        index = bisect.bisect(self.parts, start, key=lambda part: part[0])
        for at, content in self.parts[max(index - 1, 0) :]:
            if at >= end:
                break
            low, high = max(at, start), min(at + len(content), end)
            if low < high:
                found[low - start : high - start] = content[low - at : high - at]
        return bytes(found)

    def unequal(self, other: Sparse) -> Iterator[int]:
        """The numbers of words that differ, in ascending order, up to the shorter end; a word that
        is whole in only one of the two is padded with zeros."""
        size = min(self.size, other.size)
        starts = {
            granule
            for one in (self, other)
            for at, content in one.parts
            for granule in range(at, at + len(content), GRANULE)
        }
        for start in sorted(starts):
            end = min(start + GRANULE, size)
            a, b = self.cut(start, end), other.cut(start, end)
            if a != b:
                words = [np.frombuffer(x + bytes(-len(x) % WORD_BYTES), "<u8") for x in (a, b)]
                for number in np.flatnonzero(words[0] != words[1]).tolist():
                    yield start // WORD_BYTES + number
