# SPDX-License-Identifier: Apache-2.0
"""The end of the process: by a signal at any time, or after a command.

    begin() ─ loading ─────────> running ──────────────> ending ──> os._exit
              a signal: at once   KeyboardInterrupt,      a signal: at once
                                  a second one: at once

SIGINT is told in one line, with exit code 130. After SIGTERM or SIGHUP, when what has to be written
is written, the process dies by that signal, so that whoever started it sees it. A signal that was
ignored when the process began stays ignored. What is loaded before `begin` is next to nothing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has only `signal`, which takes ms to load
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

SIGINT: int = _signal.SIGINT
ENDING: tuple[int, ...] = (_signal.SIGTERM, _signal.SIGHUP)

came: list[int] = []
"""The signals that have come, oldest first."""

_phase = "loading"
_most = 1
"""Signals that a command may deal with itself."""
_saves_state = False
"""True if something is to be written before a program's end by a signal."""
_is_waiting = False
"""True while a program waits until what it prints can be written."""


class StoppedWaiting(KeyboardInterrupt):
    """A signal came while a program waited to print: it stands at that call."""


def begin() -> None:
    """Take the signals; descriptors 0 to 2 are there from now on."""
    for number in (SIGINT, *ENDING):
        if _signal.getsignal(number) not in (_signal.SIG_IGN, None):
            _signal.signal(number, _on_signal)
    _open_standard()


def _open_standard() -> None:
    """Open what is closed of descriptors 0 to 2, before any other file gets their numbers.

    On what was closed nothing can be written: standard output fails, as with coreutils.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, mode)  # the lowest number that is free
            if opened != descriptor:
                os.close(opened)
            os.set_inheritable(descriptor, True)
    if sys.stdout is None:  # Python's answer to a closed one: then nobody would miss the output
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the process's


def run() -> None:
    """Loading is over: from now on a signal is a KeyboardInterrupt."""
    global _phase
    from ferryvm import process

    stopping = frozenset([SIGINT, *ENDING])
    process.take(process.Owner(True, loading, stopping, heard, lambda: bool(came)))
    _phase = "running"


def loading() -> AbstractContextManager[None]:
    """While active, our own code is imported: in the middle of that a signal ends the process at
    once, since an extension module makes anything of a KeyboardInterrupt, or nothing."""
    import contextlib

    @contextlib.contextmanager
    def active() -> Iterator[None]:
        global _phase
        before, _phase = _phase, "loading"
        try:
            yield
        finally:
            _phase = before

    return active()


def be_patient() -> None:
    """The command deals with a second KeyboardInterrupt itself."""
    global _most
    _most = 2


def forget() -> None:
    """The command has dealt with Ctrl-C, and goes on."""
    if all(number == SIGINT for number in came):
        came.clear()


def keep_state() -> None:
    """A program that a signal stops has something to write first."""
    global _saves_state
    _saves_state = True


def wait_to_write(ready: Callable[[], object]) -> None:
    """Call what returns when a program's output can be written. Raises StoppedWaiting for a signal
    that has come or comes meanwhile."""
    global _is_waiting
    _is_waiting = True
    try:
        if came:
            raise StoppedWaiting
        ready()
    finally:
        _is_waiting = False


def heard(number: int) -> None:
    """A signal came while a program ran, which is being stopped."""
    came.append(number)
    if len(came) > _most:
        at_once(number)
    if _is_waiting:
        raise StoppedWaiting
    if number != SIGINT and not _saves_state:
        raise KeyboardInterrupt  # it may be in a host call that takes long


def _on_signal(number: int, _frame: object) -> None:
    came.append(number)
    if _phase in ("loading", "ending") or len(came) > _most:
        at_once(number)
    if _phase == "running":
        raise KeyboardInterrupt


def deferred() -> AbstractContextManager[None]:
    """While active, something is written: a first signal takes effect afterwards."""
    import contextlib

    @contextlib.contextmanager
    def active() -> Iterator[None]:
        global _phase
        before, _phase = (_phase, len(came)), "writing"
        try:
            yield
        finally:
            _phase = before[0]
        if len(came) > before[1]:
            raise KeyboardInterrupt

    return active()


def ending_signal() -> int:
    """SIGTERM or SIGHUP if it is to end the process; else 0."""
    return next((number for number in came if number != SIGINT), 0)


def at_once(number: int) -> None:
    """End the process by a signal that came."""
    durable = sys.modules.get("ferryvm.atomic_file")
    if durable is not None:
        durable.remove_unfinished()
    if number == SIGINT:
        say("interrupted")
        os._exit(130)
    die(number)


def say(text: str) -> None:
    """Write a line on standard error, past all buffers."""
    import contextlib

    with contextlib.suppress(OSError):  # nobody reads it
        os.write(2, f"ferry: {text}\n".encode())


def die(number: int) -> None:
    """End the process by the signal itself."""
    _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # it has no effect on the first process of a container


def end(code: int) -> None:
    """End the process after a command. What runs in other threads is not waited for, be it a
    compiler (which Python's own end would take memory from) or a plugin's."""
    global _phase
    _phase = "ending"
    import atexit
    import contextlib

    compilation = sys.modules.get("ferryvm.engine.compilation")
    if compilation is not None:
        compilation.abandon()
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(code)  # whoever looks on wants to write what it saw
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or nobody reads it
            stream.flush()
    if ending_signal():
        die(ending_signal())
    os._exit(code)
