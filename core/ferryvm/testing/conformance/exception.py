# SPDX-License-Identifier: Apache-2.0
"""Exceptions of a backend, for its author: type, whole message, and position in the backend's code.

A backend may raise anything, SystemExit and KeyboardInterrupt too, and has failed then. Only an
actual Ctrl-C does not count as the backend's.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import ferryvm

_CORE = str(Path(ferryvm.__file__).parent)
_MOST_FRAMES = 4

_heard = threading.Event()
"""Set when the process gets a SIGINT while `listening`."""


def is_foreign(file: str) -> bool:
    """True if a source file is outside of the package ferryvm."""
    return not file.startswith(_CORE)


def describe(error: BaseException) -> str:
    """An exception, its message and the innermost frames outside ferryvm, innermost first."""
    head = "".join(traceback.format_exception_only(error)).rstrip()
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames if is_foreign(frame.filename)] or frames
    places = [
        f"at {one.filename}:{one.lineno}, {one.name}" for one in shown[: -_MOST_FRAMES - 1 : -1]
    ]
    return "\n".join((f"raises {head}", *places))


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """While active, an actual Ctrl-C is distinguished from a KeyboardInterrupt that a backend
    raises."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return
    handler = previous

    def hear(number: int, frame: FrameType | None) -> None:
        _heard.set()
        handler(number, frame)

    _heard.clear()
    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def raise_if_pressed(error: BaseException) -> None:
    """Raise a KeyboardInterrupt again that comes from a Ctrl-C."""
    if isinstance(error, KeyboardInterrupt) and _heard.is_set():
        raise error
