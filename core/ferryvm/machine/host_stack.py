# SPDX-License-Identifier: Apache-2.0
"""The native stack of a thread: its limit for compiled code, and the headroom that code needs.

    lowest address ── RESERVE ──> floor ── frames of a region ──> its limit <── recursion ── entered

The VM's stack is separate from the native stack, but compiled VM functions call each other as
native functions. The engine writes the lowest usable address of the running thread, the floor, into
the control block. A region leaves at its entry if the headroom above the floor is less than its
frames take once; a recursive function leaves to the interpreter at that limit.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import re
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from ferryvm import pattern, process
from ferryvm.architecture import IS_X86
from ferryvm.errors import FerryError
from ferryvm.float_environment import ours
from ferryvm.thread import start

__all__ = ["frame_bytes"]

_R = TypeVar("_R")

ROOMY: Final = 16 << 20
"""Stack of the threads that compilers run in, in bytes, whatever the default for threads is: LLVM
is recursive. Pages are allocated only when they are used."""

SMALLEST: Final = 64 << 10
"""Smallest stack of a thread that may run programs, in bytes. The engine and compilers in Python
use half of it; Python itself does not start with 64 KiB for its main thread."""

_GUARD: Final = 8 << 10
"""Bytes of a thread's stack that the C library may use."""

_SMALL: Final = 1 << 20
"""Size in bytes of the stacks from which loading and compiling are delegated to another thread, if
they are smaller."""

RESERVE: Final = (16 << 10) + max(os.sysconf("SC_MINSIGSTKSZ"), 0)
"""Bytes below the floor: for the frame of a signal, which holds all registers, the handler of
Python's C code on top of it, and the calls of a region that leaves."""

_LOOK: Final = 0.02
"""Seconds between two looks for signals while a thread waits for another one."""

_PUSHED: Final = 96
"""Bytes of a native frame besides those that the function subtracts: return address, saved
registers, alignment."""


def _limits() -> tuple[int, int]:
    """Lowest address and size of this thread's stack; zeros if the system cannot report them. For
    the main thread the process's limit determines the size."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "pthread_getattr_np"):  # glibc and musl have it
        return 0, 0
    libc.pthread_self.restype = ctypes.c_void_p
    attributes = (ctypes.c_ubyte * 256)()  # 56 bytes on x86-64, 64 on aarch64
    if libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attributes):
        return 0, 0
    address, size = ctypes.c_void_p(), ctypes.c_size_t()
    failed = libc.pthread_attr_getstack(attributes, ctypes.byref(address), ctypes.byref(size))
    libc.pthread_attr_destroy(attributes)
    return (0, 0) if failed else (address.value or 0, size.value)


class _Thread(threading.local):
    """Stack limits of a thread, cached, since the query takes 10 us, and 60 us in the main
    thread."""

    limits: tuple[int, int] | None = None


_thread = _Thread()


def limits() -> tuple[int, int]:
    """Lowest address and size of this thread's stack, in bytes; zeros if they are not known."""
    found = _thread.limits
    if found is None:
        found = _thread.limits = _limits()
    return found


def check_size() -> None:
    """Raise FerryError if this thread's stack is too small to run programs at all."""
    _, size = limits()
    if 0 < size < SMALLEST - _GUARD:
        raise FerryError(
            f"this thread has a stack of {size >> 10} KiB; to run programs takes "
            f"{SMALLEST >> 10} KiB or more, see threading.stack_size"
        )


def floor() -> int:
    """The lowest address that compiled code may use in this thread; 0 if it is not known."""
    lowest, _ = limits()
    return lowest + RESERVE if lowest else 0


def start_with_headroom(work: Callable[..., None], *arguments: object) -> None:
    """Start a thread that has `ROOMY` bytes of stack. Raises ThreadError."""
    with _starting:
        # The size is global: a thread that another thread starts just now may get it, too.
        usual = threading.stack_size()
        try:
            threading.stack_size(ROOMY)
            start(functools.partial(work, *arguments))
        finally:
            threading.stack_size(usual)


_starting = threading.RLock()  # a finaliser may run a program in the block


def with_headroom(work: Callable[[], _R]) -> _R:
    """The result of `work`, which runs in another thread if this one has a small stack."""
    _, size = limits()
    return in_thread(work) if 0 < size < _SMALL else work()


def in_thread(work: Callable[[], _R]) -> _R:
    """The result of `work`, which runs in another thread with headroom. A signal handler that
    raises ends the wait at once, and not the work, which the end of the process waits for."""
    return Work(work).result()


class Work(Generic[_R]):
    """Work that another thread does, with headroom."""

    def __init__(self, work: Callable[[], _R]) -> None:
        """Raises ThreadError."""
        self._results: list[_R] = []
        self._errors: list[BaseException] = []
        self._done = threading.Lock()
        self._done.acquire()
        self.is_done = False
        start_with_headroom(self._run, work)

    def _run(self, work: Callable[[], _R]) -> None:
        _working.add(self)
        try:
            with ours():
                self._results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._errors.append(error)
        finally:
            self.is_done = True
            _working.discard(self)
            self._done.release()

    def wait(self) -> None:
        """Wait for its end. Handlers of signals run meanwhile, those, too, of a signal that came just
        before this thread waited, or to another thread, neither of which ends a wait."""
        while not self._done.acquire(timeout=_LOOK):
            pass
        self._done.release()

    def result(self) -> _R:
        """Its result; raises what it raises."""
        self.wait()
        if self._errors:
            raise self._errors[0]
        return self._results[0]


class NotYetError(FerryError):
    """Native code is still made, by `work`, and may be asked for again."""

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        super().__init__("native code is still made")


_working: set[Work[Any]] = set()


@atexit.register
def _end_work() -> None:
    """Wait for work that was left: a compiler may crash if its library is unloaded meanwhile."""
    try:
        for each in [*_working]:
            each.wait()
    except KeyboardInterrupt:
        process.end_by_ctrl_c()


os.register_at_fork(after_in_child=_working.clear)

_SUBTRACT = pattern.lazy(rb"\x48\x83\xec([\x00-\x7f])|\x48\x81\xec(....)", re.DOTALL)
"""x86: `sub rsp, imm8` and `sub rsp, imm32`, as LLVM, GCC and clang allocate a frame."""


def frame_bytes(code: bytes, functions: int) -> int:
    """Total bytes of one native frame of each function in machine code; an upper bound.

    `functions`: their number. Bytes that only look like a stack adjustment count as well.
    """
    if IS_X86:
        short = (m[1][0] for m in _SUBTRACT.finditer(code) if m[1])
        long = (int.from_bytes(m[2], "little") for m in _SUBTRACT.finditer(code) if m[2])
        return sum(short) + sum(long) + _PUSHED * functions
    words: Iterator[int] = (word for (word,) in struct.iter_unpack("<I", code[: len(code) & ~3]))
    # sub sp, sp, #imm12, perhaps shifted by 12
    found = (word for word in words if word & 0xFF8003FF == 0xD10003FF)
    return (
        sum((w >> 10 & 0xFFF) << (w >> 10 & 0x1000 and 12) for w in found) + 2 * _PUSHED * functions
    )
