# SPDX-License-Identifier: Apache-2.0
"""Threads that run once they are started, or an error: Python's own may be waited for without end.

A new thread needs memory for its first frame. Where it gets none `threading.Thread.start` waits for
a thread that is gone (CPython 3.11); here its end is noticed.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable
from typing import Any

from ferryvm.errors import FerryError

_LOOK = 0.05
"""Seconds between looks at whether it has ended before it ran."""


class ThreadError(FerryError):
    """A thread cannot be started: there is no memory, or there are too many."""


def start(run: Callable[[], None]) -> None:
    """Run `run` in a daemon thread. Raises ThreadError."""
    running = _thread.allocate_lock()
    running.acquire()

    def begin() -> None:
        running.release()
        run()

    # A function of Python would need a frame where there is no memory for one.
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
