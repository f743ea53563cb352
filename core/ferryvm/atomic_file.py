# SPDX-License-Identifier: Apache-2.0
"""Files that survive kill -9: a reader sees the old content or the new, never a part of one."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

PREFIX, SUFFIX = ".ferry-", ".part"
"""The prefix and suffix of the names of temporary files."""

_unfinished: set[str] = set()
"""Temporary files that this process is writing."""

LEFTOVERS = f"{PREFIX}*{SUFFIX}"
"""Pattern of the temporary files that a process leaves if it is killed during a write."""


def replace_file(path: Path, *content: bytes | memoryview) -> None:
    """Make `content`, one part after another, the content of `path`.

    Raises OSError. After any exception, Ctrl-C included, the old content remains.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:  # a device or a pipe: replacing it would destroy it
            _write(file, content)
        return
    path = Path(os.path.realpath(path))  # follow a link, as a plain write would
    name = os.path.join(path.parent, temporary_name())
    _unfinished.add(name)
    try:
        with _created(name) as file:
            _write(file, content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        remove_temporary(name)
        raise
    finally:
        _unfinished.discard(name)


def temporary_name() -> str:
    """A new name for a temporary file, without a folder. If it is in the folder of the file that it
    will replace, renaming is atomic."""
    return f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}"


def _created(name: str) -> BinaryIO:
    """The file of a new name. The caller must remove it after any exception: unlike `tempfile`,
    this handles a lack of memory after the file was created."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(name, flags, 0o600), "wb")


def remove_temporary(name: str, parent: int | None = None) -> None:
    """Remove a temporary file, if it exists, even if memory is short for a moment.

    `parent`: descriptor of the folder that the name is in; None: the name is a whole path.
    """
    for _ in range(2):
        try:
            os.unlink(name, dir_fd=parent)
        except MemoryError:
            continue
        except OSError:
            pass
        return


def remove_unfinished() -> None:
    """Remove the unfinished temporary files, before the process ends at once."""
    for name in tuple(_unfinished):
        remove_temporary(name)


_AT_ONCE = 1 << 24
"""Bytes that are written at a time: signals are handled between two such chunks."""


def _write(file: BinaryIO, content: Iterable[bytes | memoryview]) -> None:
    for part in content:
        view = memoryview(part)
        file.writelines(view[start : start + _AT_ONCE] for start in range(0, len(view), _AT_ONCE))


def probe_file(path: Path) -> None:
    """Raise the OSError that replacing the file would raise, as far as that is known in advance."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        path.open("ab").close()
        return
    name = os.path.join(os.path.dirname(os.path.realpath(path)), temporary_name())
    try:
        _created(name).close()
    finally:
        remove_temporary(name)


def why_not_writable(folder: Path) -> str:
    """The reason that no file can be created in a folder, which is created if it is missing; empty
    if one can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe_file(folder / "any")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
