# SPDX-License-Identifier: Apache-2.0
"""The agreement between native code that runs a range of a device, and Python code that changes
what such a range relies on.

    Python: change ─> shut() ── another epoch ─> waits until native code has ended its range
    native: one at a time ─> the plan's epoch is the present one? ─┬─ yes: run
                                                                   └─ no: Python looks at all of it

Native code has no Python lock meanwhile, so `busy` excludes other threads. An exception of a signal
handler can come between any two steps of Python code: then at most a plan is not used any more.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from ferryvm_backends.opencl.launch import GateWords, native_function


@functools.cache
def _shut() -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_uint64)(native_function("shut_gate"))


class Gate:
    """Of the memory of one device."""

    def __init__(self) -> None:
        self._words = GateWords(epoch=1)
        self.address = ctypes.addressof(self._words)
        self._armed = 0
        """The last epoch in which there is a plan."""

    @property
    def epoch(self) -> int:
        """The present one."""
        return self._words.epoch

    def arm(self) -> int:
        """The present epoch, for a plan that may run in it."""
        self._armed = found = self._words.epoch
        return found

    def shut(self) -> None:
        """Let no plan of the present epoch run any more, and wait for one that runs."""
        if self._armed == self._words.epoch:
            _shut()(self.address)
