# SPDX-License-Identifier: Apache-2.0
"""Ranges of a launch's items, run as work-items.

    push ─> slices of the range ─> pull ─> pieces of the record
              └─ until items are suspended, or the program is to stop

A range that is as the last one takes a shorter path, see `prepared`.
"""

from __future__ import annotations

import functools
import itertools
import time
from array import array
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ferryvm.backend import BackendError
from ferryvm.ir.c.opencl import LOOK
from ferryvm.ir.operation import LENGTH
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.item_batch import FRAME, ITEM, SIZE, SLOT_WORDS, ItemBatch, range_slot
from ferryvm.machine.launch import Left, finish, space_for
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm.machine.state import Machine
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.region import Region
from ferryvm.residency import RepeatedRange, Residency
from ferryvm_backends.opencl.copied import SLICE
from ferryvm_backends.opencl.host_memory import CHUNK
from ferryvm_backends.opencl.item import ItemShape
from ferryvm_backends.opencl.item.at_once import AtOnceRanges
from ferryvm_backends.opencl.item.bound import Bound, is_short
from ferryvm_backends.opencl.item.kernel import ItemKernel, kernel_queue, seconds_of
from ferryvm_backends.opencl.item.local_size import LEAST, LocalSize, slice_items
from ferryvm_backends.opencl.item.memory import ItemMemory, Written
from ferryvm_backends.opencl.item.pattern import PatternKernel
from ferryvm_backends.opencl.item.prepared import State, WholeRange, range_state
from ferryvm_backends.opencl.item.range_run import (
    RangeRun,
    at_entry,
    batch_of,
    can_go_on,
    counted,
    in_order,
    is_guard,
    put_back,
    stops,
)
from ferryvm_backends.opencl.item.suspension import Suspended, slot_layout
from ferryvm_backends.opencl.segment import view

_LARGEST_BLOCK = 1 << 10
"""Items of a block at most."""

_BLOCKS = 16
"""Blocks for each compute unit, so that all have something to do where items differ."""

_POLLS = LOOK << 14
"""Polls of an item, some thousand iterations each, after which it is suspended where the device
does not see an interrupt."""

_FULL = 1 << 11
"""Work-items for each compute unit that a slice has at least there: with fewer some of the device
is idle, and the slice takes no less time."""

LONGEST = 2.0
"""Seconds of a range after which no further slice begins there: what has been suspended waits."""

_SAMPLE = 200e-6
"""Seconds of a sample of items in order on a processor: a kernel is entered in some 10 us."""

_PIECES, _WORDS = 64, 1 << 12
"""Pieces, and their words in all, for which there is memory before items run."""

_SPARSE = 4
"""Elements for each item from which on an array is copied back by marks, not as a whole."""

_RANGE_BYTES = WORD_BYTES * SLOT_WORDS


class ItemRanges(AtOnceRanges):
    """Runs items as work-items of a device."""

    def __init__(
        self,
        kernel: ItemKernel,
        polled: Callable[[], ItemKernel],
        memory: ItemMemory,
        shape: ItemShape,
        guards: tuple[int, ...],
        region: Region,
        local: LocalSize,
        pattern: PatternKernel | None = None,
    ) -> None:
        """`polled`: makes a kernel that polls its loops, where `kernel` does not; `region`: the
        launch; `local`: the size of groups; `pattern`: of the items, if they have one."""
        super().__init__(memory, shape)
        self._kernel, self._polled = kernel, functools.cache(polled)
        self._guards, self._pattern = guards, pattern
        self._returns_to = region.entry + CALL_DISTANCE + 1
        verified = region.verified
        self._parameters = len(verified.program.signature(shape.function).parameters)
        self._launch_parameters = verified.parameters(region.entry)
        self._units: int = self._device.handle.max_compute_units
        self.sample_seconds, self.is_paced = _SAMPLE, not memory.wraps
        self._locals = len(verified.program.functions[shape.function].locals)
        self._first_frame = self._parameters + verified.frame_words[shape.function]
        """Words that the first frame of an item takes on the stack."""
        self._local = local
        self._whole: WholeRange | None = None
        """The range that runs, if it was one slice."""
        self._taken = 0
        """Bytes of objects that the last range took of which items were left."""
        self._layout = slot_layout(
            memory.session, shape.slot_words, shape.is_block, shape.entry is not None
        )
        self._least_slice = min(_FULL * self._units, self._layout.slice)
        self._slice = self._layout.slice if memory.wraps else self._least_slice
        self.failures = dict.fromkeys(guards, 0)
        """Of guards, by pc."""

    @property
    def bounds(self) -> tuple[tuple[Bound, ...], ...]:
        """Bounds of the iterations of loops that the kernel does not poll."""
        return self._shape.bounds or ()

    @property
    def is_companion(self) -> bool:  # type: ignore[override]  # known when the memory is
        return self._memory.wraps or (self._shape.stores_own_alone and self._pattern is None)

    @property
    def part_items(self) -> int:  # type: ignore[override]  # likewise
        return 1 if self._memory.wraps else CHUNK

    @property
    def where(self) -> str:
        return f"work-items of {self._device}"

    @property
    def deferral(self) -> Hashable | None:  # type: ignore[override]  # known when the memory is
        return self._memory.deferral

    def _run(
        self,
        machine: Machine,
        first: int,
        limit: int,
        found: RangeRun,
        defers: bool,
        residency: Residency | None,
    ) -> None:
        control, objects = machine.control, machine.objects
        assert objects is not None  # the program has launches
        memory, buffers = self._memory, self._buffers
        try:
            end = control.stack + WORD_BYTES * (control.sp + self._first_frame)
            if end > control.stack_end:
                raise BackendError("the stack has no room for the frame of an item")
            if not memory.is_ahead(control):  # else there is room: nothing has been made since
                self._reserve(objects)
            buffers.provide(self._layout)
            start, state = control.fp - self._launch_parameters, State()
            frame = machine.memory.stack[start : control.sp]
            words = [frame[word] for word in self._shape.words]
            is_at_once = not defers and residency is None and objects.gathered is None
            if is_at_once and not memory.wraps:
                state = range_state(machine, start, first, limit)
            written = self._run_again(machine, state, found, words)
            is_again, self._whole = written is not None, None
            if written is None:
                written = self._run_anew(machine, (first, limit), found, words, defers, residency)
            if self._shape.entry is not None and found.slots is not None:
                frame_of = self._shape.entry, self._parameters, self._locals
                found.slots = at_entry(found.slots, words, *frame_of)
            if found.slots is not None:
                found.stops = counted(stops(found.slots, self._guards))
            if residency is not None:
                if found.is_left:
                    memory.drop(control)
                    return
                memory.leave(control, residency, self._stored(control, words))
            is_wanted = not defers or found.is_stopped
            if found.is_left or (is_wanted and not is_again):
                stale = [] if not found.is_left else [(a, written[a]) for a in memory.unsent]
                saved = [view(address, limit * size).copy() for address, size in stale]
                memory.pull(control)
                found.is_changed = True
                for (address, size), elements in zip(stale, saved, strict=True):
                    put_back(view(address, limit * size), elements, size, found)
            if self._whole is None or found.is_left:
                pass
            elif residency is not None:
                self._prepare_resident(control, words, self._whole, residency)
            elif state:
                self._replace(memory.prepare(state, control, self._whole, buffers, written))
        except BaseException as error:
            if not self._is_undone(error):
                memory.drop(control)
                buffers.close()
            raise
        finally:
            self.entries += 1
            self.seconds += found.seconds
        self._commit(objects, found, limit)

    def _run_anew(
        self,
        machine: Machine,
        items: tuple[int, int],
        found: RangeRun,
        words: list[int],
        defers: bool,
        residency: Residency | None,
    ) -> Written:
        """Find out what a range needs, and run it; the arrays that it overwrites unseen. Raises
        BackendError, cl.Error."""
        control, objects = machine.control, machine.objects
        memory, buffers = self._memory, self._buffers
        assert objects is not None
        first, limit = items
        start, pattern = control.fp - self._launch_parameters, self._pattern
        frame = machine.memory.stack[start : control.sp]
        own = None if pattern is None else pattern.arguments(objects, frame, limit)
        marks = self._sets_marks(control, words, limit - first)
        may_mark = marks or self._shape.marks_others or bool(own)
        is_part, written = objects.gathered is not None, dict[int, int]()
        if not own:
            written = memory.overwritten(self._shape, control, words, (first, limit), is_part)
        if residency is None:
            push = memory.push_ahead if defers else memory.push
            arrays = memory.accessed(self._shape, control, words)
            places = push(control, may_mark, written, arrays)
            if is_part:
                memory.check_apart(self._shape, control, words)
        else:
            places = memory.push_resident(control, may_mark, written, residency)
        given, bounds = self._with_headers(control, words), self._shape.bounds
        if pattern is not None and own:
            kernel, given = pattern.kernel, own
        elif bounds is not None and not is_short(bounds, given):
            kernel = self._polled()
        else:
            kernel = self._kernel
        kernel.bind(places, buffers.slots, buffers.skipped)
        self._give(kernel, control, start, given, marks)
        found.is_changed = memory.wraps
        self._slices(kernel, control, buffers, first, limit, found)
        if may_mark:
            self._whole = None
        memory.copy_others()  # unless that was done beside the first slice
        self._mark(control, words, first, limit, marks)
        return written

    def _run_again(
        self, machine: Machine, state: State, found: RangeRun, words: list[int]
    ) -> Written | None:
        """Run a range that is as the last one, and let the machine see its results if nothing is
        left; None if it is not so. Raises BackendError, cl.Error."""
        prepared, memory, control = self._prepared, self._memory, machine.control
        if not state or prepared is None or found.is_stopped or not memory.has(prepared, control):
            return None
        if not prepared.fits(control, state):
            return None
        began = time.perf_counter()
        head = prepared.run(memory.session.queue)
        found.seconds = time.perf_counter() - began
        first, limit, block, _ = prepared.whole.given
        self._note(head, control, (first, limit), block, found)
        self._collect(head, found)
        if found.is_left:
            self._mark(control, words, first, limit, False)
        else:
            prepared.accept()
            found.is_changed = True
        if found.is_left or found.seconds > SLICE:
            self._replace(None)
        return prepared.written

    def _prepare_resident(
        self, control: ControlBlock, words: list[int], whole: WholeRange, residency: Residency
    ) -> None:
        """Prepare a range that has run with arrays that remain on the device to run again."""
        memory = self._memory
        accessed, stored = (
            memory.accessed(self._shape, control, words),
            self._stored(control, words),
        )
        found = memory.prepare_resident(control, whole, accessed, stored, residency, self._buffers)
        if found is not None:
            self._repeated.add(found)
            again = functools.partial(self.run_again, found)
            residency.again = RepeatedRange(found.arrays, found.items, again)

    def _sets_marks(self, control: ControlBlock, words: list[int], items: int) -> bool:
        """True if items are to mark chunks of arrays that they store into anywhere: if these have
        many more elements than there are items. Else all their chunks count as marked."""
        others = (one.argument for one in self._shape.stored if not one.is_own)
        lengths = (self._memory.header_word(control, words[n], LENGTH) for n in others)
        return any(length > _SPARSE * items for length in lengths)

    def _with_headers(self, control: ControlBlock, words: list[int]) -> list[int]:
        """The words that items share, with those of headers."""
        header_word, headers = self._memory.header_word, self._shape.headers
        return words + [header_word(control, words[number], word) for number, word in headers]

    def _stored(self, control: ControlBlock, words: list[int]) -> frozenset[int] | None:
        """Addresses of all arrays that items may have stored into; None if they are not known."""
        if self._shape.marks_others or self._pattern is not None:
            return None
        found = (words[one.argument] for one in self._shape.stored)
        return frozenset(self._memory.elements(control, each) for each in found if each)

    def _mark(
        self, control: ControlBlock, words: list[int], first: int, limit: int, sets_marks: bool
    ) -> None:
        """Mark what items may have stored into without marks."""
        for one in self._shape.stored:
            start, end = one.bytes * first, one.bytes * limit
            if not one.is_own:
                length = self._memory.header_word(control, words[one.argument], LENGTH)
                start, end = 0, 0 if sets_marks else one.bytes * length
            if end:
                self._memory.mark(control, words[one.argument], start, end)

    def _give(
        self, kernel: ItemKernel, control: ControlBlock, start: int, words: list[int], marks: bool
    ) -> None:
        """Tell a kernel where the machine stands; `start`: the word of the launch's frame; `marks`:
        see `_sets_marks`."""
        first = start if self._shape.is_block else control.sp
        kernel.give(
            words,
            sp=control.sp - first,
            fp=self._launch_parameters,
            most=self._layout.most,
            enough=self._layout.enough,
            stack_at=control.stack + WORD_BYTES * first,
            stack_end=control.stack_end,
            hp=control.hp,
            objects=control.objects,
            types=control.types,
            forced=self.entries % 7 + 1,
            polls=_POLLS,
            marks=marks,
        )

    def _slices(
        self,
        kernel: ItemKernel,
        control: ControlBlock,
        buffers: Suspended,
        first: int,
        limit: int,
        found: RangeRun,
    ) -> None:
        """Run slices of a range until all items are done or something comes between."""
        session = self._memory.session
        block, begin = 1, first
        if self._shape.is_block:
            wanted = -(-(limit - first) // (self._units * _BLOCKS))
            block = min(max(wanted, 1), _LARGEST_BLOCK)
        head = None
        while first < limit and not found.is_stopped:
            end = min(first + self._slice * block, limit)
            is_unknown = not (kernel.group or self._local.is_measured)
            is_measured = is_unknown and limit - begin >= LEAST
            if is_measured:
                self._local.begin()
                end = min(first + slice_items(limit - begin), first + self._layout.slice, limit)
            given = first, end, block, self._local.size
            began = time.perf_counter()
            if not is_measured and first == begin and self._memory.has_others:
                event = kernel.start_apart(session, *given)
                self._memory.copy_others()
                head = buffers.head(kernel_queue(session))
                taken = seconds_of(event)
            else:
                if is_measured:
                    self._local.end(kernel.run_timed(session, *given))
                else:
                    kernel.enqueue(session.queue, *given)
                head = buffers.head()
                taken = time.perf_counter() - began
            found.seconds += taken
            self._note(head, control, (first, end), block, found)
            if (first, end) == (begin, limit) and not is_measured:
                is_sure = self._shape.is_foreseen and kernel is self._kernel
                self._whole = WholeRange(kernel, given, can_leave=not is_sure)
            if not (is_measured or self._memory.wraps):
                self._adapt(taken, end - first)
            first = end
        if first < limit:
            found.open.append((first, limit))
        if head is not None:
            self._collect(head, found)

    def _note(
        self,
        head: Any,
        control: ControlBlock,
        items: tuple[int, int],
        block: int,
        found: RangeRun,
    ) -> None:
        """Note what the head tells of a slice: items that have not begun, and if it is the last."""
        if head["skipped"]:
            found.open += self._buffers.skipped_ranges(*items, block)
        is_late = self.is_paced and found.seconds > LONGEST
        if head["stop"] or head["skipped"] or head["lost"] or control.interrupt or is_late:
            found.is_stopped = True

    def _collect(self, head: Any, found: RangeRun) -> None:
        """Collect the items that slices have suspended. Raises BackendError, cl.Error."""
        if not (head["count"] or head["stop"]):
            return
        buffers = self._buffers
        rows = buffers.found(min(int(head["count"]), self._layout.most), self._layout)
        is_lost = bool(head["lost"])
        buffers.clear()
        if is_lost:
            raise BackendError(f"opencl: {self._device} suspended more items than it has slots for")
        if self._shape.entry is not None:
            found.slots = rows if len(rows) else None
            return
        is_item = rows[:, SIZE] != 0
        if is_item.all():
            found.slots = rows if len(rows) else None
            return
        found.slots = rows[is_item] if is_item.any() else None
        ranges = rows[~is_item][:, [ITEM, FRAME]].view(np.int64).tolist()
        found.open += [(one, two) for one, two in ranges]

    def _adapt(self, taken: float, items: int) -> None:
        """Adapt the number of items of a slice to its intended time."""
        if items < self._slice and taken < SLICE:
            return
        factor = min(max(SLICE / max(taken, 1e-6), 0.25), 16.0)
        self._slice = min(max(int(self._slice * factor), self._least_slice), self._layout.slice)

    # --- what is left -----------------------------------------------------------------------

    def _commit(self, objects: ObjectMemory, found: RangeRun, limit: int) -> None:
        """Write what is left of a range into the launch."""
        left: list[Left] = []
        if not found.is_left:
            finish(objects, limit, left)
            return
        before = objects.control.object_top
        batch = self._batch(objects, found)
        if batch.count:
            left.append((batch.first, batch))
            reserve(objects, *space_for(left), collects=False)
        finish(objects, limit, left)
        self._taken = objects.control.object_top - before

    def _reserve(self, objects: ObjectMemory) -> None:
        """Make room for what a range is expected to leave: now, since a collection would move what
        suspended items refer to, and without one the space would grow with each range. Raises
        AddressSpaceError if there is not even room for little."""
        try:
            reserve(objects, _PIECES, _WORDS + self._taken // WORD_BYTES)
        except AddressSpaceError:
            self._taken = 0
            reserve(objects, _PIECES, _WORDS)

    def _batch(self, objects: ObjectMemory, found: RangeRun) -> ItemBatch:
        """The rest of a range; guards that have failed are counted."""
        words = array("Q", itertools.chain(*(range_slot(*one) for one in sorted(found.open))))
        address, _ = words.buffer_info()
        runs = [array("Q", range(address, address + WORD_BYTES * len(words), _RANGE_BYTES))]
        slots, control = found.slots, objects.control
        left = ItemBatch(runs, [words], 0)
        if slots is None:
            return left
        first = SLOT_WORDS + self._parameters
        slots[:, first] = self._returns_to
        slots[:, first + 1] = control.sp + self._parameters - control.fp
        failed = stops(slots, self._guards)[is_guard(slots)]
        for pc, times in counted(failed).items():
            self.failures[pc] += times
        finisher = None if objects.gathered is not None else self.finish_slots
        rows = in_order(slots)
        if finisher is None or control.interrupt or found.is_interrupted:
            return left.joined(batch_of(slots, rows))
        is_ready = can_go_on(slots)[rows]
        before = batch_of(slots, rows[is_ready])
        ready = finisher.finish(objects, before, lambda: found.is_interrupted)
        found.finished = before.count - ready.count
        return left.joined(batch_of(slots, rows[~is_ready])).joined(ready)
