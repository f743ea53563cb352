# SPDX-License-Identifier: Apache-2.0
"""A machine's objects on a device with memory of its own.

    one buffer   │ dirty marks │ object space, offsets as on the host │ arena: elements outside │
    another one  │ tables: type rows; places of the arrays, on the host and on the device      │

`ferryvm.ir.c.opencl_object` has the layout. Each array whose elements are outside of the space has
a copy in the arena from its first use on, until a collection frees it. A copy has a mirror on the
host: the content that both sides had when it was last copied. The host's elements are compared with
it before each entry, and chunks that differ are sent. So no one has to report stores: interpreters,
native code, host functions, the collector and Python change arrays without knowing of devices. What
a kernel stores comes back when it leaves, by the chunks that it has marked.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from array import array
from collections.abc import Container, Iterator, Sequence

import numpy as np
import pyopencl as cl

from ferryvm.backend import ArrayActivity, BackendError
from ferryvm.ir.c.opencl_object import BYTES_WORD, COUNT_WORD, ROWS_WORD, TABLE_WORDS
from ferryvm.isa.object import ROW_WORDS
from ferryvm.isa.type import FIRST_DECLARED, WORD_BYTES
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.object_memory import ObjectMemory, OutsideArray
from ferryvm.region.object_access import ObjectAccess
from ferryvm.residency import Residency
from ferryvm.traffic import SPACE, Traffic, array_name
from ferryvm_backends.opencl.array_copy import AccessedArrays, ArrayCopy, in_chunks, object_ranges
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import CHUNK, runs
from ferryvm_backends.opencl.left_elements import LeftElements
from ferryvm_backends.opencl.object_arena import ADDRESSES, ObjectArena
from ferryvm_backends.opencl.segment import ZERO, Part, Segment, area_of_zeros, view

_LEAST_TIMED = 1 << 20
"""Bytes that are sent at most without waiting for them."""

_LEAST_BESIDE = 1 << 20
"""Bytes of parts that are compared and copied beside a kernel, at least, since that needs a second
queue."""


Sent = tuple[Segment, Sequence[tuple[int, int]], ArrayActivity]
"""A part that is to be sent, the ranges of it that may have changed, and its metrics."""


class ObjectCopy(ObjectArena):
    """The objects of a machine on a device."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.sent: list[Sent] = []
        """The parts that the last `push` has compared."""
        self._used = 0
        """Bytes of the space from which on the device has zeros."""
        self._ahead: dict[Segment, None] | None = None
        """Parts that need not be compared, while the device has results that the host lacks; None:
        the host has all."""
        self._sent: dict[tuple[ObjectAccess, int], list[ArrayActivity]] = {}
        """Metrics of the parts that uses of objects need and that are among these, for each
        `Traffic`."""
        self.residency: Residency | None = None
        """The elements that are on the device already for the next `push`, and the arrays that it
        may access; None: all are on the host."""
        self.unsent: list[int] = []
        """Addresses of the arrays that were not sent by the last `push`, as a kernel overwrites
        them."""
        self.may_be_marked = False
        """True if kernels may have set dirty marks since they were looked at."""
        self._changed: set[tuple[int, int]] = set()
        """Ranges that the device has changed without marks, in bytes from the start of the
        space."""
        self._others: list[Sent] = []
        """Parts that are to be sent, but that the next kernel does not access."""
        self._brought: dict[ArrayCopy, list[tuple[int, int]]] = {}
        """Ranges that are on their way to the mirrors, while later launches run."""
        self._stored_again: set[ArrayCopy] = set()
        """Copies among these that later launches have stored into: what has been brought was for
        nothing."""

    @property
    def is_ahead(self) -> bool:
        """True while the device has results that the host lacks."""
        return self._ahead is not None

    def run_ahead(self) -> None:
        """Leave results on the device until `catch_up`: nothing on the host reads or writes
        objects."""
        if self._ahead is None:
            self._ahead = {}

    def catch_up(self) -> None:
        """The host has all results again."""
        self._ahead = None
        self._sent.clear()
        self._others.clear()
        self._brought.clear()
        self._stored_again.clear()

    def close(self) -> None:
        """Give the memory of the device back; nothing is on the device then."""
        self._session.copies.clear()  # which waits for them
        for copy in self._copies.values():
            copy.close()
        for area in (self._area, self._tables):
            if area is not None:
                area.release()
        self._area = self._tables = self._space = None
        self.rows, self._space_bytes, self._arena_bytes, self._used = b"", 0, 0, 0
        self.layout += 1
        self.sent = []
        self._copies.clear()
        self._changed.clear()
        self.catch_up()

    def _provide(self, needed_space: int, wanted: Sequence[OutsideArray]) -> None:
        """Provide memory for the space and for copies of these. Raises BackendError, cl.Error."""
        space = max(in_chunks(needed_space), self._space_bytes)
        missing = [one for one in wanted if one.address not in self._copies]
        starts = self._free(missing)
        if space == self._space_bytes and starts is not None:
            self._add(missing, starts, is_pinned=self.residency is None)
            return
        needed = sum(in_chunks(one.size) for one in missing)
        arena = self._arena_bytes
        if starts is None:
            arena = max(2 * arena, arena + needed)
        try:
            self._move(space, arena)
        except (BackendError, cl.Error):  # no memory for both: all is copied again
            if self._ahead:
                raise  # results are only there
            was_ahead = self.is_ahead
            self.close()
            if was_ahead:
                self.run_ahead()
            missing = [*wanted]
            self._move(space, sum(in_chunks(one.size) for one in wanted))
        starts = self._free(missing)
        assert starts is not None
        self._add(missing, starts, is_pinned=self.residency is None)

    # --- to the device ------------------------------------------------------------------------

    def push(
        self,
        control: ControlBlock,
        objects: ObjectMemory,
        use: ObjectAccess,
        traffic: Traffic,
        marks: bool = True,
        written: Container[int] = (),
        arrays: AccessedArrays | None = None,
    ) -> None:
        """Copy what a kernel may read to the device; `marks`: it may set dirty marks; `written`:
        addresses of arrays that it overwrites unseen; `arrays`: all that it accesses, if they are
        known. Then others are sent by `copy_others`, if launches may follow that access them.
        Raises BackendError, cl.Error."""
        self.may_be_marked |= marks
        self.unsent.clear()
        self._send_others(traffic)
        rows = self._sent.get((use, id(traffic)))
        if rows is not None:
            for row in rows:
                row.entries += 1
                row.unchanged += 1
            return
        outside = objects.outside()
        alive = {one.address: one.size for one in outside}
        for address, copy in [*self._copies.items()]:
            if not copy.fits(alive.get(address, 0)):
                copy.make_free()
                del self._copies[address]
                self.layout += 1
        self._base = control.objects
        prepared = (control.prepared + self._base) & ADDRESSES if control.prepared else 0
        there = self.residency
        wanted = [
            one
            for one in outside
            if one.size
            and use.concerns(one.type, one.address == prepared)
            and (there is None or one.address in there.arrays)
            and (arrays is None or self.is_ahead or one.address in arrays.elements)
        ]
        extent, of_space = self._space_ranges(control, arrays)
        self._provide(extent, wanted)
        assert self._space is not None
        self._space.host = view(self._base, self._space_bytes)
        parts: list[Sent] = [(self._space, of_space, traffic.of_array(0, SPACE))]
        for one in wanted:
            copy = self._copies[one.address]
            known = traffic.arrays.get(copy.number)
            if known is None:
                name = array_name(objects.program, one.type, one.size)
                known = traffic.of_array(copy.number, name)
            parts.append((copy, [(0, copy.size)], known))
        if self._ahead is not None:
            self._sent[use, id(traffic)] = [row for _, _, row in parts]
            parts = [part for part in parts if part[0] not in self._ahead]
            self._ahead.update((segment, None) for segment, _, _ in parts)
        if arrays is not None:
            parts = self._put_off(parts, arrays.elements)
        sent, self.sent = [], []
        given = {} if there is None else there.given
        for segment, ranges, row in parts:
            if isinstance(segment, ArrayCopy) and segment.address in written:
                self.unsent.append(segment.address)
                segment.make_free()
                ranges = []
            elif isinstance(segment, ArrayCopy) and segment.takes(given.get(segment.address)):
                row.entries += 1
                row.unchanged += 1
                continue
            self.sent.append((segment, ranges, row))
            sent.append((row, self._send(segment, ranges, row)))
        self._write_tables(control, objects)
        total = sum(pushed for _, pushed in sent)
        if total > _LEAST_TIMED:  # else what follows would wait for the copies, and seem slow
            began = time.perf_counter()
            self._session.settle()
            seconds = time.perf_counter() - began
            for row, pushed in sent:
                row.seconds_to_device += seconds * pushed / total
        traffic.to_device += total

    @property
    def has_pending(self) -> bool:
        """True if something is to be copied, or is on its way, that the last launch did not need
        or has changed."""
        return bool(self._others or self._brought or self._changed)

    def send_again(self, parts: Sequence[Sent], unsent: Sequence[int], traffic: Traffic) -> None:
        """Send what has changed of the parts of an earlier `push`, which did not send the elements
        at some addresses. Raises cl.Error."""
        self.unsent[:] = unsent
        for part in parts:
            traffic.to_device += self._send(*part)

    def _space_ranges(
        self, control: ControlBlock, arrays: AccessedArrays | None
    ) -> tuple[int, list[tuple[int, int]]]:
        """Bytes of the space that a kernel with these arrays needs, and the ranges that it may
        access."""
        extent = max(control.object_end, control.object_top)
        if arrays is None or self.is_ahead:
            before, self._used = self._used, control.object_top
            return extent, [(0, max(self._used, before))]  # free memory must be zero there, too
        found = object_ranges(self._base, in_chunks(extent), arrays.objects)
        extent = max((end for _, end in found), default=0)
        self._used = max(self._used, extent)
        return extent, found

    def _put_off(self, parts: list[Sent], arrays: Container[int]) -> list[Sent]:
        """The parts that a kernel with these arrays needs; others are sent beside it, if they are
        large."""
        others = [p for p in parts if isinstance(p[0], ArrayCopy) and p[0].address not in arrays]
        if sum(end for _, ranges, _ in others for _, end in ranges) < _LEAST_BESIDE:
            return parts
        self._others = others
        return [part for part in parts if part not in others]

    def has_others(self, arrays: Container[int]) -> bool:
        """True if there is much to copy that a kernel with these arrays does not access."""
        return (
            bool(self._others)
            or sum(end - start for _, start, end in self._results(arrays)) >= _LEAST_BESIDE
        )

    def copy_others(self, arrays: Container[int], traffic: Traffic) -> None:
        """Begin to copy what a kernel with these arrays, which may be running, does not access:
        changes of the host to the device, and results of earlier launches to the mirrors. Raises
        cl.Error."""
        self._send_others(traffic)
        for copy, start, end in [*self._results(arrays)]:
            first = self._space_bytes + copy.start
            self._changed.discard((first + start, first + end))
            self._brought.setdefault(copy, []).append((start, end))
            copy.fetch(start, end)

    def _send_others(self, traffic: Traffic) -> None:
        traffic.to_device += sum(self._send(*each) for each in self._others)
        self._others = []

    def _results(self, arrays: Container[int]) -> Iterator[tuple[ArrayCopy, int, int]]:
        """Ranges of other arrays that earlier launches have stored into, but for those brought for
        nothing."""
        starts = {self._space_bytes + copy.start: copy for copy in self._copies.values()}
        for first, last in self._changed:
            at = max((start for start in starts if start <= first), default=-1)
            copy = starts.get(at)
            if copy is not None and not (copy.address in arrays or copy in self._stored_again):
                yield copy, first - at, last - at

    def brought(self, traffic: Traffic) -> Iterator[Part]:
        """The ranges that `copy_others` has begun to bring to the host."""
        for copy, ranges in self._brought.items():
            if self._copies.get(copy.address) is copy:
                row = traffic.of_array(copy.number, "")
                yield from ((copy, start, end, row) for start, end in ranges)
        self._brought.clear()

    def _send(self, segment: Segment, ranges: Sequence[tuple[int, int]], row: ArrayActivity) -> int:
        """Begin to send changes; the number of bytes."""
        began = time.perf_counter()
        pushed = sum(segment.push(start, end) for start, end in ranges)
        row.seconds_to_device += time.perf_counter() - began
        row.to_device += pushed
        row.entries += 1
        row.unchanged += not pushed
        return pushed

    def _write_tables(self, control: ControlBlock, objects: ObjectMemory) -> None:
        """Tell kernels where all copies are: launches that take turns with arrays find the same
        tables."""
        types = FIRST_DECLARED + len(objects.program.types)
        rows = ctypes.string_at(control.types, WORD_BYTES * ROW_WORDS * types)
        places = sorted(
            ((copy.address - self._base) & ADDRESSES, self._space_bytes + copy.start)
            for copy in self._copies.values()
        )
        head = array("Q", (0,) * TABLE_WORDS)
        head[COUNT_WORD], head[BYTES_WORD] = len(places), self._space_bytes
        head[ROWS_WORD] = TABLE_WORDS + ROW_WORDS * types
        found = head.tobytes() + rows + array("Q", itertools.chain(*places)).tobytes()
        if found == self.rows:
            return
        if self._tables is None or self._tables.size < len(found):
            if self._tables is not None:
                self._tables.release()
            self._tables = area_of_zeros(self._session, 2 * len(found))
            self.version += 1
        self.rows = found
        cl.enqueue_copy(self._session.queue, self._tables.buffer, np.frombuffer(found, np.uint8))

    def leave(self, address: int, *, is_changed: bool) -> LeftElements:
        """Elements as they are on the device, which are not those of the host any more: `stored`
        passes them over. `is_changed`: the host lacks them. Raises BackendError, cl.Error."""
        copy = self._copies[address]
        self.layout += 1
        found = LeftElements(self._session, copy.place, copy.host, is_on_host=not is_changed)
        copy.has_taken(found)
        return found

    def mark(self, place: int, start: int, end: int) -> None:
        """Mark bytes of the elements at a place of the host as changed by the device; the end may
        be behind theirs."""
        copy = self._copies.get((place + self._base) & ADDRESSES)
        if place < self._space_bytes:
            self._changed.add((place + start, min(place + end, self._space_bytes)))
        elif copy is not None:
            first = self._space_bytes + copy.start
            self._changed.add((first + start, first + min(end, copy.size)))
            if copy in self._brought:
                self._stored_again.add(copy)

    # --- to the host --------------------------------------------------------------------------

    def stored(self, top: int, use: ObjectAccess, traffic: Traffic) -> Iterator[Part]:
        """The chunks that the kernel has stored into, of the space below `top` and of arrays; they
        are marked no more. Raises cl.Error."""
        top = min(top, self._space_bytes)
        self._used = max(self._used, top)
        if not use.stores:
            return
        assert self._space is not None
        if not self.may_be_marked:
            yield from self._unmarked(top, traffic)
            return
        self.may_be_marked = False
        copies = sorted(self._copies.values(), key=lambda copy: copy.start)
        ends = [copy.start + in_chunks(copy.size) for copy in copies]
        count = (self._space_bytes + max(ends, default=0)) // CHUNK
        marks, queue = np.empty(count, np.uint8), self._session.queue
        first = self._marks - count
        cl.enqueue_copy(queue, marks, self._buffer, src_offset=first)
        traffic.to_host += count
        is_marked = marks[::-1] != 0
        has_marks = is_marked.any()
        for start, end in self._changed:
            is_marked[start // CHUNK : -(-end // CHUNK)] = True
        self._changed.clear()
        if not is_marked.any():
            return
        parts: list[tuple[Segment, int, int, int, str]] = [(self._space, 0, top, 0, SPACE)]
        for copy in copies:
            if copy.is_of_host:
                start = self._space_bytes + copy.start
                parts.append((copy, start, copy.size, copy.number, ""))
        for segment, start, size, number, name in parts:
            chunks = is_marked[start // CHUNK : (start + in_chunks(size)) // CHUNK]
            for one, two in runs(chunks):
                row = traffic.of_array(number, name)
                yield segment, one * CHUNK, min(two * CHUNK, size), row
        if has_marks:
            cl.enqueue_fill_buffer(queue, self._buffer, ZERO, first, count)

    def _unmarked(self, top: int, traffic: Traffic) -> Iterator[Part]:
        """The chunks that the device has changed without marks; they are not noted any more."""
        ranges = [(start // CHUNK, -(-end // CHUNK)) for start, end in sorted(self._changed)]
        self._changed.clear()
        if not ranges:
            return
        assert self._space is not None
        parts: list[tuple[Segment, int, int, int, str]] = [(self._space, 0, top, 0, SPACE)]
        for copy in self._copies.values():
            if copy.is_of_host:
                start = (self._space_bytes + copy.start) // CHUNK
                parts.append((copy, start, copy.size, copy.number, ""))
        for segment, start, size, number, name in parts:
            done = 0
            for first, last in ranges:
                one, two = max(first - start, done), min(last - start, -(-size // CHUNK))
                if one < two:
                    done, row = two, traffic.of_array(number, name)
                    yield segment, one * CHUNK, min(two * CHUNK, size), row
