# SPDX-License-Identifier: Apache-2.0
"""Floating-point environments that other code may set in a thread, for schedules and tests.

They are the ones of libraries made with -ffast-math, of interval arithmetic, and of debugging with
exceptions trapped. `ferryvm.float_environment` handles them.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from ferryvm.architecture import IS_X86
from ferryvm.float_environment import CONTROL, CONTROL_OFFSET, callers, restore, saved

# Bits of MXCSR and of the x87 control word, or of FPCR.
_FLUSH: Final = 0x8040 if IS_X86 else 1 << 24
_DOWN, _UP, _ZERO = (0x2000, 0x4000, 0x6000) if IS_X86 else (2 << 22, 1 << 22, 3 << 22)
_MASKS: Final = 0x1F80
STICKY: Final = 0x3F if IS_X86 else 0
"""Bits of the control word that arithmetic sets."""
_X87_USUAL: Final = 0x037F

USUAL: Final = "usual"
"""The name of ferryvm's own."""

ENVIRONMENTS: Mapping[str, int] = MappingProxyType(
    {
        USUAL: CONTROL,
        "flush": CONTROL | _FLUSH,
        "down": CONTROL | _DOWN,
        "up": CONTROL | _UP,
        "zero": CONTROL | _ZERO,
        "flush-up": CONTROL | _FLUSH | _UP,
        "flags": CONTROL | STICKY,
    }
)
"""By name: the control word, see `CONTROL`."""

TRAPPED: Final = CONTROL & ~_MASKS if IS_X86 else CONTROL | 0x1F00
"""The control word with all exceptions trapped. Code that computes a float then may end the process
by SIGFPE, so no schedule has it."""


def condition(name: str) -> str:
    """`, in the floating-point environment NAME`, for the end of a line; nothing for the usual."""
    return "" if name == USUAL else f", in the floating-point environment {name!r}"


def control_word() -> int:
    """The control word of this thread; on x86 with the sticky flags."""
    return int(struct.unpack_from("<I", saved(), CONTROL_OFFSET)[0])


def set_control_word(word: int) -> None:
    """Set it, and the same rounding in the x87 unit, which has one of its own."""
    environment = saved()
    struct.pack_into("<I", environment, CONTROL_OFFSET, word)
    if IS_X86:
        x87 = _X87_USUAL | (word >> 3 & 0x0C00)
        struct.pack_into("<H", environment, 0, x87)
    restore(environment)


@contextlib.contextmanager
def environment(word: int) -> Iterator[None]:
    """An environment for a block with little computation: as if the caller of ferryvm had it, also
    in a block of `ours`."""
    with callers():
        before: ctypes.Array[ctypes.c_ubyte] = saved()
        set_control_word(word)
        try:
            yield
        finally:
            restore(before)
