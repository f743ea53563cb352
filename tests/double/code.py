# SPDX-License-Identifier: Apache-2.0
"""Compiled code that is Python: a native function that does what a test tells it to.

It stands where a compiler's machine code would, at an address that an interpreter enters.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

from ferryvm.backend import Activity, Code
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.entry import ENTRY, PythonEntry

Action = Callable[[ControlBlock], int]
"""What code does to a machine, and the status that it leaves with."""


class NativeFunction(PythonEntry):
    """An entry of compiled code that is given the control block, not its address."""

    def __init__(self, action: Action) -> None:
        super().__init__(lambda block: int(action(ControlBlock.from_address(block))))


class PythonCode(Code):
    """Code that does what a test wants and leaves."""

    is_from_cache = False
    notes: Mapping[str, float]

    def __init__(self, action: Action, notes: Mapping[str, float] | None = None) -> None:
        self._native = NativeFunction(action)
        self.address = self._native.address
        self.notes = notes or {}

    def activity(self) -> Activity:
        return Activity()


def leave(control: ControlBlock) -> int:
    """Leave at once, which is always right."""
    control.status = Status.LEAVE
    return Status.LEAVE


def enter(code: Code, control: ControlBlock) -> int:
    """Run code; the status that it left with."""
    return int(ENTRY(code.address)(ctypes.addressof(control)))
