# SPDX-License-Identifier: Apache-2.0
"""The owner of this process: the `ferry` command, which deals with signals, or a user of the
library. What nobody has said is as a library has to assume. A child process is its parent's."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple


class Owner(NamedTuple):
    """The owner's rules for signals of this process."""

    is_command: bool = False
    """It is the command's: what plugins print and change in it may be undone."""
    loading: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Context in which our own code is imported."""
    stopping: frozenset[int] = frozenset([signal.SIGINT])
    """Signals that stop a run."""
    heard: Callable[[int], None] | None = None
    """Told of each of them that comes during a run, in the main thread as soon as Python code runs
    there; it may raise KeyboardInterrupt."""
    has_come: Callable[[], bool] = lambda: True
    """True if a KeyboardInterrupt may be a signal's."""


owner = Owner()


def take(by: Owner) -> None:
    """Set the owner of this process."""
    global owner
    owner = by


_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of linux/prctl.h."""

_LOOK = 0.2
"""Seconds between two looks at whose child this process is."""


def end_with_parent(parent: int, clean_up: Callable[[], object] | None = None) -> None:
    """Make this process end soon after its parent, process `parent`, however that ends.

    `clean_up` is called before. Without one Linux does it itself, and at once, where the thread
    that started this process ends: it has to wait for it. Elsewhere a thread looks at the parent,
    which native code delays that holds Python's interpreter lock.
    """
    if clean_up is None and sys.platform == "linux":
        import ctypes

        # prctl(2); LLVM compiles with Python's interpreter lock in its hands.
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
