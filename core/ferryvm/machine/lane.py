# SPDX-License-Identifier: Apache-2.0
"""Items that native code runs in the lanes of vectors: its entry, and the states of suspended
lanes.

    row     0: mask of the suspended lanes, in the first word
            PC      │ lane 0 │ lane 1 │ …
            FRAME   │ lane 0 │ lane 1 │ …
            …
            WORDS   │ lane 0 │ lane 1 │ …      the first word of each item's part of the stack

A column is a suspended item, as `ferryvm.machine.launch` has it, with what its instruction was
about to do. Only columns of suspended lanes have a meaning.
"""

from __future__ import annotations

import ctypes

from ferryvm.named_tuple import NamedTuple

__all__ = ["FRAME", "LENGTH", "PC", "STOPS", "WORDS"]

LANE_ENTRY = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
"""The type of a `LaneEntry`'s function."""

PC = 1
"""Row: the item's pc."""
FRAME = 2
"""Row: the word in which the innermost frame has its header."""
LENGTH = 3
"""Row: words of the item's part of the stack."""
STOPS = 4
"""Row: 1 if no higher item needs to begin, as after a trap."""
WORDS = 5
"""The first row of the words."""


class LaneEntry(NamedTuple):
    """Native code that runs items in lanes."""

    address: int
    """A C function `int64_t f(ControlBlock *, int64_t first, int64_t limit, uint64_t *buffer)`, for
    a control block at the launch's `launch.test`: it runs items from `first` on, in vectors, and
    returns the item that it has come to; those below are done, or suspended in the last vector. It
    changes nothing of the control block and the stack."""
    lanes: int
    """Items of a vector."""
    rows: int
    """Rows of the buffer, each of a word for each lane."""
