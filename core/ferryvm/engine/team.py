# SPDX-License-Identifier: Apache-2.0
"""The workers of a launch: a control block and a stack for each thread, and the range they share.

A team is made once for a launch and a machine, and prepared for each run.
"""

from __future__ import annotations

import ctypes
import mmap
from array import array

from ferryvm.backend import Code
from ferryvm.engine.launching import quiet_words
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine import host_stack
from ferryvm.machine.chunk import (
    CLOCK_ADDRESS,
    FINISH,
    LAUNCH,
    RELEASE_ADDRESS,
    RESUME,
    ChunkLoop,
    ItemRange,
    RangeWorker,
)
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.lane import LaneEntry
from ferryvm.machine.launch_operands import LaunchOperands, launch_operands
from ferryvm.machine.memory import RESERVED
from ferryvm.machine.native import NATIVE_WORDS
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.slot_code import SlotCode
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region

MOST_SUSPENDED = 1 << 12
"""Items that are suspended before no further ones begin: there is space for so many, and for one
more vector of each thread."""

MOST_WORDS = 1 << 17
"""Words of their pieces, likewise."""


ARENA_BYTES = 1 << 20
"""Bytes of the object space in which the items of a thread may make objects."""


class Team:
    """A control block and a stack for each of several threads, and the range that they share."""

    def __init__(
        self,
        objects: ObjectMemory,
        code: Code | SlotCode,
        region: Region,
        threads: int,
        loop: ChunkLoop,
        block: type[ControlBlock] = ControlBlock,
    ) -> None:
        """`block`: the class of the threads' control blocks."""
        program, control = region.verified.program, objects.control
        self.entry: LaneEntry | None = code.lanes
        self._code = code  # for as long as its address is used
        parameters = program.signature(program.code.immediates[region.entry + CALL_DISTANCE])
        self.arguments = len(parameters.parameters)
        """Words that `launch.item` pushes."""
        self._parameters = len(program.signature(region.function).parameters)
        words = (control.stack_end - control.stack) // WORD_BYTES
        self._stacks = [_Stack(words) for _ in range(threads)]
        self.stacks = [stack.words for stack in self._stacks]
        self.controls = [block() for _ in range(threads)]
        rows = 0 if self.entry is None else self.entry.lanes * self.entry.rows
        self.buffers = [array("Q", bytes(WORD_BYTES * max(rows, 1))) for _ in range(threads)]
        """The states of suspended lanes of vectors."""
        self._most = max(MOST_SUSPENDED // threads, 1)
        slot_bytes = WORD_BYTES * (MOST_WORDS // 2 // threads)
        self._slots = [mmap.mmap(-1, slot_bytes) for _ in range(threads)]
        self._entries = [array("Q", bytes(WORD_BYTES * 2 * self._most)) for _ in range(threads)]
        """Of each thread the addresses of its slots, then the pcs of the items in them."""
        self._quiet = quiet_words(region.verified)
        """Launches within items run in order."""
        self._natives = array("Q", bytes(WORD_BYTES * NATIVE_WORDS * (len(program.hosts) + 1)))
        self._template = ControlBlock()
        self._helpers = (ctypes.c_uint64 * threads)()
        self._nowhere = LaunchOperands()
        self.range = ItemRange(
            release=RELEASE_ADDRESS,
            clock=CLOCK_ADDRESS,
            pc=region.entry,
            last_pc=region.entry + CALL_DISTANCE + 1,
            entry=code.address,
            lanes=0 if self.entry is None else self.entry.address,
            lane_count=0 if self.entry is None else self.entry.lanes,
            lane_rows=0 if self.entry is None else self.entry.rows,
            template=ctypes.addressof(self._template),
            helpers=ctypes.addressof(self._helpers),
        )
        self.workers = (RangeWorker * threads)()
        self.range.workers = ctypes.addressof(self.workers)
        for number, worker in enumerate(self.workers):
            worker.range = ctypes.addressof(self.range)
            worker.control = ctypes.addressof(self.controls[number])
            worker.stack = self._stacks[number].address
            worker.stack_end = worker.stack + WORD_BYTES * words
            worker.buffer, _ = self.buffers[number].buffer_info()
            worker.number, worker.refused, worker.most = number, (1 << 63) - 1, 1 << 62
            worker.slot = ctypes.addressof(ctypes.c_char.from_buffer(self._slots[number]))
            worker.slot_end = worker.slot + slot_bytes
            worker.entry, _ = self._entries[number].buffer_info()
            worker.entry_end = worker.entry + WORD_BYTES * self._most
            worker.pc_offset = WORD_BYTES * self._most
        self._fresh = bytes(self.workers)
        self.loop = loop
        self.launch = LAUNCH(loop.launch)
        self.resume, self.end = RESUME(loop.resume), FINISH(loop.end)
        self.first = 0
        """The first item of the range."""
        makes = object_access(region).makes and self.entry is None
        self.arena_bytes = ARENA_BYTES * threads if makes else 0
        """Bytes of objects for the items of all threads; 0: they make none out of order."""
        self.has_arenas = False
        """True if there is room for them."""
        self._arenas = 0

    def suspended(self, number: int) -> tuple[array[int], array[int]]:
        """The addresses of the slots that a worker has filled, and the pcs of the items in them."""
        entries = self._entries[number]
        count = (self.workers[number].entry - entries.buffer_info()[0]) // WORD_BYTES
        return entries[:count], entries[self._most : self._most + count]

    def prepare(self, objects: ObjectMemory, first: int, limit: int, size: int) -> None:
        """Stand where the machine stands, with a range in chunks of so many items."""
        source, template, range_ = objects.control, self._template, self.range
        self._arenas = source.object_top if self.has_arenas else 0
        if self.has_arenas:
            source.object_top += self.arena_bytes
        ctypes.memmove(ctypes.addressof(template), ctypes.addressof(source), ctypes.sizeof(source))
        template.heap_capacity = template.hp
        template.object_end = template.object_top
        template.prepared = template.prepared_bytes = template.ahead = 0
        template.natives, _ = self._natives.buffer_info()
        template.launches, _ = self._quiet.buffer_info()
        if objects.gathered is not None:  # another thread has launched
            template.host_stack = host_stack.floor()
        ctypes.memmove(self.workers, self._fresh, len(self._fresh))
        own = self.arena_bytes // len(self.workers)
        for number, worker in enumerate(self.workers if self.has_arenas else ()):
            worker.object_top = self._arenas + own * number
            worker.object_end = worker.object_top + own
        sp, fp = source.sp, source.fp
        self.first = range_.next = first
        range_.past = range_.limit = limit
        range_.size, range_.is_left, range_.is_done = size, 0, 0
        range_.sp, range_.fp = sp, fp
        start = WORD_BYTES * (fp - self._parameters)
        range_.frame, range_.frame_offset = source.stack + start, start
        range_.frame_bytes = WORD_BYTES * sp - start
        launch = ctypes.addressof(launch_operands(source))
        range_.operands = launch - source.stack
        # Of several ranges at once, the one that gathers them writes the outcome.
        operands = launch if objects.gathered is None else ctypes.addressof(self._nowhere)
        range_.operand = operands + LaunchOperands.next.offset  # type: ignore[attr-defined]  # a ctypes field

    def give_back(self, control: ControlBlock) -> None:
        """Give the room for objects behind the last one back to the machine with a control block."""
        arenas, self._arenas = self._arenas, 0
        if not arenas or control.object_top != arenas + self.arena_bytes:
            return
        top = arenas
        for worker, own in zip(self.workers, self.controls, strict=True):
            if own.object_end == worker.object_end and own.object_top != worker.object_top:
                top = max(top, own.object_top)
        control.object_top = top


class _Stack:
    """The stack of one thread."""

    def __init__(self, words: int) -> None:
        self._map = mmap.mmap(-1, WORD_BYTES * words, flags=RESERVED)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self.words = memoryview(self._map).cast("Q")
