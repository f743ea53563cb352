# SPDX-License-Identifier: Apache-2.0
"""Slices of a range of groups: each is checked, then all of its groups run that no member would leave.

check ─> marks ─> ranges without marks ─> work          a group with a mark begins in order
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import numpy as np

from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.range import LONGEST, ItemRanges
from ferryvm_backends.opencl.item.range_run import RangeRun
from ferryvm_backends.opencl.item.suspension import Suspended
from ferryvm_backends.opencl.kernel import BufferOffset

_SECONDS = 0.02
"""The time that a slice is to take: an interrupt waits for its end."""

_FIRST = 64
"""Groups of the first slice for each compute unit."""

_MOST_SUSPENDED = 1 << 10
"""Groups that are suspended at their beginning, at most; others have not begun."""


class GroupKernel(ItemKernel):
    """The kernel that checks groups, with the one that runs them."""

    work: ItemKernel

    def bind(self, places: Sequence[BufferOffset], suspended: object, skipped: object) -> None:
        super().bind(places, suspended, skipped)
        self.work.bind(places, suspended, skipped)

    def give(self, arguments: Sequence[int], **fields: int) -> None:
        super().give(arguments, **fields)
        self.work.give(arguments, **fields)


class GroupSlices(ItemRanges):
    """Runs groups of one size."""

    _groups = 0
    """Groups of the next slice."""

    def _sets_marks(self, control: ControlBlock, words: list[int], items: int) -> bool:
        return super()._sets_marks(control, words, items * self._kernel.group)

    def _slices(
        self,
        kernel: ItemKernel,
        control: ControlBlock,
        buffers: Suspended,
        first: int,
        limit: int,
        found: RangeRun,
    ) -> None:
        assert isinstance(kernel, GroupKernel)
        queue = self._memory.session.queue
        most = self._layout.slice
        self._groups = self._groups or _FIRST * self._units
        marked: list[tuple[int, int]] = []
        while first < limit and not found.is_stopped:
            end = min(first + min(self._groups, most), limit)
            began = time.perf_counter()
            kernel.enqueue(queue, first, end, 1, 1)
            left = buffers.skipped_ranges(first, end, 1) if buffers.head()["skipped"] else []
            if left:
                buffers.clear()
            for one, two in _between(first, end, left):
                kernel.work.enqueue(queue, one, two, 1, 1)
            buffers.head()  # once all is done
            taken = time.perf_counter() - began
            found.seconds += taken
            marked += left
            found.is_stopped |= bool(left or control.interrupt or found.seconds > LONGEST)
            if end - first == self._groups or taken > _SECONDS:
                factor = min(max(_SECONDS / max(taken, 1e-6), 0.25), 16.0)
                self._groups = max(int(self._groups * factor), 1)
            first = end
        if first < limit:
            found.open.append((first, limit))
        groups = [group for one, two in marked for group in range(one, two)]
        first_ones, others = groups[:_MOST_SUSPENDED], groups[_MOST_SUSPENDED:]
        found.open += [(group, group + 1) for group in others]
        if first_ones:
            found.slots = np.array([(group, int(Status.TRAP)) for group in first_ones], np.uint64)


def _between(
    first: int, end: int, left_out: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The ranges of one from which others are left out."""
    ends = [first, *itertools.chain(*left_out), end]
    for one, two in zip(ends[::2], ends[1::2], strict=True):
        if one < two:
            yield one, two
