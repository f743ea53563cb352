# SPDX-License-Identifier: Apache-2.0
"""Items of reductions and scans, run by a kernel of their pattern where all elements exist."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET, READ_ONLY
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.skeleton import reduction, scan
from ferryvm.skeleton.recognition import Pattern, PatternKind
from ferryvm_backends.opencl.item.kernel import ItemKernel

_SCANNED = scan.BLOCK * scan.ITEM_BLOCKS
"""Elements of an item."""


class PatternKernel:
    """The kernel of an item function that is recognised."""

    def __init__(self, pattern: Pattern, kernel: ItemKernel) -> None:
        self._pattern, self.kernel = pattern, kernel
        self._count = 3 if pattern.kind is PatternKind.SCANNED_BLOCKS else 2

    def arguments(
        self, objects: ObjectMemory, operands: Sequence[int], limit: int
    ) -> list[int] | None:
        """The words for the kernel; None if items up to `limit` might trap, or are not independent.
        `operands`: of the stack, the launch and its arguments last."""
        given = list(operands[-LAUNCH_WORDS - self._count : -LAUNCH_WORDS])
        if not all(given) or len({*given}) < len(given):
            return None
        words = objects.space.words
        source, *changed = (reference // WORD_BYTES for reference in given)
        if any(words[one] & READ_ONLY for one in changed):
            return None
        sizes = [words[one + LENGTH_OFFSET // WORD_BYTES] for one in (source, *changed)]
        size = self._elements(sizes, limit)
        return None if size is None else [*given, size]

    def _elements(self, sizes: Sequence[int], limit: int) -> int | None:
        """The number of elements, from the lengths of the arrays; None if an item has not all of
        its own."""
        source, to = sizes[:2]
        if self._pattern.kind is PatternKind.REDUCED_BLOCK:
            is_whole = limit <= min(-(-source // reduction.BLOCK), to)
            return source if is_whole else None
        if limit > -(-to // _SCANNED):
            return None
        blocks = -(-to // scan.BLOCK)
        if self._pattern.kind is PatternKind.COMBINED_BLOCKS:
            return to if source >= blocks else None
        return to if source >= to and sizes[2] >= blocks else None
