# SPDX-License-Identifier: Apache-2.0
"""Whose process this is: the `ferry` command's, which deals with signals, or somebody's who uses the
library. What nobody has said is as a library has to assume."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Owner:
    """What the owner of the process says of signals."""

    is_command: bool = False
    """It is the command's: what plugins print and change in it may be undone."""
    loading: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """What our own code is imported in."""
    stopping: frozenset[int] = frozenset([signal.SIGINT])
    """Signals that stop a run."""
    heard: Callable[[int], None] | None = None
    """Told of each of them that comes during a run, in the main thread as soon as Python code runs
    there; it may raise KeyboardInterrupt."""
    has_come: Callable[[], bool] = lambda: True
    """True if a KeyboardInterrupt may be a signal's."""


owner = Owner()


def take(by: Owner) -> None:
    """Have this process be somebody's."""
    global owner
    owner = by
