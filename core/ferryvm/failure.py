# SPDX-License-Identifier: Apache-2.0
"""Descriptions of exceptions and values of foreign code, for messages of one line.

Formatting such a value runs foreign code again: `__str__`, `__repr__` and properties may raise,
return anything, or build a text of a gigabyte. These functions never raise and bound the text.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import signal
import threading
from pathlib import Path
from types import CodeType, FunctionType, MethodType, TracebackType

from ferryvm import process

_OWN = f"{Path(__file__).parent}{os.sep}"
"""The folder of this package, a prefix of its files' names."""

_IMPORTING = "<frozen importlib"
"""Prefix of the names of the import system's own files."""

MOST = 2000
"""Largest number of characters of a foreign text in a message."""

_LONGEST_CHAIN = 20
"""Exceptions in a chain of causes that are examined."""


def described(error: BaseException) -> str:
    """Type, message and place of an exception: `ValueError: text (mine.py:12 in enter)`.

    The place is the innermost frame outside this package, whose author can change it, else the
    innermost frame. A MemoryError is shown as such, whatever type CPython has converted it to.
    """
    if type(error) in _DISGUISES and is_out_of_memory(error):
        error = MemoryError().with_traceback(error.__traceback__)
    text = text_of(error)
    place, is_own = "", True
    step = _traceback(error)
    while step is not None:
        code = step.tb_frame.f_code
        in_own = code.co_filename.startswith((_OWN, _IMPORTING))
        if is_own or not in_own:
            place = f" ({Path(code.co_filename).name}:{step.tb_lineno} in {code.co_name})"
            is_own = in_own
        step = step.tb_next
    name = class_name(type(error))
    return f"{name}: {text}{place}" if text else f"{name}{place}"


def _traceback(error: BaseException) -> TracebackType | None:
    """`error.__traceback__`, even if its class overrides the attribute."""
    found: TracebackType | None = vars(BaseException)["__traceback__"].__get__(error)
    return found


def is_out_of_memory(error: BaseException) -> bool:
    """True if it was raised for lack of memory, whatever its type.

    CPython raises RuntimeError if it cannot allocate a lock, and TypeError in `os.fspath` if it
    cannot bind the path's method. An extension that cannot be mapped gives an ImportError. C code that returns an error without setting an exception gives a
    SystemError: such bugs show mostly when an allocation fails.
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, MemoryError):
        return True
    return type(error) in _DISGUISES and str(error).rstrip("\n").endswith(_DISGUISES[type(error)])


def undisguised(error: BaseException) -> BaseException:
    """The error that a call of C was made impossible by: ctypes makes an ArgumentError of a
    RecursionError or MemoryError that comes as it converts an argument."""
    if isinstance(error, ctypes.ArgumentError):
        if ": RecursionError: " in str(error):
            return RecursionError("maximum recursion depth exceeded in a call of native code")
        if is_out_of_memory(error):
            return MemoryError()
    return error


_DISGUISES: dict[type[BaseException], tuple[str, ...]] = {
    ImportError: ("failed to map segment from shared object",),
    RuntimeError: ("can't allocate lock", "can't allocate read lock"),
    TypeError: (
        "os.PathLike object, not PosixPath",
        "os.PathLike, not PosixPath",
        "os.PathLike or integer, not PosixPath",
    ),
    ctypes.ArgumentError: ("MemoryError: ",),
    SystemError: (
        "error return without exception set",
        "without setting an exception",
        "NULL object passed to Py_BuildValue",
    ),
}
"""Disguises of MemoryErrors in CPython: class, and the end of the text."""


def class_name(kind: type) -> str:
    """`kind.__name__`, even if its metaclass overrides the attribute."""
    return one_line(vars(type)["__name__"].__get__(kind))


def text_of(value: object) -> str:
    """`str(value)` in one line, or why there is none."""
    try:
        return one_line(str(value))
    except BaseException as error:
        if is_ctrl_c(error) or is_signals(error):
            raise
        return f"its text cannot be had, {class_name(type(error))} was raised"


def shown(value: object) -> str:
    """`repr(value)` in one line, or its type if `repr` fails."""
    try:
        return one_line(repr(value))
    except BaseException as error:
        if is_ctrl_c(error) or is_signals(error):
            raise
        return kind_of(value)


def one_line(text: str) -> str:
    """The text without line breaks, for messages of one line.

    Unprintable characters are escaped, and the middle of a long text is cut out.
    """
    head = str.__getitem__(text, slice(MOST + 1))  # of a subclass, too, it is a plain text
    if len(head) > MOST:
        half = MOST // 2
        length = str.__len__(text)
        tail = str.__getitem__(text, slice(length - half, length))
        head = f"{head[:half]} ... {length - 2 * half} characters ... {tail}"
    line = " ".join(head.split())
    return line if line.isprintable() else "".join(map(_printable, line))


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def is_ctrl_c(error: BaseException) -> bool:
    """True if it may be caused by Ctrl-C, which only the main thread receives.

    It is also true of exceptions into which imports and others convert a KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread() or not process.owner.has_come():
        return False
    behind: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if behind is None:
            return False
        if issubclass(type(behind), KeyboardInterrupt):
            return True
        cause: BaseException | None = vars(BaseException)["__cause__"].__get__(behind)
        context: BaseException | None = vars(BaseException)["__context__"].__get__(behind)
        behind = cause or context
    return False


class SignalRaised(BaseException):
    """The exception of a signal handler that came while the engine was busy, raised once the
    machine's state is exact."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


def is_signals(error: BaseException) -> bool:
    """True if a signal handler raised it, or what that called: it says nothing of the code that was
    running. Handlers run in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {_code(each) for each in handlers if callable(each)} - {None}
    step = _traceback(error) if codes else None
    while step is not None:
        if step.tb_frame.f_code in codes:
            return True
        step = step.tb_next
    return False


def _code(handler: object) -> CodeType | None:
    """The code of a Python function, a method, a partial or an object that can be called."""
    if isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, FunctionType | MethodType):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004 - its code is wanted
    found = getattr(handler, "__code__", None)
    return found if isinstance(found, CodeType) else None


def kind_of(value: object) -> str:
    """The kind of a value, with its article: `a str`, `an int`, `None`, `the class Path`."""
    if value is None:
        return "None"
    kind = type(value)
    if issubclass(kind, type):
        assert isinstance(value, type)
        return f"the class {class_name(value)}"
    name = class_name(kind)
    return f"{'an' if name[:1] in tuple('aeiouAEIO') else 'a'} {name}"
