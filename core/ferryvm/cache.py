# SPDX-License-Identifier: Apache-2.0
"""What took long to build, on disk, in the user's cache directory: found again by any process.

    entry = Entry(name, key([what, it, depends, on]))      file     K/NAME-KEY.bin
    payload = entry.get(build)                             content  SHA-256 │ payload

An entry never changes: what it depends on is its key, so another version is another entry. It is
written to a temporary file and renamed, and carries a checksum: a kill at any moment leaves the old
state or the new, two writers do no harm, and what is damaged is told and counts as absent.

Entries are in 16 folders, by the first digit of their keys. Once a day a process that stores one
removes from its folder what nobody has read for 90 days, and of more than 8 MiB what was read
longest ago. Of one folder that takes some milliseconds, however full the cache is.

    FERRYVM_CACHE_DIR     names another directory
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fnmatch
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import platformdirs

from ferryvm.backend import BackendError
from ferryvm.durable import LEFTOVERS, probe_file, replace_file

ENVIRONMENT = "FERRYVM_CACHE_DIR"
_CHECKSUM_BYTES = 32
_KEY_DIGITS = 32
"""Of a key, in a file's name: enough that no two keys ever share them."""
_DAY = 86400.0
_KEPT = 90 * _DAY
"""Seconds that an entry stays after it was last read, to a day: that is how often it is noted."""
_MOST_BYTES = 8 << 20
"""Of the entries in one folder. Where there are more, a quarter of these becomes free, too."""
_LONGEST_WRITE = 3600.0
"""Seconds after which a temporary file is nobody's any more."""

# What is removed has to be an entry: a user may name a directory that has other files, too.
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_KEY = re.compile(rf"[0-9a-f]{{{_KEY_DIGITS},}}")
_TIDIED = "last-tidied"
"""A file whose time says when that was done."""
_FILE = re.compile(rf"{_NAME.pattern}-[0-9a-f]{{{_KEY_DIGITS}}}\.bin")

_log = logging.getLogger("ferryvm.cache")
_told: set[str] = set()
"""What this process has said of a cache that cannot be used."""


def directory() -> Path:
    """Where entries are kept."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named) if named else Path(platformdirs.user_cache_dir("ferryvm"))


def key(facts: Iterable[str | bytes], sources: Iterable[Path] = ()) -> str:
    """The key of what depends on these facts, in their order, and on the content of these files.

    Only the last part of a file's path counts, so an installation that was moved has the same keys.
    """
    digest = hashlib.sha256()

    def add(kind: str, content: bytes) -> None:
        digest.update(f"{kind}{len(content)}:".encode() + content)  # no two lists look the same

    for fact in facts:
        add("fact", fact if isinstance(fact, bytes) else fact.encode())
    for source in sources:
        add("name", source.name.encode())
        add("content", source.read_bytes())
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class Entry:
    """A place in the cache for one payload. What it raises is a BackendError of one line."""

    name: str
    """What the file's name begins with, for whoever looks into the directory."""
    key: str
    """What `key` returned."""
    backend: str = ""
    """Whom errors name first; nothing: `name`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or not _KEY.fullmatch(self.key):
            raise BackendError(
                f"cache entry ({self.name!r}, {self.key!r}): a name has letters, digits, '_', '.' "
                "and '-', a key is what ferryvm.cache.key returns"
            )

    @property
    def path(self) -> Path:
        """Its file, whether it is there or not."""
        return directory() / self.key[0] / f"{self.name}-{self.key[:_KEY_DIGITS]}.bin"

    def problem(self) -> str | None:
        """Why it can be neither read nor stored, None if it can: the answer of a `probe`."""
        try:
            self.path.open("rb").close()
        except (FileNotFoundError, NotADirectoryError):
            return self._why_not_stored()
        except OSError as error:
            return self._unreadable(error)
        return None

    def read(self) -> bytes | None:
        """The payload; None if there is none that is whole. Raises if it cannot be read."""
        path = self.path
        try:
            with path.open("rb") as file:
                content = file.read()
                changed = os.fstat(file.fileno()).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._error(self._unreadable(error)) from None
        checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() != checksum:
            _log.warning("cache entry %s is damaged and is built again", path)
            return None
        if time.time() - changed > _DAY:
            with contextlib.suppress(OSError):  # gone, or another user's: it was read all the same
                os.utime(path)
        return payload

    def check(self) -> None:
        """Raise if it could not be stored: asked before the build, lest it be in vain."""
        reason = self._why_not_stored()
        if reason is not None:
            raise self._error(reason)

    def store(self, payload: bytes) -> None:
        """Make it the payload, whatever was there. Raises if it cannot be written.

        Once a day, entries and temporary files that nobody needs are removed.
        """
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _tidy(path.parent)  # first, for the room that it makes
            replace_file(path, hashlib.sha256(payload).digest() + payload)
        except OSError as error:
            raise self._error(_unusable(error)) from None

    def get(self, build: Callable[[], bytes]) -> bytes:
        """The payload, built and stored if there is none. Raises as `read`, `check`, `store` do."""
        found = self.read()
        if found is None:
            self.check()
            found = build()
            self.store(found)
        return found

    def find(self) -> bytes | None:
        """As `read`; what cannot be read counts as absent, too, and is told once."""
        try:
            return self.read()
        except BackendError as error:
            _tell_once(error)
            return None

    def keep(self, payload: bytes) -> None:
        """As `store`, for what can be had without the cache: if it cannot be written that is told
        once."""
        try:
            self.store(payload)
        except BackendError as error:
            _tell_once(error)

    def _why_not_stored(self) -> str | None:
        path = self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            probe_file(path)
        except OSError as error:
            return _unusable(error)
        return None

    def _unreadable(self, error: OSError) -> str:
        return (
            f"cache entry {self.path} cannot be read: {error.strerror}; "
            f"remove it, or set {ENVIRONMENT} to another directory"
        )

    def _error(self, reason: str) -> BackendError:
        return BackendError(f"{self.backend or self.name}: {reason}")


def _unusable(error: OSError) -> str:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = (
        f"make room, or set {ENVIRONMENT} to another directory"
        if is_full
        else f"set {ENVIRONMENT} to a directory that can be written"
    )
    return f"cache {directory()} cannot be used: {error.strerror}; {remedy}"


def _tell_once(error: BackendError) -> None:
    message = str(error)
    if message not in _told:
        _told.add(message)
        _log.warning("%s; compiled code is not kept", message)


def _tidy(folder: Path) -> None:
    """Remove what nobody has read for long, and what killed writers left, once a day.

    Others may be at it, too, and may read or store just what goes: who has read an entry has all of
    it, and one that goes as it is stored is built again.
    """
    now = time.time()
    stamp = folder / _TIDIED
    with contextlib.suppress(OSError):
        if abs(now - stamp.stat().st_mtime) < _DAY:
            return
    with contextlib.suppress(OSError):
        kept = sorted(_kept(folder, now))
        free = _MOST_BYTES - sum(size for _, size, _ in kept)
        if free < 0:
            for _, size, path in kept:
                if free >= _MOST_BYTES // 4:
                    break
                free += size if _remove(path) else 0
        stamp.touch()


def _kept(folder: Path, now: float) -> Iterator[tuple[float, int, str]]:
    """When each entry was last read, its bytes and its path, without what is too old to stay."""
    with os.scandir(folder) as files:
        for file in files:
            is_entry = _FILE.fullmatch(file.name) is not None
            if not is_entry and not fnmatch.fnmatchcase(file.name, LEFTOVERS):
                continue
            try:
                found = file.stat(follow_symlinks=False)
            except OSError:
                continue
            if now - found.st_mtime > (_KEPT if is_entry else _LONGEST_WRITE):
                _remove(file.path)
            elif is_entry:
                yield found.st_mtime, found.st_size, file.path


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False  # another user's
    return True
