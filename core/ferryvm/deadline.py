# SPDX-License-Identifier: Apache-2.0
"""Deadlines: time limits, and the time that is left.

Time is the system's monotonic clock, so setting the clock changes no limit. The time of a stopped
process or a suspended machine counts; code that must not count it counts polls instead.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from ferryvm.errors import FerryError

__all__ = ["Deadline", "seconds_from"]


class Deadline:
    """The time at which an operation is given up."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float | None) -> None:
        """`seconds`: from now on; None: never."""
        self._at = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """Seconds until the deadline: 0 or less after it."""
        return self._at - time.monotonic()

    @property
    def is_over(self) -> bool:
        """True after the deadline."""
        return time.monotonic() >= self._at


def seconds_from(variable: str, usual: float, error: Callable[[str], FerryError]) -> float:
    """The limit in an environment variable, in seconds; `usual` if it is not set.

    Raises `error(message)` if it is not a number above 0.
    """
    text = os.environ.get(variable, "")
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise error(f"{variable}={text} is not a number of seconds above 0")
    return seconds
