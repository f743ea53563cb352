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
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or previous is signal.SIG_IGN or previous is None:
        yield
        return

    def handle(_signal: int, _frame: FrameType | None) -> None:
        control.interrupt = 1  # reached when Python code runs: the reference backend, host calls

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    old_descriptor = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_watch, args=(reader, control, old_descriptor), daemon=True)
    try:
        signal.signal(signal.SIGINT, handle)
        watcher.start()
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        signal.set_wakeup_fd(old_descriptor)
        os.close(writer)
        if watcher.ident is not None:
            watcher.join()
        os.close(reader)


def _watch(reader: int, control: ControlBlock, old_descriptor: int) -> None:
    """Set the flag on SIGINT; pass other signals on to whoever was told of them before."""
    while numbers := os.read(reader, 64):
        if signal.SIGINT in numbers:
            control.interrupt = 1
        others = bytes(number for number in numbers if number != signal.SIGINT)
        if others and old_descriptor >= 0:
            with contextlib.suppress(OSError):  # full or closed: as the C handler would ignore
                os.write(old_descriptor, others)
