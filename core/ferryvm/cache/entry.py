# SPDX-License-Identifier: Apache-2.0
"""Entries of the cache: one payload each, under a key that covers everything that it depends on."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ferryvm import record
from ferryvm.backend import BackendError
from ferryvm.cache import private, secret
from ferryvm.cache.digest import blake2b
from ferryvm.cache.private import NotPrivateError
from ferryvm.cache.secret import NoSecretError
from ferryvm.cache.tidy import DAY, KEY_DIGITS, tidy
from ferryvm.notice import Log

ENVIRONMENT = "FERRYVM_CACHE_DIR"
"""Environment variable that names the directory of the cache."""
_FORMAT = b"ferryvm\x02"
"""The first bytes of a file; files of the first format started with a checksum."""
_MAC_BYTES = 32
_MOST_BYTES = 256 << 20
"""The largest size of an entry; larger files were not stored by this module."""
_FOLDERS = "0123456789abcdef"
_AS_LETTERS = str.maketrans("_.-", "abc")
_ANOTHER = f"set {ENVIRONMENT} to a folder of your own that can be written"

_log = Log("ferryvm.cache")
_reported: set[str] = set()
"""Messages of this process about an unusable cache, each reported once."""

Fault = Callable[[bytes], str | None]
"""The reason that a payload must not be used; None if it may."""


def directory() -> Path:
    """The folder of the entries."""
    named = os.environ.get(ENVIRONMENT)
    return Path(named) if named else private.user_folder(private.UserFolder.CACHE)


def key(facts: Iterable[str | bytes], sources: Iterable[Path] = ()) -> str:
    """The key for code that depends on these facts, in their order, and on the content of these
    files.

    Only the last part of a file's path counts, so an installation that was moved has the same keys.
    """
    digest = blake2b(digest_size=32)

    def add(kind: str, content: bytes) -> None:
        digest.update(f"{kind}{len(content)}:".encode() + content)  # unambiguous

    for fact in facts:
        add("fact", fact if isinstance(fact, bytes) else fact.encode())
    for source in sources:
        add("name", source.name.encode())
        add("content", source.read_bytes())
    return digest.hexdigest()


def why_not_usable() -> str:
    """The reason that nothing can be stored, `; ` and the remedy; empty if it can. Programs run in
    any case."""
    try:
        secret.mac("", "", b"")
        with _folder(_FOLDERS[0], is_made=True) as folder:
            private.probe(folder)
    except NoSecretError as error:
        return str(error)
    except (NotPrivateError, OSError) as error:
        return _unusable(_FOLDERS[0], error)
    return ""


def _is_name(text: str) -> bool:
    """True for ASCII letters, digits, `_`, `.` and `-`, as `tidy` knows the files of entries."""
    return text.isascii() and text.translate(_AS_LETTERS).isalnum()


def _is_key(text: str) -> bool:
    return len(text) >= KEY_DIGITS and not text.strip(_FOLDERS)


@record.dataclass(frozen=True)
class Entry:
    """A slot in the cache for one payload. Its errors are BackendErrors of one line."""

    name: str
    """The beginning of the file's name, for people who list the directory."""
    key: str
    """The result of `key`."""
    backend: str = ""
    """The backend that errors name first; empty: `name`."""

    def __post_init__(self) -> None:
        if not (_is_name(self.name) and _is_key(self.key)):
            raise BackendError(
                f"cache entry ({self.name!r}, {self.key!r}): a name has letters, digits, '_', '.' "
                "and '-', a key is what ferryvm.cache.key returns"
            )

    @property
    def path(self) -> Path:
        """Its file, which may not exist."""
        return directory() / self.key[0] / self._file

    @property
    def _file(self) -> str:
        return f"{self.name}-{self.key[:KEY_DIGITS]}.bin"

    def read(self, fault: Fault | None = None) -> bytes | None:
        """The payload; None if there is none, or if it is not this user's or has a fault, which is
        reported. Raises BackendError if the cache cannot be read."""
        found, reason = self.inspect(fault)
        if reason:
            _log.warning("cache entry %s is refused and built again: %s", self.path, reason)
        return found

    def inspect(self, fault: Fault | None = None) -> tuple[bytes | None, str]:
        """The payload, and the reason for which it is refused, if it is not this user's or has a
        fault; None and no reason if there is none. Raises BackendError if the cache cannot be
        read."""
        try:
            return self._checked(self._content(), fault), ""
        except (FileNotFoundError, NotADirectoryError):
            return None, ""
        except _NotPrivateFolderError as error:
            raise self._error(_unusable(self.key[0], error)) from None
        except NoSecretError as error:
            raise self._error(str(error)) from None
        except (NotPrivateError, _DamageError) as error:
            return None, str(error)
        except OSError as error:
            raise self._error(
                f"cache entry {self.path} cannot be read: {error.strerror}; "
                f"remove it, or {_ANOTHER}"
            ) from None

    def _content(self) -> bytes:
        """The content of its file; updates the file's time stamp."""
        with _folder(self.key[0]) as folder, private.opened(self._file, folder) as descriptor:
            if time.time() - os.fstat(descriptor).st_mtime > DAY:
                with contextlib.suppress(OSError):  # it can still be read
                    os.utime(descriptor)
            return private.content(descriptor, _MOST_BYTES)

    def _checked(self, content: bytes, fault: Fault | None) -> bytes:
        start = len(_FORMAT) + _MAC_BYTES
        proof, payload = content[len(_FORMAT) : start], content[start:]
        if not content.startswith(_FORMAT):
            raise _DamageError("it is damaged, or of another version")
        if not secret.is_right(proof, self.name, self.key, payload):
            raise _DamageError("it is damaged, or was not stored with this user's key")
        reason = fault(payload) if fault is not None else None
        if reason is not None:
            raise _DamageError(reason)
        return payload

    def store(self, payload: bytes) -> None:
        """Store the payload, replacing an earlier one. Raises BackendError if it cannot be written.

        Once a day, old entries and abandoned temporary files are removed.
        """
        try:
            proof = secret.mac(self.name, self.key, payload)
            with _folder(self.key[0], is_made=True) as folder:
                tidy(folder)  # first, to free space
                private.write(folder, self._file, b"".join((_FORMAT, proof, payload)))
        except NoSecretError as error:
            raise self._error(str(error)) from None
        except (NotPrivateError, OSError) as error:
            raise self._error(_unusable(self.key[0], error)) from None

    def get(self, build: Callable[[], bytes], fault: Fault | None = None) -> bytes:
        """The payload, built and stored if there is none. A failure to store it is reported
        once."""
        found = self.find(fault)
        if found is None:
            found = build()
            self.try_store(found)
        return found

    def find(self, fault: Fault | None = None) -> bytes | None:
        """As `read`; if that raises there is none, and the reason is reported once."""
        try:
            return self.read(fault)
        except BackendError as error:
            _report_once(error)
            return None

    def try_store(self, payload: bytes) -> None:
        """As `store`; if that raises nothing is stored, and the reason is reported once."""
        try:
            self.store(payload)
        except BackendError as error:
            _report_once(error)

    def _error(self, reason: str) -> BackendError:
        return BackendError(f"{self.backend or self.name}: {reason}")


class _DamageError(Exception):
    """The file is not the one that this user stored; the text is the reason."""


class _NotPrivateFolderError(NotPrivateError):
    """The folder, not the file, is accessible to other users."""


@contextlib.contextmanager
def _folder(digit: str, is_made: bool = False) -> Iterator[int]:
    """The descriptor of one of the 16 folders, which belongs to this user alone; `is_made`: create
    it.

    Raises NotPrivateError, OSError.
    """
    path = directory()
    if not path.is_absolute() and ENVIRONMENT not in os.environ:
        raise OSError(errno.ENOENT, "there is no home directory")
    if is_made:
        os.makedirs(path, private.FOLDER_MODE, exist_ok=True)
    with contextlib.ExitStack() as stack:
        above = stack.enter_context(private.folder(str(path), follow=True))
        if is_made:
            with contextlib.suppress(FileExistsError):
                os.mkdir(digit, private.FOLDER_MODE, dir_fd=above)
        try:
            found = stack.enter_context(private.folder(digit, above))
            if private.restrict(found) is not None:
                _restrict_others(above)
        except NotPrivateError as error:
            raise _NotPrivateFolderError(str(error)) from None
        yield found


def _restrict_others(above: int) -> None:
    """Restrict all folders after one that an earlier version left open to others, so that it is
    reported once."""
    for digit in _FOLDERS:
        with contextlib.suppress(OSError, NotPrivateError), private.folder(digit, above) as folder:
            private.restrict(folder)
    _log.warning("cache %s was open to other users; now its folders are not", directory())


def _unusable(digit: str, error: OSError | NotPrivateError) -> str:
    if isinstance(error, NotPrivateError):
        return f"cache folder {directory() / digit} is refused: {error}; {_ANOTHER}"
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = f"make room, or {_ANOTHER}" if is_full else _ANOTHER
    return f"cache {directory()} cannot be used: {error.strerror}; {remedy}"


def _report_once(error: BackendError) -> None:
    message = str(error)
    if message not in _reported:
        _reported.add(message)
        _log.warning("%s; compiled code is not kept", message)
