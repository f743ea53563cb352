# SPDX-License-Identifier: Apache-2.0
"""Shared objects in this process.

The loader identifies libraries by path, and would give the same variables to two users of one file.
So each library is loaded from a file of its own, which is removed at once: the mapping remains.
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import dataclasses
import itertools
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

from ferryvm import binary
from ferryvm.backend import Activity, BackendError, Code
from ferryvm.ir.c import (
    ACTIVITY,
    CROWDED,
    ENTRIES,
    ENTRY,
    FAILURES,
    INSTRUCTIONS,
    NANOSECONDS,
    STACK,
    UNFINISHED,
)
from ferryvm.machine.host_stack import frame_bytes

_PREFIX = "ferryvm-cc-"
_LONGEST_BUILD = 3600.0
"""Seconds after which a folder counts as abandoned."""
_numbers = itertools.count()


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder for one build. Folders of killed processes are removed as well."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process may be at it too
            facts = left.lstat()
            is_old = time.time() - facts.st_mtime > _LONGEST_BUILD
            if is_old and facts.st_uid == os.getuid() and not left.is_symlink():
                shutil.rmtree(left)
    try:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        raise BackendError(
            f"cc: temporary files cannot be written in {tempfile.gettempdir()}: {error.strerror}; "
            "set TMPDIR to a directory with room for them"
        ) from None


def unique_name() -> str:
    """A file name that no library of this process has had: the loader would take it for that."""
    return f"region-{os.getpid()}-{next(_numbers)}.so"


def fault(content: bytes) -> str | None:
    """The reason that the loader may not be given this shared object from a cache; None if it
    may."""
    return binary.fault(content, binary.ObjectType.SHARED)


class Library:
    """A loaded shared object; it is unloaded with its last reference."""

    def __init__(self, file: Path, culprit: str, remedy: str) -> None:
        """`culprit`: the name of the file for users; `remedy`: the remedy if it is unusable.

        Raises BackendError.
        """
        try:
            self.content = file.read_bytes()
            self._handle = _ctypes.dlopen(str(file), os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            reason = str(error).removeprefix(f"{file}: ")
            if "failed to map" in reason:
                remedy = "set TMPDIR to a directory from which code may be run"
            raise BackendError(f"cc: {culprit} cannot be loaded: {reason}; {remedy}") from None
        self._unload = weakref.finalize(self, _ctypes.dlclose, self._handle)
        self._culprit, self._remedy = culprit, remedy

    def address(self, symbol: str) -> int:
        """Address of a function or variable. Raises BackendError."""
        try:
            return int(_ctypes.dlsym(self._handle, symbol))
        except OSError:
            raise BackendError(f"cc: {self._culprit} has no {symbol}; {self._remedy}") from None


@dataclasses.dataclass(eq=False)
class RegionCode(Code):
    """A loaded region."""

    library: Library
    guards: tuple[int, ...]
    """pc of each guard."""
    functions: int
    """VM functions that it has native ones of."""
    ungrouped: Mapping[int, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.address = self.library.address(ENTRY)
        words = ctypes.c_uint64 * (FAILURES + len(self.guards))
        self._activity = words.from_address(self.library.address(ACTIVITY))
        # Each may have a variant with fewer checks, and shares functions that write frames.
        self._activity[STACK] = frame_bytes(self.library.content, 3 * self.functions + 8)

    def activity(self) -> Activity:
        words = list(self._activity)
        return Activity(
            words[ENTRIES],
            words[NANOSECONDS] * 1e-9,
            words[INSTRUCTIONS],
            {pc: words[FAILURES + number] for number, pc in enumerate(self.guards)},
            crowded=words[CROWDED],
            stack=words[STACK],
            unfinished=words[UNFINISHED],
        )
