# SPDX-License-Identifier: Apache-2.0
"""The owner of this process: the `ferry` command, which handles signals, or a user of the library.
The defaults are right for a library. A child process belongs to its parent."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from ferryvm.named_tuple import NamedTuple


class Owner(NamedTuple):
    """The owner's rules for signals of this process."""

    is_command: bool = False
    """True if it is the command: then changes and output of plugins may be undone or redirected."""
    loading: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Context in which our own code is imported."""
    stopping: frozenset[int] = frozenset([signal.SIGINT])
    """Signals that stop a run."""
    on_signal: Callable[[int], None] | None = None
    """Called with each of them that comes during a run, in the main thread as soon as Python code
    runs there; it may raise KeyboardInterrupt."""
    has_come: Callable[[], bool] = lambda: True
    """True if a KeyboardInterrupt may come from a signal."""


owner = Owner()


def take(by: Owner) -> None:
    """Set the owner of this process."""
    global owner
    owner = by


def end_by_ctrl_c() -> None:
    """End this process with Python's exit code for Ctrl-C, without the rest of Python's exit, which
    may crash while a compiler works."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or have no reader
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""

_LOOK = 0.2
"""Seconds between two checks of this process's parent."""


def end_with_parent(parent: int, clean_up: Callable[[], object] | None = None) -> None:
    """Make this process end soon after its parent, process `parent`, however that ends.

    `clean_up` is called before. Without it Linux ends the process itself, at once, also when the
    thread that started this process ends: that thread must wait for it. Otherwise a thread checks
    the parent, and native code that holds Python's interpreter lock delays it.
    """
    if clean_up is None and sys.platform == "linux":
        import ctypes

        # prctl(2); LLVM holds Python's interpreter lock while it compiles.
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK)
        try:
            if clean_up is not None:
                clean_up()
        finally:
            os._exit(1)

    threading.Thread(target=watch, name="ferryvm-parent", daemon=True).start()
