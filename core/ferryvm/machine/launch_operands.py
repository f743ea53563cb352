# SPDX-License-Identifier: Apache-2.0
"""The operands of a launch on a stack, as a view: reads and writes go to the stack.

arguments … │ limit │ next │ record │ <- sp at `launch.test`      `ferryvm.isa.launch`
"""

from __future__ import annotations

import ctypes

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock


class LaunchOperands(ctypes.Structure):
    """Limit and next, as signed numbers; the record, as a word. It does not keep the stack
    alive."""

    limit: int
    next: int
    record: int

    _fields_ = [("limit", ctypes.c_int64), ("next", ctypes.c_int64), ("record", ctypes.c_uint64)]


def operands_below(control: ControlBlock, end: int) -> LaunchOperands:
    """The operands of a launch that end below word `end` of a machine's stack."""
    size = ctypes.sizeof(LaunchOperands)
    return LaunchOperands.from_address(control.stack + WORD_BYTES * end - size)


def launch_operands(control: ControlBlock) -> LaunchOperands:
    """The operands of the launch at whose `launch.test` a machine stands."""
    return operands_below(control, control.sp)
