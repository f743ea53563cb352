# SPDX-License-Identifier: Apache-2.0
"""Calls of foreign code: its exceptions are wrapped, and its output is redirected.

    with contained("load plugin x"):      raises        ──> ForeignError, one line
        ...                               prints        ──> standard error
                                          Ctrl-C        ──> InterruptedIn, which says where

In the process of the `ferry` command, `unchanged` undoes an import's changes of process state. This
is not isolation: malicious code has all rights of the process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from ferryvm import process
from ferryvm.errors import FerryError
from ferryvm.failure import described, is_ctrl_c, is_signals


class ForeignError(FerryError):
    """Foreign code raised an exception; the message has its type, text and place."""


class InterruptedIn(KeyboardInterrupt):
    """Ctrl-C interrupted foreign code; the message says which."""


@contextlib.contextmanager
def contained(doing: str, *let_through: type[FerryError]) -> Iterator[None]:
    """Run foreign code. `doing`: a description of the call, such as "loading plugin x".

    Raises ForeignError for any exception, including SystemExit and a KeyboardInterrupt that the
    code raises, except for `let_through` and what signal handlers raise, and InterruptedIn on
    Ctrl-C.
    """
    try:
        with _printing_aside():
            yield
    except GeneratorExit:  # the block was left by an exception that came as it ended
        raise
    except BaseException as error:
        if issubclass(type(error), (InterruptedIn, *let_through)):
            raise
        if is_ctrl_c(error):
            raise InterruptedIn(f"interrupted while {doing}") from None
        if is_signals(error):
            raise
        raise ForeignError(described(error)) from error


# --- prints ---------------------------------------------------------------------------------


class _Stdout:
    """A stream: standard output in threads that run ferry's code, standard error in threads that
    run foreign code."""

    def __init__(self, own: TextIO) -> None:
        self._own, self._depth = own, threading.local()

    def turn(self, by: int) -> None:
        """Record that this thread enters (1) or leaves (-1) foreign code."""
        self._depth.value = getattr(self._depth, "value", 0) + by

    def __getattr__(self, name: str) -> Any:
        aside = getattr(self._depth, "value", 0) > 0 and sys.stderr is not None
        return getattr(sys.stderr if aside else self._own, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)


@contextlib.contextmanager
def _printing_aside() -> Iterator[None]:
    """Redirect this thread's prints to standard error: standard output is the program's."""
    if not process.owner.is_command or sys.stdout is None:
        yield
        return
    found: object = sys.stdout
    split = found if type(found) is _Stdout else _Stdout(cast(TextIO, found))
    sys.stdout = cast(TextIO, split)
    split.turn(1)
    try:
        yield
    finally:
        split.turn(-1)


# --- the process ----------------------------------------------------------------------------

_SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGTSTP", "SIGCONT", "SIGCHLD")
    if hasattr(signal, name)
)


def _restored_locale(before: str) -> None:
    import _locale

    _locale.setlocale(_locale.LC_ALL, before)


def _locale_now() -> str:
    import _locale

    return _locale.setlocale(_locale.LC_ALL, None)


def _descriptor_now() -> int:
    found = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(found, warn_on_full_buffer=False)
    return found


def _folder_now() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed and cannot be restored
        return ""


_ATTRIBUTES: tuple[tuple[str, Any, str], ...] = (
    ("sys.stdin", sys, "stdin"),
    ("sys.stdout", sys, "stdout"),
    ("sys.stderr", sys, "stderr"),
    ("sys.excepthook", sys, "excepthook"),
    ("sys.unraisablehook", sys, "unraisablehook"),
    ("threading.excepthook", threading, "excepthook"),
)

_SETTINGS: tuple[tuple[str, Callable[[], Any], Callable[[Any], object]], ...] = (
    ("the working directory", _folder_now, os.chdir),
    ("the recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    ("the locale", _locale_now, _restored_locale),
)
"""Settings that are restored in any thread: name, getter, setter."""


def unchanged(changed: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
    """Undo changes of process state that foreign code makes while it is loaded.

    `changed` is called with each, such as "the working directory". Changes of the environment and
    of modules, started threads and a library's own state are not undone.
    """
    return _unchanged(changed) if process.owner.is_command else contextlib.nullcontext()


@contextlib.contextmanager
def _unchanged(changed: Callable[[str], None]) -> Iterator[None]:
    is_main = threading.current_thread() is threading.main_thread()
    attributes = [getattr(holder, name) for _, holder, name in _ATTRIBUTES]
    settings = [read() for _, read, _ in _SETTINGS]
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    descriptor = _descriptor_now() if is_main else -1
    filters = list(warnings.filters)
    try:
        yield
    finally:
        for (what, holder, name), before in zip(_ATTRIBUTES, attributes, strict=True):
            if getattr(holder, name) is not before and type(getattr(holder, name)) is not _Stdout:
                setattr(holder, name, before)
                changed(what)
        for (what, read, put), value in zip(_SETTINGS, settings, strict=True):
            if value and read() != value:
                with contextlib.suppress(OSError):  # the folder was removed
                    put(value)
                changed(what)
        if is_main:
            for number, handler in zip(_SIGNALS, handlers, strict=True):
                if handler is not None and signal.getsignal(number) != handler:
                    signal.signal(number, handler)
                    changed(f"the handler of {signal.Signals(number).name}")
            if _descriptor_now() != descriptor:
                signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
                changed("the descriptor that signals wake up")
        others = [one for one in warnings.filters if one in filters or one[0] != "error"]
        if len(others) < len(warnings.filters):
            warnings.filters[:] = others  # type: ignore[index]  # a list, which typeshed hides
            warnings._filters_mutated()  # type: ignore[attr-defined]  # caches ask its version
            changed("the warnings filter")
