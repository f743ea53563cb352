# SPDX-License-Identifier: Apache-2.0
"""Limits of time: how long something may take, and how much of that is left.

Time is the system's monotonic clock, so that a clock that is set changes no limit. A process that
stood still (a suspended machine) has used up its time like any other; who wants to forgive that
counts looks instead.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from ferryvm.errors import FerryError

__all__ = ["Deadline", "seconds_from"]


class Deadline:
    """The moment at which something is given up."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float | None) -> None:
        """`seconds`: from now on; None: never."""
        self._at = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds to it: 0 or less once it is over."""
        return self._at - time.monotonic()

    @property
    def is_over(self) -> bool:
        """True from that moment on."""
        return time.monotonic() >= self._at


def seconds_from(variable: str, usual: float, error: Callable[[str], FerryError]) -> float:
    """The limit that a variable of the environment sets; `usual` where it is not set.

    Raises what `error` makes of a message where it is no number above 0.
    """
    text = os.environ.get(variable, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise error(f"{variable}={text} is not a number of seconds above 0")
    return seconds
