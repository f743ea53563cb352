# SPDX-License-Identifier: Apache-2.0
"""The end of the process: by a signal at any time, or after a command.

    begin() ─ loading ─────────> running ──────────────> ending ──> os._exit
              a signal: at once   KeyboardInterrupt,      a signal: at once
                                  a second one: at once

SIGINT is reported in one line, with exit code 130. After SIGTERM or SIGHUP the process writes
pending data and then dies by that signal, so that its parent sees the cause. A signal that was
ignored at the start of the process remains ignored. Almost nothing is loaded before `begin`.
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
"""The signals so far, oldest first."""

_phase = "loading"
_most = 1
"""The number of signals that a command may handle itself."""
_saves_state = False
"""True if a program's state is written before a signal ends the process."""
_is_waiting = False
"""True while a program waits for its output to become writable."""


class StoppedWaiting(KeyboardInterrupt):
    """A signal came while a program waited to print; the program is at that call."""


class Interrupted(Exception):  # noqa: N818 - as KeyboardInterrupt
    """A run was interrupted; the message says where."""


def begin() -> None:
    """Install the handlers of signals; descriptors 0 to 2 exist from now on."""
    for number in (SIGINT, *ENDING):
        if _signal.getsignal(number) not in (_signal.SIG_IGN, None):
            _signal.signal(number, _on_signal)
    _open_standard()


def _open_standard() -> None:
    """Open those of the descriptors 0 to 2 that are closed, before another file gets their numbers.

    Writing to one that was closed fails, as with coreutils.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, mode)  # the lowest free number
            if opened != descriptor:
                os.close(opened)
            os.set_inheritable(descriptor, True)
    if sys.stdout is None:  # closed: errors would be lost
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - the process's


def run() -> None:
    """Loading is over: from now on a signal raises KeyboardInterrupt."""
    global _phase
    from ferryvm import process

    stopping = frozenset([SIGINT, *ENDING])
    process.take(process.Owner(True, loading, stopping, record_signal, lambda: bool(came)))
    _phase = "running"


def loading() -> AbstractContextManager[None]:
    """While active, our own code is imported: a signal then ends the process at once, since
    extension modules may turn a KeyboardInterrupt into anything, or ignore it."""
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
    """The command handles a second KeyboardInterrupt itself."""
    global _most
    _most = 2


def forget() -> None:
    """The command has handled Ctrl-C, and continues."""
    if all(number == SIGINT for number in came):
        came.clear()


def save_state_first() -> None:
    """A program that a signal stops has a state to write first."""
    global _saves_state
    _saves_state = True


def wait_to_write(ready: Callable[[], object]) -> None:
    """Call `ready`, which returns when a program's output is writable. Raises StoppedWaiting for a
    signal before or during the call."""
    global _is_waiting
    _is_waiting = True
    try:
        if came:
            raise StoppedWaiting
        ready()
    finally:
        _is_waiting = False


def record_signal(number: int) -> None:
    """Record a signal that stops the running program."""
    came.append(number)
    if len(came) > _most:
        at_once(number)
    if _is_waiting:
        raise StoppedWaiting
    if number != SIGINT and not _saves_state:
        raise KeyboardInterrupt  # it may be in a long host call


def _on_signal(number: int, _frame: object) -> None:
    came.append(number)
    if _phase in ("loading", "ending") or len(came) > _most:
        at_once(number)
    if _phase == "running":
        raise KeyboardInterrupt


def deferred() -> AbstractContextManager[None]:
    """While active, data is written: a first signal takes effect afterwards."""
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
    """SIGTERM or SIGHUP if it must end the process; else 0."""
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

    with contextlib.suppress(OSError):  # it has no reader
        os.write(2, f"ferry: {text}\n".encode())


def die(number: int) -> None:
    """End the process by the signal itself."""
    _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # it has no effect on the first process of a container


def end(code: int) -> None:
    """End the process after a command, without waiting for other threads: a compiler's (whose
    memory Python's regular exit would release) or a plugin's."""
    global _phase
    _phase = "ending"
    import atexit
    import contextlib

    compilation = sys.modules.get("ferryvm.engine.compilation")
    if compilation is not None:
        compilation.abandon()
    if sys.gettrace() is not None or sys.getprofile() is not None:
        sys.exit(code)  # profilers and coverage write their data here
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be closed, or have no reader
            stream.flush()
    if ending_signal():
        die(ending_signal())
    os._exit(code)


def exit_code(given: object) -> int | None:
    """The exit code that a command returned or gave to `sys.exit`; None if it is invalid."""
    if given is None:
        return 0
    return given if type(given) is int and 0 <= given <= 255 else None
