# SPDX-License-Identifier: Apache-2.0
"""The floating-point environment of a thread: ferryvm's own while it computes, the caller's while
foreign code runs.

    caller ──> ours() ──────────────────────────────────────────────> caller
               save, set     └──> callers() ──> host function, hook ──┘ restore
                                  restore           save again, set

The environment is that of C11 7.6: rounding mode, exception masks and sticky flags, on processors
that have it flushing of subnormals to zero (x86: MXCSR and the x87 words; aarch64: FPCR, FPSR). A
library made with -ffast-math changes it for the thread that loads it, and a thread inherits it from
the one that starts it. The instruction table has one meaning, so code that computes floats runs in
`ours`: IEEE 754's default, round to nearest even, with subnormals, no exception trapped.

Invariant: outside of `ours` a thread has the environment that it would have without ferryvm, sticky
flags included. Changes by code that is called in `callers` become part of the caller's environment.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from ferryvm.architecture import IS_X86

_P = ParamSpec("_P")
_R = TypeVar("_R")

Saved = ctypes.Array[ctypes.c_ubyte]
"""An environment as `fegetenv` saves it."""

_Buffer: type[Saved] = ctypes.c_ubyte * 64
"""At least as large as `fenv_t`: 32 bytes on x86, 8 on aarch64 Linux, 16 on macOS."""

CONTROL_OFFSET: Final = 28 if IS_X86 else 0
"""The offset in a saved environment of the control word of SIMD arithmetic: MXCSR, or FPCR."""
CONTROL: Final = 0x1F80 if IS_X86 else 0
"""The control word in our environment: all exceptions masked, round to nearest, subnormals not
flushed."""


def _library() -> ctypes.PyDLL:
    """The C library with `fegetenv`. Calls hold the interpreter lock: releasing it takes longer
    than saving a register."""
    own = ctypes.PyDLL(None)
    return own if hasattr(own, "fesetenv") else ctypes.PyDLL("libm.so.6")


_libm = _library()
_get, _set = _libm.fegetenv, _libm.fesetenv


def _default() -> Saved:
    """Our environment. The caller's is unchanged."""
    is_mac = sys.platform == "darwin"
    default = (
        ctypes.byref(ctypes.c_char.in_dll(_libm, "_FE_DFL_ENV"))
        if is_mac
        else ctypes.c_void_p(-1)  # FE_DFL_ENV of glibc and musl
    )
    before, own = saved(), _Buffer()
    _set(default)
    _get(own)
    _set(before)
    if not is_mac:
        # glibc before 2.23 leaves flushing on x86, and every one some reserved bits on aarch64.
        struct.pack_into("<I", own, CONTROL_OFFSET, CONTROL)
    return own


def saved() -> Saved:
    """The present environment of this thread."""
    found = _Buffer()
    _get(found)
    return found


def restore(environment: Saved) -> None:
    """Set an environment that `saved` returned, sticky flags included."""
    _set(environment)


_OURS = _default()


class _Thread(threading.local):
    """The state of a thread."""

    caller: Saved | None = None
    """The caller's environment while ours is set; None otherwise, also in `callers`."""


_thread = _Thread()


class ours:  # noqa: N801 - used as a function, in `with`
    """Our environment, from here to the end of the block; then the caller's again. Blocks may be
    nested."""

    __slots__ = ("_is_outermost",)

    def __enter__(self) -> None:
        self._is_outermost = _thread.caller is None
        if self._is_outermost:
            caller = _Buffer()
            _get(caller)
            _thread.caller = caller
            try:
                _set(_OURS)
            except BaseException:  # ctypes gets no memory, so it was not set
                _thread.caller = None
                raise

    def __exit__(self, *_: object) -> None:
        if self._is_outermost:
            caller, _thread.caller = _thread.caller, None
            _set(caller)


def native_addresses() -> dict[str, int]:
    """For native code that sets our environment itself: addresses of `environment`, and of the
    functions `get_environment`, `set_environment`."""
    functions = {"get_environment": _get, "set_environment": _set}
    found = {name: ctypes.cast(each, ctypes.c_void_p).value for name, each in functions.items()}
    return {name: each or 0 for name, each in found.items()} | {
        "environment": ctypes.addressof(_OURS)
    }


def set_again() -> None:
    """Set our environment again, in a block of `ours`, because a library that was just loaded may
    have changed it."""
    _set(_OURS)


class callers:  # noqa: N801 - used as a function, in `with`
    """The caller's environment, for a block of `ours` that calls foreign code.

    Changes by that code belong to the caller. Outside of `ours` nothing changes.
    """

    __slots__ = ("_caller",)

    def __enter__(self) -> None:
        self._caller = _thread.caller
        if self._caller is not None:
            _set(self._caller)  # first: if ctypes gets no memory nothing has changed
            _thread.caller = None

    def __exit__(self, *_: object) -> None:
        if self._caller is not None:
            _thread.caller = (
                self._caller
            )  # first: the block of `ours` needs it, even if something fails here
            _get(self._caller)
            _set(_OURS)


def call_in_ours(function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """The result of a call in our environment. The caller's is restored in any case; a block of
    `ours` remains open if a signal handler raises at the start of its end."""
    if _thread.caller is not None:
        return function(*args, **kwargs)
    caller = _Buffer()
    try:
        _get(caller)
        _thread.caller = caller
        _set(_OURS)
        return function(*args, **kwargs)
    finally:
        if _thread.caller is not None:
            _thread.caller = None
            _set(caller)


def in_ours(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, run in our environment."""

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        return call_in_ours(function, *args, **kwargs)

    return run
