# SPDX-License-Identifier: Apache-2.0
"""Buffers in which work-items leave what they have not finished.

    suspended   │ count │ stop │ skipped │ … │ slot 0 │ slot 1 │ …       claimed by an atomic counter
    skipped     │ a byte for each work-item of a slice: 1 if it has not begun │

After a launch that nobody disturbed only the head is read, and it is zero.

An item that leaves after the last slot is lost. So items stop to begin long before, at `enough`
slots. Of blocks, of which each compute unit runs one after another, those that have begun by then
need two slots for each unit: a block puts back its rest, too. A work-item of one item sees only
what was so when its slice began; so there are slots for all items of a slice.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends.opencl.build import Session
from ferryvm_backends.opencl.host_memory import runs, zeros
from ferryvm_backends.opencl.item.kernel import HEAD
from ferryvm_backends.opencl.kernel import finish
from ferryvm_backends.opencl.pool import Area
from ferryvm_backends.opencl.segment import ZERO, area_of_zeros

SLICE = 1 << 24
"""Work-items of one NDRange at most."""

_ENOUGH = {True: 1 << 10, False: 1 << 14}
"""Suspended items after which no further ones begin, of blocks and of single items: so many follow
one another before the next range, which costs a device with memory of its own more."""

_PART = 64
"""The slots take this part of a device's memory at most."""


@dataclasses.dataclass(frozen=True)
class SlotLayout:
    """Slots for the items of one kernel."""

    slot_words: int
    most: int
    """Slots."""
    enough: int
    """Suspended items from which on no further ones begin."""
    slice: int
    """Work-items of one NDRange at most."""

    @property
    def bytes(self) -> int:
        """Bytes of the buffer."""
        return HEAD.itemsize + WORD_BYTES * self.slot_words * self.most


def slot_layout(session: Session, slot_words: int, is_block: bool, at_entry: bool) -> SlotLayout:
    """The slots of so many words for items; `is_block`: one work-item after another runs a block of
    them on each compute unit; `at_entry`: those that find no slot have not begun."""
    device = session.device
    units = device.handle.max_compute_units
    largest = min(device.memory // _PART, device.largest_buffer) - HEAD.itemsize
    enough, in_flight = _ENOUGH[is_block], 2 * units if is_block else SLICE
    if at_entry:
        return SlotLayout(slot_words, enough, enough, SLICE)
    most = max(min(enough + in_flight, largest // (WORD_BYTES * slot_words)), 4)
    if most >= enough + in_flight:
        return SlotLayout(slot_words, most, enough, SLICE)
    enough = min(enough, most // 4)
    return SlotLayout(slot_words, most, enough, min(SLICE, most - enough))


class Suspended:
    """The buffers of a device: in memory of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.slots: Any = None
        self.skipped: Any = None
        self._of_slots: Area | None = None
        self._of_skipped: Area | None = None
        self.unknown = ctypes.c_uint64()
        """Not 0 if nobody knows what the buffers have: they are not used any more."""
        self._head = np.zeros(HEAD.itemsize, np.uint8)
        self._read_into = np.zeros(0, np.uint8)
        """Memory for slots, which the device copies fast."""

    def provide(self, wanted: SlotLayout) -> None:
        """Provide buffers that are large enough, with a head of zeros. Raises BackendError,
        cl.Error."""
        if self.unknown.value:
            self.close()
            self.unknown.value = 0
        if self.skipped is None or self.skipped.size < wanted.slice:
            if self._of_skipped is not None:
                self._of_skipped.release()
                self._of_skipped = self.skipped = None
            self._of_skipped = area_of_zeros(self._session, wanted.slice)
            self.skipped = self._of_skipped.buffer
        if self.slots is None or self.slots.size < wanted.bytes:
            if self._of_slots is not None:
                self._of_slots.release()
                self._of_slots = self.slots = None
            self._of_slots = self._session.pool.take(wanted.bytes)
            self.slots = self._of_slots.buffer
            self._fill(self.slots, HEAD.itemsize)

    def close(self) -> None:
        """Release the buffers, whose content is not known."""
        for area in (self._of_slots, self._of_skipped):
            if area is not None:
                area.release()
        self._of_slots = self._of_skipped = self.slots = self.skipped = None

    def head(self, queue: Any = None) -> Any:
        """The head, once the kernel has ended; `queue`: of the kernel, where it is not the
        session's. Raises BackendError, cl.Error."""
        queue = queue or self._session.queue
        event = cl.enqueue_copy(queue, self._head, self.slots, is_blocking=False)
        finish(queue)
        del event  # which would wait with Python's lock
        return self._head.view(HEAD)[0]

    def interrupt(self) -> None:
        """Let no further items begin, and those in a loop leave, if the device sees it."""

    def clear(self) -> None:
        """Make the head zero again. Raises cl.Error."""
        self._fill(self.slots, HEAD.itemsize)

    def found(self, count: int, wanted: SlotLayout) -> npt.NDArray[np.uint64]:
        """The first slots, a row for each, until the next call. Raises cl.Error."""
        words = self._read(self.slots, HEAD.itemsize, WORD_BYTES * wanted.slot_words * count)
        return words.view(np.uint64).reshape(count, wanted.slot_words)

    def skipped_ranges(self, first: int, end: int, block: int) -> list[tuple[int, int]]:
        """Ranges of the skipped items of a slice, by blocks; none is marked any more. Raises
        cl.Error."""
        count = -(-(end - first) // block)
        marks = self._read(self.skipped, 0, count) != 0
        self._fill(self.skipped, count)
        found = runs(marks)
        return [(first + one * block, min(first + two * block, end)) for one, two in found]

    def _read(self, buffer: Any, start: int, size: int) -> npt.NDArray[np.uint8]:
        if self._read_into.size < size:
            self._read_into = zeros(self._session, 2 * size)
        found = self._read_into[:size]
        if size:
            cl.enqueue_copy(self._session.queue, found, buffer, src_offset=start)
        return found

    def _fill(self, buffer: Any, size: int) -> None:
        cl.enqueue_fill_buffer(self._session.queue, buffer, ZERO, 0, size)


class HostSuspended(Suspended):
    """The buffers of a processor: in the host's memory, where both see them without a copy."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._memory: dict[int, npt.NDArray[np.uint8]] = {}

    def provide(self, wanted: SlotLayout) -> None:
        self.skipped = self._at_least(self.skipped, wanted.slice)
        self.slots = self._at_least(self.slots, wanted.bytes)
        self.clear()  # an interrupt may have come too late for the run before

    def close(self) -> None:
        for buffer in (self.slots, self.skipped):
            if buffer is not None:
                buffer.release()
        self.slots = self.skipped = None
        self._memory.clear()

    def head(self, queue: Any = None) -> Any:
        finish(self._session.queue)
        return self._shared_head()

    def found(self, count: int, wanted: SlotLayout) -> npt.NDArray[np.uint64]:
        return super().found(count, wanted).copy()

    def _shared_head(self) -> Any:
        return self._read(self.slots, 0, HEAD.itemsize).view(HEAD)[0]

    def interrupt(self) -> None:
        head = self._shared_head()
        head["stop"] = head["interrupt"] = 1

    def _at_least(self, buffer: Any, size: int) -> Any:
        """The buffer, or a larger one in its place."""
        if buffer is not None and buffer.size >= size:
            return buffer
        made = self._wrapped(size)
        if buffer is not None:
            del self._memory[buffer.int_ptr]
            buffer.release()
        return made

    def _wrapped(self, size: int) -> Any:
        self._session.check_size(size)
        bytes_ = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        buffer = cl.Buffer(self._session.context, flags, hostbuf=bytes_)
        self._memory[buffer.int_ptr] = bytes_
        return buffer

    def _read(self, buffer: Any, start: int, size: int) -> npt.NDArray[np.uint8]:
        return self._memory[buffer.int_ptr][start : start + size]

    def _fill(self, buffer: Any, size: int) -> None:
        self._memory[buffer.int_ptr][:size] = 0


@functools.cache
def suspended(session: Session, wraps: bool) -> Suspended:
    """The buffers of a session; `wraps`: in the host's memory."""
    return (HostSuspended if wraps else Suspended)(session)
