# SPDX-License-Identifier: Apache-2.0
"""Threads that certainly run once they are started, or an error; starting Python's own may block
for ever.

A new thread needs memory for its first frame. Without it `threading.Thread.start` waits for a
thread that has ended (CPython 3.11); this module detects its end.
"""

from __future__ import annotations

import _thread
import contextlib
import sys
from collections.abc import Callable
from typing import Any

from ferryvm.errors import FerryError

_LOOK = 0.05
"""Seconds between checks whether it has ended before it ran."""


class Bell:
    """An event for one waiting thread, which another one sets; `is_rung` is True if it is set.

    A signal handler may raise at any point of the wait and nothing is lost, unlike with
    `threading.Event`: that has a lock, which remains locked if a handler raises at the end of its
    block, so that the other thread would wait for ever to set it.
    """

    def __init__(self) -> None:
        self.is_rung = False
        self._silence = _thread.allocate_lock()
        self._silence.acquire()

    def ring(self) -> None:
        """Release all waiting threads, from now on."""
        self.is_rung = True
        with contextlib.suppress(RuntimeError):  # it was set before, and no thread has waited since
            self._silence.release()

    def wait(self, seconds: float) -> bool:
        """Wait until it is rung, or so long; whether it is. Of several that wait one is woken, the
        others see it after their seconds."""
        return self.is_rung or self._silence.acquire(timeout=seconds) or self.is_rung


class ThreadError(FerryError):
    """A thread cannot be started: memory or the number of threads is exhausted."""


def start(run: Callable[[], None]) -> None:
    """Run `run` in a daemon thread. Raises ThreadError."""
    running = _thread.allocate_lock()
    running.acquire()

    def begin() -> None:
        running.release()
        run()

    # A Python function would need memory for a frame.
    unraisable: list[Any] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        _thread.start_new_thread(begin, ())
        while not running.acquire(timeout=_LOOK):
            if any(each.object is begin for each in unraisable):
                raise ThreadError("a thread cannot be started: out of memory")
    except RuntimeError:
        raise ThreadError("a thread cannot be started: the limit is reached") from None
    finally:
        sys.unraisablehook = hook
        for each in unraisable:
            if each.object is not begin:
                hook(each)
