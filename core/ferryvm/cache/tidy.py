# SPDX-License-Identifier: Apache-2.0
"""Removal of old entries, once a day, and of temporary files of killed writers."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from collections.abc import Iterator

from ferryvm import pattern
from ferryvm.atomic_file import LEFTOVERS

DAY = 86400.0
"""Seconds. The time of the last read is recorded once a day, so ages are exact to a day."""
_RETENTION = 90 * DAY
"""Seconds that an entry remains after its last read."""
_MOST_BYTES = 8 << 20
"""The limit of the entries in one folder, in bytes. Beyond it, a quarter of the limit becomes free,
too."""
_LONGEST_WRITE = 3600.0
"""Seconds after which a temporary file counts as abandoned."""
_TIDIED = "last-tidied"
"""A file whose modification time is that of the last removal."""

# Only entries may be removed: a user may name a directory that has other files, too.
KEY_DIGITS = 32
"""Digits of a key in a file's name: enough that keys never share them."""
_FILE = pattern.lazy(rf"[A-Za-z0-9_.-]+-[0-9a-f]{{{KEY_DIGITS}}}\.bin")


def tidy(folder: int) -> None:
    """Remove old entries from an open folder, and the least recently read ones if it is too full.

    Other processes may do so at the same time, and may read or store the same entries: a reader has
    the whole entry, and an entry that is removed while it is stored is built again.
    """
    now = time.time()
    with contextlib.suppress(OSError):
        if abs(now - os.stat(_TIDIED, dir_fd=folder, follow_symlinks=False).st_mtime) < DAY:
            return
    with contextlib.suppress(OSError):
        retained = sorted(_retained(folder, now))
        free = _MOST_BYTES - sum(size for _, size, _ in retained)
        if free < 0:
            for _, size, name in retained:
                if free >= _MOST_BYTES // 4:
                    break
                free += size if _remove(name, folder) else 0
        _stamp(folder)


def _retained(folder: int, now: float) -> Iterator[tuple[float, int, str]]:
    """The time of the last read of each entry, its bytes and its name, without entries that are too
    old."""
    with os.scandir(folder) as files:
        for file in files:
            is_entry = _FILE.fullmatch(file.name) is not None
            if not is_entry and not fnmatch.fnmatchcase(file.name, LEFTOVERS):
                continue
            try:
                found = file.stat(follow_symlinks=False)
            except OSError:
                continue
            if now - found.st_mtime > (_RETENTION if is_entry else _LONGEST_WRITE):
                _remove(file.name, folder)
            elif is_entry:
                yield found.st_mtime, found.st_size, file.name


def _stamp(folder: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(_TIDIED, flags, 0o600, dir_fd=folder)
    try:
        os.utime(descriptor)
    finally:
        os.close(descriptor)


def _remove(name: str, folder: int) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False  # it is a folder, or was removed
    return True
