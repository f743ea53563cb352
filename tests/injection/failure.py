# SPDX-License-Identifier: Apache-2.0
"""Which calls fail, and how: by the shim in C, and Python's own allocations."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import functools
import shutil
import subprocess
from pathlib import Path

SHIM = Path(__file__).with_name("shim.c")
READS, WRITES, NAMES, MEMORY, STARTS, OBJECTS = 1, 2, 4, 8, 16, 32
"""Kinds of calls, as in the shim; `OBJECTS`: Python's own allocations, which raise MemoryError."""
SHORT = -1
"""In place of an error: half of the bytes are moved."""
NEVER = 1 << 60


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error of calls of some kinds."""

    name: str
    error: int
    kinds: int
    lasts: bool
    """From the k-th call on, every one fails; else the k-th alone."""


FAILURES = {
    f.name: f
    for f in (
        Failure("disk full", errno.ENOSPC, WRITES | NAMES, lasts=True),
        Failure("disk full once", errno.ENOSPC, WRITES | NAMES, lasts=False),
        Failure("disk broken", errno.EIO, READS | WRITES | NAMES, lasts=True),
        Failure("disk broken once", errno.EIO, READS | WRITES | NAMES, lasts=False),
        Failure("interrupted", errno.EINTR, READS | WRITES | NAMES, lasts=False),
        Failure("short", SHORT, READS | WRITES, lasts=False),
        Failure("no large memory", errno.ENOMEM, MEMORY, lasts=True),
        Failure("no large memory once", errno.ENOMEM, MEMORY, lasts=False),
        Failure("no descriptors", errno.EMFILE, NAMES | STARTS, lasts=True),
        Failure("no small memory once", errno.ENOMEM, OBJECTS, lasts=False),
    )
}


def built(folder: Path) -> Path | None:
    """The shim as a shared object; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "shim.so"
    command = [compiler, "-O1", "-shared", "-fPIC", str(SHIM), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


@functools.cache
def _shim() -> ctypes.CDLL:
    shim = ctypes.CDLL(None)  # it was loaded before all others
    shim.ferry_arm.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int)
    shim.ferry_disarm.restype = ctypes.c_long
    shim.ferry_exempt.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    return shim


def leave_alone(*libraries: str) -> None:
    """Refuse no memory to libraries: LLVM ends the process then, which nobody can mend here."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    for library in libraries:
        places = [line.split()[0].split("-") for line in lines if library in line]
        if places:
            _shim().ferry_exempt(int(places[0][0], 16), int(places[-1][1], 16))


def arm(failure: Failure, call: int) -> None:
    """Have the k-th call from now on fail."""
    if failure.kinds & OBJECTS:
        _shim().ferry_count_objects()
    _shim().ferry_arm(call, failure.error, failure.kinds, failure.lasts)


def disarm() -> int:
    """Have no more calls fail; how many of these kinds there were."""
    return int(_shim().ferry_disarm())
