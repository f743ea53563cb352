# SPDX-License-Identifier: Apache-2.0
"""Slices of a range of groups: each is checked, then all of its groups run that no member would
leave.

check ─> marks ─> ranges without marks ─> work ─> marks ─> undone        a group with a mark begins in order

Where members can fail in the middle the arrays that groups change are copied in front of the first
slice. If any group fails all are as before again, and all others run again: groups do not depend on
each other, so they do the same.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn

import numpy as np
import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm_backends.opencl.group.direct import SHORT, DirectRange, Place, place_of
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.pooled import is_inside, lock
from ferryvm_backends.opencl.item.prepared import WholeRange
from ferryvm_backends.opencl.item.range import LONGEST, ItemRanges
from ferryvm_backends.opencl.item.range_run import RangeRun
from ferryvm_backends.opencl.item.saved import Saved
from ferryvm_backends.opencl.item.suspension import Suspended
from ferryvm_backends.opencl.kernel import BufferOffset
from ferryvm_backends.opencl.launch import RangeStatus

_SECONDS = {True: 0.1, False: 0.02}
"""The time that a slice is to take on a processor and on other devices, some of which show pictures:
an interrupt waits for its end."""

_FIRST = 64
"""Groups of the first slice for each compute unit."""

_MOST_SUSPENDED = 1 << 10
"""Groups that are suspended at their beginning, at most; others have not begun."""


_MOST = 8
"""A range may take so many times as long for other work of the machine."""

_MOST_CHECKED = 8
"""Launches that are known to be without a fault, besides the last one."""


class GroupKernel(ItemKernel):
    """The kernel that checks groups, with the one that runs them."""

    work: ItemKernel

    def bind(self, places: Sequence[BufferOffset], suspended: object, skipped: object) -> None:
        super().bind(places, suspended, skipped)
        self.work.bind(places, suspended, skipped)

    def give(self, arguments: Sequence[int], **fields: int) -> None:
        super().give(arguments, **fields)
        self.work.give(arguments, **fields)


class DoubtError(Exception):
    """Some groups may fail, of which the kernel is not sure. All have been undone."""


class GroupSlices(ItemRanges):
    """Runs groups of one size."""

    is_sure = True
    """False if groups of the first slice that fail are to raise DoubtError."""
    _groups = 0
    """Groups of the next slice."""
    _even = 0
    """The first group that has fewer members; it runs in order, as all behind it."""
    _has_run = False
    _checked: Mapping[tuple[int, ...] | None, tuple[int, int]] = MappingProxyType({})
    """By the states of the last launches, ranges of groups that the check has found no fault in."""
    _given: Sequence[int] = ()
    """Words that all items share."""
    _place: Place | None = None
    """The place of the last range that was short and one slice."""
    _direct: DirectRange | None = None
    """The last range that was so twice."""
    _least = math.inf
    """Seconds that it takes on an idle machine, at most."""

    def up_to(self, group: int) -> GroupSlices:
        """The same, for a range of which groups from that one on have fewer members."""
        self._even = group
        return self

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        direct = self._direct
        with contextlib.suppress(cl.Error):  # it has not begun
            if direct is not None and self._run_directly(direct, machine, first, limit):
                return RangeOutcome(limit - first, 0, None, bool(machine.control.interrupt))
        return super().run(machine, first, limit)

    def _run_directly(self, direct: DirectRange, machine: Machine, first: int, limit: int) -> bool:
        """True if a range has run that is as the last one, but for words that its items share.
        Raises BackendError, LostItemsError, cl.Error."""
        control, objects, kernel = machine.control, machine.objects, direct.kernel
        if objects is None or objects.gathered is not None or control.interrupt or is_inside():
            return False
        if direct.place != place_of(control, first, limit):
            return False
        buffers = self._buffers
        with lock:
            if buffers.slots is None:
                return False
            kernel.bind(self._memory.push(control, False, ()), buffers.slots, buffers.skipped)
            start = control.fp - self._launch_parameters
            frame = machine.memory.stack[start : control.sp]
            words = [frame[word] for word in self._shape.words]
            self._give(kernel, control, start, self._with_headers(control, words), False)
            known = self._checked.get(self._check_state(kernel), (0, 0))
            if not known[0] <= first < limit <= known[1]:
                return False
            began = time.perf_counter()
            status = direct.run()
            taken = time.perf_counter() - began
        if status in (RangeStatus.FAILED, RangeStatus.LOST):
            self._fail(machine, BackendError(f"opencl: {self._device} failed"), True)
        if status is RangeStatus.UNLIKE:
            return False
        if not self._is_short(taken):
            self._place = self._direct = None
        self.entries += 1
        self.seconds += taken
        return True

    def _prepare(
        self, kernel: ItemKernel, control: ControlBlock, items: tuple[int, int], taken: float
    ) -> None:
        """Note a range that was one slice, of which no group can leave."""
        place = None
        if self._memory.wraps and self._is_short(taken):
            place = place_of(control, *items)
            if place == self._place:
                self._direct = DirectRange(control, kernel, self._memory.session, *items)
        self._place = place

    def _is_short(self, taken: float) -> bool:
        """True if ranges are short that take so many seconds, sometimes longer for other work of the
        machine."""
        self._least = min(taken, 2 * self._least)
        return self._least <= SHORT and taken <= _MOST * SHORT

    def _check_state(self, kernel: ItemKernel) -> tuple[int, ...] | None:
        """The words on which the check depends, besides groups and members; None if it may depend on
        others."""
        checked = self._shape.checked
        if checked is None:
            return None
        return *kernel.machine_state(), *checked.state(self._given)

    def _sets_marks(self, control: ControlBlock, words: list[int], items: int) -> bool:
        return super()._sets_marks(control, words, items * self._kernel.group)

    def _give(
        self, kernel: ItemKernel, control: ControlBlock, start: int, words: list[int], marks: bool
    ) -> None:
        self._given = words
        super()._give(kernel, control, start, words, marks)

    def _is_undone(self, error: BaseException) -> bool:
        return isinstance(error, DoubtError)

    def _fail(self, machine: Machine, error: BaseException, is_changed: bool) -> NoReturn:
        super()._fail(machine, error, is_changed and not isinstance(error, DoubtError))

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
        with contextlib.ExitStack() as stack:
            saved = []
            for argument, size in self._shape.undone or ():
                saved.append(self._memory.save(control, self._given[argument], size))
                stack.callback(saved[-1].release)
            self._run_slices(kernel, control, buffers, (first, limit), found, saved)

    def _run_slices(
        self,
        kernel: GroupKernel,
        control: ControlBlock,
        buffers: Suspended,
        wanted: tuple[int, int],
        found: RangeRun,
        saved: Sequence[Saved],
    ) -> None:
        begin, limit = first, _ = wanted
        most, wanted_seconds = self._layout.slice, _SECONDS[self._memory.wraps]
        self._groups = self._groups or _FIRST * self._units
        left_out: list[tuple[int, int]] = []
        uneven, limit = (min(self._even, limit), limit), min(self._even, limit)
        while first < limit and not found.is_stopped:
            end = min(first + min(self._groups, most), limit)
            began = time.perf_counter()
            left = self._check(kernel, buffers, first, end)
            if left and first == begin and not self.is_sure:
                raise DoubtError
            left_out += left
            failed = self._work(kernel, buffers, (first, end), left)
            is_whole = (first, end) == wanted and not left_out
            is_sure = self._shape.checked is not None and self._shape.undone is None
            if is_whole and is_sure:
                self._whole = WholeRange(kernel.work, (first, end, 1, 1), can_leave=False)
            while failed:  # and those that remain do not depend on them
                left = failed
                left_out = sorted([*left_out, *failed])
                for one in saved:
                    one.restore()
                if first == begin and not self.is_sure:
                    raise DoubtError
                failed = self._work(kernel, buffers, (begin, end), left_out)
            taken = time.perf_counter() - began
            found.seconds += taken
            found.is_stopped |= bool(left or control.interrupt or found.seconds > LONGEST)
            is_first, self._has_run = not self._has_run, True
            if is_whole and is_sure:
                self._prepare(kernel.work, control, wanted, taken)
            if is_first:
                pass  # the driver may have compiled
            elif end - first == self._groups or taken > wanted_seconds:
                factor = min(max(wanted_seconds / max(taken, 1e-6), 0.25), 16.0)
                self._groups = max(int(self._groups * factor), 1)
            first = end
        if first < limit:
            found.open.append((first, limit))
        groups = [group for one, two in (*left_out, uneven) for group in range(one, two)]
        first_ones, others = groups[:_MOST_SUSPENDED], groups[_MOST_SUSPENDED:]
        found.open += [(group, group + 1) for group in others]
        if first_ones:
            found.slots = np.array([(group, int(Status.TRAP)) for group in first_ones], np.uint64)

    def _check(
        self, kernel: GroupKernel, buffers: Suspended, first: int, end: int
    ) -> list[tuple[int, int]]:
        """The ranges of the groups that members would leave. A launch that is as one of the last
        ones is not checked again: those of a chain take turns with their arrays."""
        state = self._check_state(kernel)
        known = self._checked.get(state, (0, 0))
        if known[0] <= first and end <= known[1]:
            return []
        kernel.enqueue(self._memory.session.queue, first, end, 1, 1)
        left = _marked(buffers, first, end)
        if state is not None and not left:
            is_more = known[0] < known[1] == first
            last = [*self._checked.items()][-_MOST_CHECKED:]
            self._checked = {**dict(last), state: (known[0] if is_more else first, end)}
        return left

    def _work(
        self,
        kernel: GroupKernel,
        buffers: Suspended,
        wanted: tuple[int, int],
        left_out: Sequence[tuple[int, int]],
    ) -> list[tuple[int, int]]:
        """Run groups; the ranges of those that have failed."""
        found: list[tuple[int, int]] = []
        can_fail = self._shape.undone is not None
        for one, two in _between(*wanted, left_out):
            kernel.work.enqueue(self._memory.session.queue, one, two, 1, 1)
            if can_fail:
                found += _marked(buffers, one, two)
        if not can_fail:
            buffers.head()  # once all is done
        return found


def _marked(buffers: Suspended, first: int, end: int) -> list[tuple[int, int]]:
    """The ranges of the groups that a kernel has marked, which are marked no more."""
    if not buffers.head()["skipped"]:
        return []
    found = buffers.skipped_ranges(first, end, 1)
    buffers.clear()
    return found


def _between(
    first: int, end: int, left_out: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The ranges of one from which others are left out."""
    ends = [first, *itertools.chain(*left_out), end]
    for one, two in zip(ends[::2], ends[1::2], strict=True):
        if one < two:
            yield one, two
