# SPDX-License-Identifier: Apache-2.0
"""The memory that programs take on a device, and memory that can be given up for other.

    FERRYVM_OPENCL_MEMORY      the largest number of bytes that copies of programs' memory may take

Where there is no memory for a buffer, the copies of programs that do not run are given up, the one that
was used longest ago first, until there is. Their content is on the host, so it is only sent again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyopencl as cl

from ferryvm.backend import BackendError

MEMORY = "FERRYVM_OPENCL_MEMORY"


class MemoryPool:
    """The buffers of a device, in bytes."""

    def __init__(self) -> None:
        self.used = 0
        """Bytes of the buffers that there are."""
        self.give_up: Callable[[], bool] = bool
        """Gives up the memory of a program that does not run; False if there is none."""

    def buffer(self, context: Any, size: int) -> Any:
        """A buffer for reading and writing. Raises BackendError, cl.Error if there is no memory for it
        when all that can be given up is."""
        while True:
            try:
                return self._taken(context, size)
            except (BackendError, cl.Error):
                if not self.give_up():
                    raise

    def _taken(self, context: Any, size: int) -> Any:
        limit = _limit()
        if limit is not None and self.used + size > limit:
            raise BackendError(
                f"opencl: {size} bytes more than the {self.used} in use are needed, and {MEMORY} "
                f"allows {limit}"
            )
        return _Pooled(self, context, size)


class _Pooled(cl.Buffer):
    """A buffer that its pool counts until it is released."""

    def __init__(self, pool: MemoryPool, context: Any, size: int) -> None:
        super().__init__(context, cl.mem_flags.READ_WRITE, size)
        self._pool, self._counted = pool, size
        pool.used += size

    def release(self) -> None:
        self._forget()
        super().release()

    def __del__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        counted, self._counted = getattr(self, "_counted", 0), 0
        if counted:
            self._pool.used -= counted


def _limit() -> int | None:
    """The bytes that the environment allows; None for no limit. Raises BackendError."""
    text = os.environ.get(MEMORY, "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise BackendError(f"opencl: {MEMORY} is a number of bytes, found {text!r}")
    return int(text)
