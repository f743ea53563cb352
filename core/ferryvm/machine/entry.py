# SPDX-License-Identifier: Apache-2.0
"""Entries of compiled code, C functions `uint32_t f(ControlBlock *)`, called from Python and
written in Python.

A call of a function in Python takes a microsecond or two, one of native code nanoseconds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

ENTRY = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
"""`ENTRY(address)` calls the entry at an address with the address of a control block."""


class PythonEntry:
    """A function in Python as an entry, valid as long as this object is referenced."""

    def __init__(self, function: Callable[[int], int]) -> None:
        """`function`: takes the address of a control block and returns a status. It must not raise:
        ctypes would return 0 for it."""
        self._callback = ENTRY(function)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        self.address = address
