# SPDX-License-Identifier: Apache-2.0
"""Native code on disk, in the user's cache directory: built once for a machine and a version.

An entry is a file named by its key, a SHA-256 of everything the code depends on: the sources it is
woven from, llvmlite and LLVM, the processor and its features. Entries are written to a temporary
file and renamed, and carry a checksum, so a kill at any moment leaves the old state or the new.

    FERRYVM_CACHE_DIR     names another directory
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs

from ferryvm.backend import BackendError
from ferryvm.durable import LEFTOVERS, probe_file, replace_file

ENVIRONMENT = "FERRYVM_CACHE_DIR"
_CHECKSUM_BYTES = 32
_LONGEST_WRITE = 3600.0
"""Seconds after which a temporary file is nobody's any more."""
_log = logging.getLogger("ferryvm.cache")


def directory() -> Path:
    """Where entries are kept."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named) if named else Path(platformdirs.user_cache_dir("ferryvm"))


def key(facts: Iterable[str], sources: Iterable[Path]) -> str:
    """The key of what depends on these facts and on the content of these files."""
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"{len(fact)}:{fact}".encode())
    for source in sources:
        content = source.read_bytes()
        digest.update(f"{source.name}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def _path(name: str, key: str) -> Path:
    return directory() / f"{name}-{key[:32]}.bin"


def problem(name: str, key: str) -> str | None:
    """Why there can be no entry with that key, None if there is one or one can be stored."""
    path = _path(name, key)
    if path.is_file():
        return None
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe_file(path)
    except OSError as error:
        return (
            f"cache {folder} cannot be used: {error.strerror}; "
            f"set {ENVIRONMENT} to a directory that can be written"
        )
    return None


def get(name: str, key: str, build: Callable[[], bytes]) -> bytes:
    """The entry `name` with that key, built and stored if there is none.

    Raises BackendError if the directory cannot be used. An entry that is damaged is reported to
    the log and built again.
    """
    path = _path(name, key)
    if path.is_file():
        content = _read(path)
        checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() == checksum:
            return payload
        _log.warning("cache entry %s is damaged and is built again", path)
    reason = problem(name, key)  # asked before the build, so that nobody waits for it in vain
    if reason is not None:
        raise BackendError(reason)
    payload = build()
    _remove_leftovers(path.parent)
    try:
        replace_file(path, hashlib.sha256(payload).digest() + payload)
    except OSError as error:
        raise BackendError(f"cache {path.parent} cannot be used: {error.strerror}") from None
    return payload


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BackendError(f"cache entry {path} cannot be read: {error.strerror}") from None


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes left that were killed while they wrote."""
    for part in folder.glob(LEFTOVERS):
        with contextlib.suppress(OSError):  # another process may be at it too
            if time.time() - part.stat().st_mtime > _LONGEST_WRITE:
                part.unlink()
