# SPDX-License-Identifier: Apache-2.0
"""Notices: lines in the log of `logging`, which is loaded with the first of them.

    Log("ferryvm.cache") ── info, warning ──> logging.getLogger("ferryvm.cache")
                                                   └── deliver(say): ──> say(line), from INFO on

Most runs log nothing, and `logging` takes 3 ms to load.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

_NAME = "ferryvm"

_lock = threading.Lock()
_say: Callable[[str], None] | None = None
"""The function that gets lines as soon as `logging` is there."""


class Log:
    """A logger by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self, message: str, *values: object) -> None:
        """Log a line that is no fault."""
        load()
        import logging

        logging.getLogger(self._name).info(message, *values, stacklevel=2)

    def warning(self, message: str, *values: object) -> None:
        """Log a line about a fault that the caller has dealt with."""
        load()
        import logging

        logging.getLogger(self._name).warning(message, *values, stacklevel=2)


def deliver(say: Callable[[str], None]) -> None:
    """Give each line of this package's loggers to a function, too."""
    global _say
    _say = say
    if "logging" in sys.modules:
        load()


def load() -> None:
    """Load `logging`, and deliver. Called before code of others logs under this package's name."""
    global _say
    with _lock:
        if _say is not None:
            _attach(_say)
            _say = None


def _attach(say: Callable[[str], None]) -> None:
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    log = logging.getLogger(_NAME)
    log.addHandler(Handler())
    log.setLevel(logging.INFO)
