# SPDX-License-Identifier: Apache-2.0
"""Native code on disk, in the user's cache directory: built once for a machine and a version.

An entry is a file named by its key, a SHA-256 of everything the code depends on: the sources it is
woven from, llvmlite and LLVM, the processor and its features. Entries are written to a temporary
file and renamed, and carry a checksum, so a kill at any moment leaves the old state or the new.

    FERRYVM_CACHE_DIR     names another directory
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs

from ferryvm.backend import BackendError
from ferryvm.durable import replace_file

ENVIRONMENT = "FERRYVM_CACHE_DIR"
_CHECKSUM_BYTES = 32
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


def get(name: str, key: str, build: Callable[[], bytes]) -> bytes:
    """The entry `name` with that key, built and stored if there is none.

    Raises BackendError if the directory cannot be written. An entry that is damaged is reported
    to the log and built again.
    """
    path = directory() / f"{name}-{key[:32]}.bin"
    try:
        content: bytes | None = path.read_bytes()
    except FileNotFoundError:
        content = None
    except OSError as error:
        raise _unusable(path, error) from None
    if content is not None:
        checksum, payload = content[:_CHECKSUM_BYTES], content[_CHECKSUM_BYTES:]
        if hashlib.sha256(payload).digest() == checksum:
            return payload
        _log.warning("cache entry %s is damaged and is built again", path)
    try:
        # Before the build, so that nobody waits for it in vain.
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise _unusable(path.parent, error) from None
    payload = build()
    try:
        replace_file(path, hashlib.sha256(payload).digest() + payload)
    except OSError as error:
        raise _unusable(path.parent, error) from None
    return payload


def _unusable(path: Path, error: OSError) -> BackendError:
    return BackendError(
        f"cache {path} cannot be used: {error.strerror}; "
        f"set {ENVIRONMENT} to a directory that can be written"
    )
