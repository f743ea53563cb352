# SPDX-License-Identifier: Apache-2.0
"""Entries of compiled code, C functions `uint32_t f(ControlBlock *)`, from Python and in Python.

Calling an entry written in Python takes a microsecond or two, calling native code nanoseconds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

ENTRY = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
"""Type of entries: `ENTRY(address)` is callable with the address of a control block."""


class PythonEntry:
    """An entry written in Python, valid as long as this object is referenced."""

    def __init__(self, function: Callable[[int], int]) -> None:
        """`function`: takes the address of a control block and returns a status. It must not raise,
        because ctypes would return 0 then."""
        self._callback = ENTRY(function)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address
