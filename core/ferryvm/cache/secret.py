# SPDX-License-Identifier: Apache-2.0
"""The user's secret, which authenticates entries as this user's.

    STATE/ferryvm/cache-key      32 random bytes │ SHA-256 of them

It is in the user's state directory (on Linux ~/.local/state), never in the cache, so write access
to the cache suffices to remove entries but not to add any. It is created when it is first needed,
and again if it is damaged or others could read it; older entries are then built again.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from ferryvm.cache import digest, private
from ferryvm.cache.private import NotPrivateError
from ferryvm.notice import Log

_BYTES = 32
_NAME = "cache-key"
_REMEDY = "set XDG_STATE_HOME to a folder of your own that can be written"

_log = Log("ferryvm.cache")


class NoSecretError(Exception):
    """There is no secret and none can be created; the text has the reason and the remedy."""


def path() -> Path:
    """The file of the secret."""
    return private.user_folder(private.UserFolder.STATE) / _NAME


def mac(name: str, key: str, payload: bytes) -> bytes:
    """The MAC that authenticates the payload of that entry, 32 bytes. Raises
    NoSecretError."""
    state = digest.blake2b(key=_secret(path()), digest_size=32, person=b"ferryvm cache")
    for part in (name.encode(), key.encode()):
        state.update(len(part).to_bytes(8, "little") + part)  # unambiguous
    state.update(payload)
    return state.digest()


def is_right(proof: bytes, name: str, key: str, payload: bytes) -> bool:
    """True if the proof is the result of `mac`. Raises NoSecretError."""
    return digest.is_equal(proof, mac(name, key, payload))


@functools.cache
def _secret(file: Path) -> bytes:
    if not file.is_absolute():
        raise NoSecretError(f"cache key: there is no home directory; {_REMEDY}")
    try:
        os.makedirs(file.parent, private.FOLDER_MODE, exist_ok=True)
        with private.folder(str(file.parent), follow=True) as folder:
            private.check_folder(folder)
            return _read(folder, file) or _made(folder, file)
    except NotPrivateError as error:
        raise NoSecretError(f"cache key {file}: its folder: {error}; {_REMEDY}") from None
    except OSError as error:
        raise NoSecretError(f"cache key {file}: {error.strerror}; {_REMEDY}") from None


def _made(folder: int, file: Path) -> bytes:
    secret = os.urandom(_BYTES)
    private.create(folder, _NAME, secret + digest.sha256(secret).digest())
    found = _read(folder, file)  # another process's, if that was first
    if found is None:
        raise NoSecretError(f"cache key {file} is gone as soon as it is made; {_REMEDY}")
    return found


def _read(folder: int, file: Path) -> bytes | None:
    """The secret; None if there is none that is complete and private; another one is removed."""
    try:
        with private.opened(_NAME, folder) as descriptor:
            content = private.content(descriptor, 2 * _BYTES)
        secret, checksum = content[:_BYTES], content[_BYTES:]
        if digest.sha256(secret).digest() == checksum:
            return secret
        reason = "it is damaged"
    except FileNotFoundError:
        return None
    except NotPrivateError as error:
        reason = str(error)
    _log.warning("cache key %s is made anew: %s; so is what it was used for", file, reason)
    os.unlink(_NAME, dir_fd=folder)
    return None
