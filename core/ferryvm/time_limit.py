# SPDX-License-Identifier: Apache-2.0
"""Time limits for calls of foreign code.

    with limited("loading plugin x"):     comes back      ──> nothing
        ...                               takes longer    ──> TimeLimitError is raised in it
                                          and stays       ──> one line, exit code 2

It is not an abandoned thread, since an import in one would hold import locks, and could not set
signal handlers. SIGALRM interrupts waits and loops of Python; a second thread ends the process if
the code catches the error and continues, or waits in native code.

Limits apply to the main thread of the `ferry` command's process: in other processes signals belong
to the embedder. There is no limit for native code that holds the global interpreter lock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

from ferryvm import process
from ferryvm.deadline import seconds_from
from ferryvm.errors import FerryError

VARIABLE = "FERRYVM_PLUGIN_SECONDS"
"""Environment variable: seconds in place of `SECONDS`."""

SECONDS = 60.0
"""Importing a large library from a slow disk takes some ten."""

_GRACE = 5.0
"""Seconds from the error to the end of the process, at most."""


class TimeLimitError(BaseException):
    """Code exceeded its limit. It is a BaseException, since much code catches Exception."""


_is_active = False
"""True while the main thread is in a block that has a limit."""


def limited(doing: str, remedy: str = "") -> contextlib.AbstractContextManager[None]:
    """Run foreign code with a time limit. `doing` and `remedy`: for the message if the process is
    ended.

    Raises TimeLimitError in that code, and FerryError at once if the variable is not a number of
    seconds. A nested block has the limit of the outer one. If no thread can be started there is no
    limit.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if _is_active or not (process.owner.is_command and is_main):
        return contextlib.nullcontext()
    most = seconds_from(VARIABLE, SECONDS, FerryError)
    return _limited(min(most, threading.TIMEOUT_MAX), doing, remedy)


@contextlib.contextmanager
def _limited(most: float, doing: str, remedy: str) -> Iterator[None]:
    global _is_active
    has_returned = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        if not has_returned.is_set():
            raise TimeLimitError(f"it took longer than {most:g} s, see {VARIABLE}")

    def watch() -> None:
        if has_returned.wait(most):
            return
        signal.pthread_kill(main, signal.SIGALRM)
        if has_returned.wait(min(_GRACE, most)):
            return
        with contextlib.suppress(OSError):
            text = f"{doing} took longer than {most:g} s, and goes on; see {VARIABLE}{remedy}"
            os.write(2, f"ferry: {text}\n".encode())
        os._exit(2)

    main = threading.get_ident()
    before = signal.signal(signal.SIGALRM, stop)
    _is_active = True
    try:
        with contextlib.suppress(RuntimeError, MemoryError):
            threading.Thread(target=watch, name="ferryvm-limit", daemon=True).start()
        yield
    finally:
        has_returned.set()
        _is_active = False
        signal.signal(signal.SIGALRM, before)
