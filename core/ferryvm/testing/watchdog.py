# SPDX-License-Identifier: Apache-2.0
"""A watchdog that interrupts backends at a time limit: a program that ends on one must end on all.

The limit is one of processor time, in which a busy machine compiles no less; one that waits without
using any is stopped at a multiple of it.

One thread polls the watched runs a few times a second. Watching a run costs two updates of a
dictionary, so a thousand short runs per second can be watched.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from ferryvm.deadline import Deadline
from ferryvm.machine.control import ControlBlock

PATIENCE = 60.0
"""Default time limit of a run, in seconds of processor time."""

WAITING = 3
"""The time limit by the clock, as a multiple of that of processor time. A campaign ends workers
without progress later."""

_LOOKS = 0.1
"""Seconds between two polls."""


class Watch:
    """One run that is watched."""

    def __init__(self, control: ControlBlock, seconds: float) -> None:
        self.control = control
        self._deadline = Deadline(WAITING * seconds)
        self._most = time.process_time() + seconds
        self.has_barked = False
        """True if the time was over before the run returned."""

    def look(self) -> None:
        """Set the interrupt flag if the time is over."""
        if self._deadline.is_over or time.process_time() >= self._most:
            self.has_barked = True
            self.control.interrupt = 1


_watches: dict[int, Watch] = {}
_thread: threading.Thread | None = None
_starting = threading.Lock()


def _look_around() -> None:
    while True:
        time.sleep(_LOOKS)
        for watch in list(_watches.values()):
            watch.look()


@contextlib.contextmanager
def watched(control: ControlBlock, seconds: float = PATIENCE) -> Iterator[Watch]:
    """While active, the interrupt flag is set when the time is over; the watch records that."""
    global _thread
    if _thread is None or not _thread.is_alive():  # it does not live on in a forked child
        with _starting:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(target=_look_around, name="watchdog", daemon=True)
                _thread.start()
    watch = Watch(control, seconds)
    _watches[id(watch)] = watch
    try:
        yield watch
    finally:
        del _watches[id(watch)]
