# SPDX-License-Identifier: Apache-2.0
"""Files and folders that nobody else can have written: checked by descriptor when they are open.

The file behind a path can change between a check and a use, an open file cannot. So each folder is
opened once, without following a link; each file is opened relative to its folder; and owner and
mode are checked on the descriptor.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from ferryvm.atomic_file import remove_temporary, temporary_name

FOLDER_MODE, FILE_MODE = 0o700, 0o600
_OPEN = os.O_RDONLY | os.O_CLOEXEC
_OPEN_FOLDER = _OPEN | os.O_DIRECTORY
_OPEN_FILE = _OPEN | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY  # do not wait for a pipe
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UserFolder(enum.Enum):
    """A user's folder by its purpose: its variable, and its path below the home if that is not
    set (XDG Base Directory Specification)."""

    CACHE = "XDG_CACHE_HOME", ".cache"
    STATE = "XDG_STATE_HOME", ".local/state"


def user_folder(kind: UserFolder) -> Path:
    """A folder of this user for ferryvm; it begins with ~ if there is no home.

    On Linux a variable determines it, elsewhere platformdirs, which gives the same result but takes
    longer to import than this package.
    """
    variable, below = kind.value
    if sys.platform == "linux":
        base, home = os.environ.get(variable, ""), os.environ.get("HOME", "")
        if not base and home.startswith("/"):
            base = os.path.join(home, below)
        if base.startswith("/"):
            return Path(base, "ferryvm")
    import platformdirs

    find = platformdirs.user_cache_dir if kind is UserFolder.CACHE else platformdirs.user_state_dir
    try:
        return Path(find("ferryvm"))
    except RuntimeError:
        return Path("~") / "ferryvm"


class NotPrivateError(Exception):
    """Other users can have written it, or it is not a file or folder; the text is the reason."""


@contextlib.contextmanager
def folder(path: str, parent: int | None = None, *, follow: bool = False) -> Iterator[int]:
    """The descriptor of a folder with any owner; `follow`: the path may end in a link.

    Raises NotPrivateError for a link that is not allowed, OSError.
    """
    flags = _OPEN_FOLDER if follow else _OPEN_FOLDER | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and not follow and _is_link(path, parent):
            raise NotPrivateError("it is a link") from None
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_folder(descriptor: int) -> None:
    """Raise NotPrivateError for a folder that another user owns or can write to."""
    facts = os.fstat(descriptor)
    _check_owner(facts)
    if facts.st_mode & 0o022:
        raise NotPrivateError(f"others can write to it (mode {stat.S_IMODE(facts.st_mode):o})")


def restrict(descriptor: int) -> int | None:
    """Remove others' rights to a folder of this user; its old mode, None if they had no rights.

    Raises NotPrivateError, OSError.
    """
    facts = os.fstat(descriptor)
    _check_owner(facts)
    if not facts.st_mode & 0o077:
        return None
    os.fchmod(descriptor, FOLDER_MODE)
    left = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if left & 0o077:
        raise NotPrivateError(f"its file system leaves it open to others (mode {left:o})")
    return stat.S_IMODE(facts.st_mode)


@contextlib.contextmanager
def opened(name: str, parent: int) -> Iterator[int]:
    """The descriptor of a file that only this user can read or write. Raises NotPrivateError,
    OSError."""
    try:
        descriptor = os.open(name, _OPEN_FILE, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPrivateError("it is a link") from None
        if error.errno == errno.ENXIO:
            raise NotPrivateError("it is no regular file") from None
        raise
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise NotPrivateError("it is no regular file")
        _check_owner(facts)
        if facts.st_mode & 0o077:
            mode = stat.S_IMODE(facts.st_mode)
            raise NotPrivateError(f"it is open to others (mode {mode:o})")
        yield descriptor
    finally:
        os.close(descriptor)


def content(descriptor: int, most: int) -> bytes:
    """The content of a file; of a file with more than `most` bytes, the first `most` and one
    more."""
    pieces, left = [], most + 1
    while left and (piece := os.read(descriptor, min(left, 1 << 24))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def write(parent: int, name: str, content: bytes) -> None:
    """Write a file that belongs to this user alone, replacing an earlier one. Raises OSError."""
    with _written(parent, content) as made:
        os.rename(made, name, src_dir_fd=parent, dst_dir_fd=parent)


def create(parent: int, name: str, content: bytes) -> None:
    """As `write`, but an existing file is not replaced. Raises OSError."""
    with _written(parent, content) as made:
        try:
            os.link(made, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            return
        except OSError:  # the file system has no links
            os.rename(made, name, src_dir_fd=parent, dst_dir_fd=parent)


def probe(parent: int) -> None:
    """Raise the OSError of writing a small file to a folder."""
    with _written(parent, b"probe"):
        pass


@contextlib.contextmanager
def _written(parent: int, content: bytes) -> Iterator[str]:
    """The name of a temporary file with this content, flushed to disk; it is removed at the end."""
    name = temporary_name()
    descriptor = os.open(name, _CREATE, FILE_MODE, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield name
    finally:
        remove_temporary(name, parent)  # unless it was renamed


def _check_owner(facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid():
        raise NotPrivateError(f"it belongs to user {facts.st_uid}, not to user {os.geteuid()}")


def _is_link(path: str, parent: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(path, dir_fd=parent, follow_symlinks=False).st_mode)
    except OSError:
        return False
