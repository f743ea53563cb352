# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a program runs: a signal becomes the control block's interrupt flag.

Python runs its own signal handlers only between bytecodes of the main thread, which native code
does not reach. The interpreter's C-level handler however writes the signal's number to the wakeup
descriptor at once; a watcher thread reads it there and sets the flag, which backends poll.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from ferryvm.machine.control import ControlBlock


@contextlib.contextmanager
def interruptible(control: ControlBlock) -> Iterator[None]:
    """While active, SIGINT sets `control.interrupt` and does nothing else.

    Only the main thread can take signals: elsewhere, and where SIGINT is ignored, this does
    nothing, and whoever owns the thread sets the flag.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is signal.SIG_IGN:
        yield
        return

    def handle(_signal: int, _frame: FrameType | None) -> None:
        control.interrupt = 1  # reached when Python code runs: the reference backend, host calls

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watcher = threading.Thread(target=_watch, args=(reader, control), daemon=True)
    watcher.start()
    old_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.set_wakeup_fd(old_descriptor)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _watch(reader: int, control: ControlBlock) -> None:
    while numbers := os.read(reader, 64):
        if signal.SIGINT in numbers:
            control.interrupt = 1
