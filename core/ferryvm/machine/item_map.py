# SPDX-License-Identifier: Apache-2.0
"""Tables with which native code moves items between stacks and the records of launches.

    by pc    stops      │ row │ of an innermost frame, where control is
             calls      │ row │ of a frame that has called
             launches   │ parameters of the items' function, plus 1 │ of a `launch.test`
                        │ `BARRIER_MARK` │ of a `launch.barrier`

    row      │ words of the largest frame │ number │ position │ position │ …

A word is 0 where nothing has been learned yet: few of a program's instructions ever stop an item.
Native code then comes back, and Python learns it from the stack maps. Rows are never moved or freed
as long as the map lives, so code in any thread may read them while others are learned.

`RESUME` is the contract of the native counterpart of `ferryvm.machine.launch.continue_launch`,
`WRITE` that of `ferryvm.machine.item_batch.ItemBatch.write`.
"""

from __future__ import annotations

import ctypes
import enum
from array import array

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.object_shape import ReferenceMap
from ferryvm.region.launch import CALL_DISTANCE, item_call
from ferryvm.verify import Verified

ROW_WORDS = 2
"""Words of a row before the positions, which are words from fp on, ascending, modulo 2^64."""


BARRIER_MARK = (1 << 64) - 1
"""The word of a `launch.barrier` among launches."""


class MapAddresses(ctypes.Structure):
    """The tables of an `ItemMap`, for native code."""

    _fields_ = [
        ("stops", ctypes.c_uint64),
        ("calls", ctypes.c_uint64),
        ("launches", ctypes.c_uint64),
        ("pc_count", ctypes.c_uint64),  # words of each
    ]


class ItemOutcome(enum.IntEnum):
    """The reason that a native function over items has come back."""

    DONE = 0
    """Nothing is left to do."""
    UNKNOWN = 1
    """The next item has frames, or a launch, that the map does not have yet."""
    REFUSED = 2
    """The next item is for Python: it would trap, there is no room, or its words are not those of
    frames."""


RESUME = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
"""`(MapAddresses *, ControlBlock *)`: where an interpreter was left with LAUNCH, take the first
piece of the record, as `continue_launch` does, and enter the interpreter again, until it is left
with another status or Python is needed, also because the program is interrupted; an `ItemOutcome`.
Items also wait at barriers, as in `ferryvm.machine.barrier`."""


class WriterRequest(ctypes.Structure):
    """The input and output of the native function, which takes slots from the ends of the runs."""

    record: int
    slot: int

    _fields_ = [
        ("map", ctypes.c_uint64),  # address of a `MapAddresses`
        ("control", ctypes.c_uint64),
        ("runs", ctypes.c_uint64),  # address of pairs: first address of a run, end of its addresses
        ("run_count", ctypes.c_uint64),
        ("record", ctypes.c_uint64),  # the piece that follows; then the first one
        ("slot", ctypes.c_uint64),  # result: address of the slot that Python is needed for
        ("pair", ctypes.c_uint64),  # result: address of the end of its run
    ]


WRITE = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(WriterRequest))
"""Makes pieces of the slots of all runs, the highest item first, for which there is room in the
object space; an `ItemOutcome`."""


class ItemMap:
    """The positions of references in the frames of items, as far as they were learned."""

    def __init__(self, verified: Verified, references: ReferenceMap) -> None:
        self._verified, self._references = verified, references
        nothing = bytes(WORD_BYTES * len(verified.program.code))
        self._stops, self._calls, self._launches = (array("Q", nothing) for _ in range(3))
        self._rows: list[array[int]] = []
        self.addresses = MapAddresses(
            *(each.buffer_info()[0] for each in (self._stops, self._calls, self._launches)),
            len(verified.program.code),
        )

    def learn_launch(self, pc: int) -> bool:
        """Learn what the launch whose `launch.test` is at `pc` calls; False if there is none."""
        program = self._verified.program
        call = item_call(program, pc)
        if call is None:
            return False
        parameters = program.signature(program.code.immediates[call]).parameters
        self._launches[pc] = len(parameters) + 1
        return True

    def learn_barrier(self, pc: int) -> None:
        """Learn that the instruction at `pc` is a barrier, and all launches, to one of which it
        belongs."""
        for head in range(len(self._launches) - CALL_DISTANCE):
            self.learn_launch(head)
        self._launches[pc] = BARRIER_MARK

    def learn_item(self, words: memoryview | array[int], pc: int, frame: int) -> None:
        """Learn the frames of an item: the words of its part of a stack, with control at `pc` in
        the frame whose header is at word `frame`."""
        self._learn(self._stops, pc, self._references.row(pc))
        while words[frame + 1] <= frame:
            call = words[frame] - 1
            frame -= words[frame + 1]
            self._learn(self._calls, call, self._references.calls[call])

    def _learn(self, table: array[int], pc: int, row: int) -> None:
        if not table[pc]:
            largest = self._verified.frame_words[self._verified.owner(pc)]
            positions = self._references.positions(row)
            made = array("Q", [largest, len(positions), *positions])
            self._rows.append(made)
            table[pc], _ = made.buffer_info()
