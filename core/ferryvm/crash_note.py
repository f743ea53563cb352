# SPDX-License-Identifier: Apache-2.0
"""Notes on disk of code that is being loaded: who ended the process is known to the next one.

    noted("loading plugin x")     a locked file ──> load ──> the file is removed
    left_behind()                 files that nobody has locked: their processes ended meanwhile

The lock is the kernel's (flock): it goes when the process does, by `os._exit`, a crash or SIGKILL,
and no number of a process can be another one's. Processes may do so at once; each note is told
once.
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
    import platformdirs  # who has no plugins needs none of this

    return Path(platformdirs.user_state_dir("ferryvm")) / "loading"


@contextlib.contextmanager
def noted(what: str) -> Iterator[None]:
    """While active, a note says `what` goes on; where none can be written nothing does."""
    try:
        descriptor, path = _write(what)
    except OSError:  # it only helps to find out about faults: no reason to fail
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
    """A locked file that is seen only once it is locked."""
    import tempfile  # who has no plugins needs none of this

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
    """The text of a note whose process has ended, which is removed; else nothing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = os.read(descriptor, _MOST_BYTES).decode(errors="replace")
        os.unlink(path)  # of several that look at once, one has the lock and one unlinks
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return "" if path.name.startswith(_NEW) else one_line(text)
