# SPDX-License-Identifier: Apache-2.0
"""The processor that PoCL compiles for, if its LLVM is older than this machine's processor.

PoCL asks LLVM for the processor's name. LLVM calls one that it does not know `generic`, and clang
refuses that name for x86, so that no kernel builds at all (github.com/pocl/pocl/issues/1049; PoCL
has no setting for the name). PoCL 3.0, the newest as a wheel, is of 2022. So the name in its device
is replaced, before anything is built, by that of an older processor all of whose instructions this
one has.

    cl_device_id ─> │ dispatch table │ … │ name of the processor │ …       words of 8 bytes
                                              └─> "generic\\0", 8 bytes of PoCL's own

Invariant: memory is written only where exactly one word of the device points to that string, and
never past its 8 bytes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

_UNKNOWN = b"generic\0"
_DEVICE_BYTES = 1024
"""The name is at 640 in PoCL 3.0; the next device begins at 1,024."""

_HASWELL = frozenset(
    [
        "avx",
        "avx2",
        "bmi1",
        "bmi2",
        "cx16",
        "f16c",
        "fma",
        "fsgsbase",
        "abm",
        "movbe",
        "pclmulqdq",
        "popcnt",
        "rdrand",
        "xsave",
        "xsaveopt",
        "sse4_1",
        "sse4_2",
        "ssse3",
        "lahf_lm",
        "invpcid",
    ]
)
"""Flags of `/proc/cpuinfo` that correspond to the features that clang uses on a `haswell`."""


def is_unknown(version: str, machine: str | None = None) -> bool:
    """True if a device of this CL_DEVICE_VERSION is one of PoCL for an unknown x86 processor."""
    if (machine or platform.machine()) not in ("x86_64", "AMD64"):
        return False
    return re.search(r"\bPoCL\b.*-generic$", version.strip()) is not None


def substitute(flags: Iterable[str]) -> str:
    """The LLVM name of the best processor whose instructions are all among these flags."""
    return "haswell" if frozenset(flags) >= _HASWELL else "x86-64"


def processor_flags(path: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """The first processor's flags from Linux; none if they cannot be read."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:\s*(.*)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


def replace_name(device: int, name: str) -> bool:
    """True if PoCL's device at this address now has that processor's name."""
    text = name.encode() + b"\0"
    assert len(text) <= len(_UNKNOWN)
    try:
        words = memoryview(_read(device, _DEVICE_BYTES)).cast("Q")
        places = {word for word in words if word > 0xFFFF and _read(word, 8) == _UNKNOWN}
    except OSError:
        return False
    if len(places) != 1:
        return False
    ctypes.memmove(places.pop(), text, len(text))
    return True


class _MemoryExtent(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _read(address: int, length: int) -> bytes:
    """The bytes there, without whole words that cannot be read; a plain read might end the process.

    Raises OSError where the system does not offer it.
    """
    try:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except AttributeError:
        raise OSError("no process_vm_readv") from None
    read.restype = ctypes.c_ssize_t
    buffer = ctypes.create_string_buffer(length)
    here = _MemoryExtent(ctypes.addressof(buffer), length)
    there = _MemoryExtent(address, length)
    unsigned = ctypes.c_ulong
    count = read(
        os.getpid(),
        ctypes.byref(here),
        unsigned(1),
        ctypes.byref(there),
        unsigned(1),
        unsigned(0),
    )
    return buffer.raw[: max(count, 0) // 8 * 8]
