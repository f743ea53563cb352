# SPDX-License-Identifier: Apache-2.0
"""The contract of an interpreter's native code that runs the rest of suspended items, on threads.

    slots of items ─> chunks of one ─> a thread's stack ─> interpreter ─┬─ the item is done
                                                                        └─ a slot again

The slots (`ferryvm.machine.item_batch`) are a range for the threads of launches
(`ferryvm.machine.chunk`): their numbers are its items, and this code is that of its loop.
"""

from __future__ import annotations

import ctypes
from typing import ClassVar

from ferryvm.machine.chunk import ChunkLoop
from ferryvm.machine.control import ControlBlock
from ferryvm.named_tuple import NamedTuple


class SlotControl(ControlBlock):
    """The control block of a thread that runs slots."""

    slots: int
    headroom: int

    _fields_: ClassVar = [
        ("slots", ctypes.c_uint64),  # address of their addresses
        ("headroom", ctypes.c_uint64),  # words of the largest frame of the program
    ]


class SlotCode(NamedTuple):
    """Native code that runs a slot."""

    address: int
    """A C function `uint32_t f(SlotControl *)`. Control stands at a `launch.test`, with the number
    of a slot as `next` and a record that is its own to write. It puts the item's words above the
    operands, and runs them. If the item has ended, pc is behind all code, and the result LEAVE;
    else control is where the interpreter was left, the result is its status, and `next` the item
    plus 1. Where the stack may have no room, nothing has changed."""
    loop: ChunkLoop
    """The functions by which threads run it."""

    lanes: None = None
    """It runs one item at a time."""
