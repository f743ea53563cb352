# SPDX-License-Identifier: Apache-2.0
"""The packet of changed words that a kernel in copied memory gets as an argument."""

from __future__ import annotations

import ctypes

from ferryvm.ir.c.opencl import PACKET_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock

CONTROL_WORDS = ctypes.sizeof(ControlBlock) // WORD_BYTES
"""Words of a control block."""

ARGUMENT = 9
"""The number of a kernel's argument."""


class Packet(ctypes.Structure):
    """`struct ferry_packet` of a kernel's text: words of statics, then of the stack."""

    control: ControlBlock
    statics_at: int
    statics_count: int
    stack_at: int
    stack_count: int
    words: ctypes.Array[ctypes.c_uint64]

    _fields_ = [
        ("control", ControlBlock),
        ("statics_at", ctypes.c_uint64),
        ("statics_count", ctypes.c_uint64),
        ("stack_at", ctypes.c_uint64),
        ("stack_count", ctypes.c_uint64),
        ("words", ctypes.c_uint64 * PACKET_WORDS),
    ]
