# SPDX-License-Identifier: Apache-2.0
"""Notes on disk about code that is being loaded, by which the next process knows what ended this
one.

    noted("loading plugin x")     a locked file ──> load ──> the file is removed
    left_behind()                 unlocked files: their processes have ended

The lock is the kernel's (flock): it is released when the process ends, by `os._exit`, a crash or
SIGKILL, and unlike process ids it is never reused. Several processes may do so at once; each note
is reported once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ferryvm.failure import one_line

_NEW = ".new-"
_MOST_BYTES = 1000


def folder() -> Path:
    """The folder of notes: in the user's state directory."""
    import platformdirs  # not needed without plugins

    return Path(platformdirs.user_state_dir("ferryvm")) / "loading"


@contextlib.contextmanager
def noted(what: str) -> Iterator[None]:
    """While active, a note says that `what` is in progress; if no note can be written there is
    none."""
    try:
        descriptor, path = _write(what)
    except OSError:  # notes only help to diagnose faults: no reason to fail
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _write(what: str) -> tuple[int, str]:
    """A locked file that becomes visible only after it is locked."""
    import tempfile  # not needed without plugins

    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, new = tempfile.mkstemp(prefix=_NEW, dir=place)
    path = new.replace(_NEW, "")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, what.encode(errors="replace"))
        os.rename(new, path)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise
    return descriptor, path


def left_behind() -> list[str]:
    """Notes of processes that ended while loading, which were not reported yet."""
    try:
        files = sorted(folder().iterdir())
    except OSError:
        return []
    return list(filter(None, map(_taken, files)))


def _taken(path: Path) -> str:
    """The text of a note whose process has ended, which is removed; empty otherwise."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = os.read(descriptor, _MOST_BYTES).decode(errors="replace")
        os.unlink(path)  # of several readers one has the lock and unlinks
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return "" if path.name.startswith(_NEW) else one_line(text)
