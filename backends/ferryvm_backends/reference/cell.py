# SPDX-License-Identifier: Apache-2.0
"""Cells of the reference backend: dictionaries by pc."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ferryvm.backend import BackendError
from ferryvm.machine.control import Status
from ferryvm.machine.entry import ENTRY

MOST_TIMES = (1 << 63) - 1
"""The largest number of times that a cell can count to: the native interpreters' own."""

Function = Callable[[int], int]
"""Compiled code: from a control block's address to the number of a status."""


class Cells:
    """The cells of one form of the code. A pc has a count, a function or neither."""

    def __init__(self, size: int) -> None:
        """`size`: instructions of the code."""
        self._size = size
        self.places: set[int] = set()
        """The pcs that have a cell."""
        self._counts: dict[int, int] = {}
        self._functions: dict[int, Function] = {}
        self._lock = threading.Lock()

    def count(self, pc: int, times: int) -> None:
        """As `Artifact.count`."""
        if not 1 <= times <= MOST_TIMES:
            raise BackendError(f"a cell cannot count {times} times; 1 to {MOST_TIMES} is allowed")
        with self._lock:
            self._check(pc)
            self._functions.pop(pc, None)
            self._counts[pc] = times
            self.places.add(pc)

    def counted(self, pc: int) -> int:
        """As `Artifact.counted`."""
        self._check(pc)
        return self._counts.get(pc, 0)

    def install(self, pc: int, address: int) -> None:
        """As `Artifact.install`."""
        if address <= 0:
            raise BackendError(f"pc {pc}: there is no function at address {address}")
        with self._lock:
            self._check(pc)
            self._counts.pop(pc, None)
            self._functions[pc] = ENTRY(address)
            self.places.add(pc)

    def remove(self, pc: int) -> None:
        """As `Artifact.remove`."""
        with self._lock:
            self._check(pc)
            self._remove(pc)

    def _check(self, pc: int) -> None:
        if not 0 <= pc < self._size:
            raise BackendError(f"no cell at pc {pc}; the code has {self._size} instructions")

    def _remove(self, pc: int) -> None:
        self.places.discard(pc)
        self._counts.pop(pc, None)
        self._functions.pop(pc, None)

    def arrive(self, pc: int) -> Function | Status | None:
        """The cell at a pc: a function to call, HOT to leave with, or nothing."""
        with self._lock:
            remaining = self._counts.get(pc)
            if remaining is None:
                return self._functions.get(pc)
            if remaining > 1:
                self._counts[pc] = remaining - 1
                return None
            self._remove(pc)
            return Status.HOT
