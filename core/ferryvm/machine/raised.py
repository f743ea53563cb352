# SPDX-License-Identifier: Apache-2.0
"""Exceptions that host functions raised and the program caught, by their handles.

A program that catches in a loop would keep every exception alive, with its traceback: no
instruction says that a handle is not needed any more. So the oldest handles become invalid; which
ones depends on the number of exceptions alone, so it is the same on all backends.
"""

from __future__ import annotations

from collections import deque

MOST_RAISED = 4096
"""Caught exceptions of host functions whose handles are valid: the most recent ones."""


class Raised:
    """The exceptions of one machine."""

    def __init__(self) -> None:
        self._recent: deque[BaseException] = deque(maxlen=MOST_RAISED)
        self._count = 0

    def add(self, error: BaseException) -> int:
        """Store an exception; its handle."""
        self._recent.append(error)
        self._count += 1
        return self._count - 1

    def get(self, handle: int) -> BaseException | None:
        """The exception with a handle; None if there is none, or it is too old."""
        place = handle - self._count + len(self._recent)
        return self._recent[place] if 0 <= place < len(self._recent) else None

    def copy(self) -> Raised:
        """A copy with the same handles."""
        clone = Raised()
        clone._recent, clone._count = self._recent.copy(), self._count
        return clone
