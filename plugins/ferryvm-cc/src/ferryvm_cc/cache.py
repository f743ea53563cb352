# SPDX-License-Identifier: Apache-2.0
"""Shared objects on disk: `cc-KEY.bin` in ferryvm's cache directory, a SHA-256, then the content.

A key covers the C text, what the compiler says of itself, and its flags. An entry is written to a
temporary file and renamed, so a reader sees all of it or none, and two writers do no harm. One that
is damaged is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Iterable, Iterator
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


def key(facts: Iterable[str]) -> str:
    """The key of what depends on these texts."""
    digest = hashlib.sha256()
    for fact in facts:
        encoded = fact.encode()
        digest.update(f"{len(encoded)}:".encode() + encoded)
    return digest.hexdigest()


def path(key: str) -> Path:
    """The file of an entry."""
    return directory() / f"cc-{key[:32]}.bin"


def get(key: str) -> bytes | None:
    """The content of an entry; None where there is none that is whole."""
    file = path(key)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BackendError(
            f"cc: cache entry {file} cannot be read: {error.strerror}; "
            f"remove it, or set {ENVIRONMENT} to another directory"
        ) from None
    checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
    if hashlib.sha256(payload).digest() == checksum:
        return payload
    _log.warning("cache entry %s is damaged and is built again", file)
    return None


def check(key: str) -> None:
    """Raise BackendError if no entry could be stored: before anybody waits for it."""
    with _explained():
        directory().mkdir(parents=True, exist_ok=True)
        probe_file(path(key))


def put(key: str, payload: bytes) -> None:
    """Store an entry. Raises BackendError."""
    with _explained():
        replace_file(path(key), hashlib.sha256(payload).digest() + payload)
    for part in directory().glob(LEFTOVERS):
        with contextlib.suppress(OSError):  # another process may be at it too
            if time.time() - part.stat().st_mtime > _LONGEST_WRITE:
                part.unlink()


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BackendError(
            f"cc: cache {directory()} cannot be used: {error.strerror}; "
            f"set {ENVIRONMENT} to a directory that can be written"
        ) from None
