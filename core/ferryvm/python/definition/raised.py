# SPDX-License-Identifier: Apache-2.0
"""Exceptions of compiled Python functions: those that Python raises, with its lines in the
traceback."""

from __future__ import annotations

import dis
import linecache
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ferryvm.engine import TrapError, UncaughtError
from ferryvm.errors import Position
from ferryvm.failure import shown
from ferryvm.isa.trap import Trap
from ferryvm.python.definition.site import Site, Sites

_PACKAGE = str(Path(__file__).parent.parent)

_Entry = tuple[types.FrameType, int, int]
"""Of a traceback: frame, instruction, line."""


class StatementError(BaseException):
    """A statement that CPython executes has raised an exception. No clause of a program catches
    it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        super().__init__(error)


def site_of(error: TrapError, sites: Sites) -> Site | None:
    """The meaning of a trap in Python; None if it is nothing that Python code does."""
    if isinstance(error, UncaughtError) and error.tag in ("python", "python limit"):
        number = error.values[0]
        assert isinstance(number, int)
        return sites.thrown[number]
    found = sites.of_trap(error.kind, error.position)
    if found is None and error.kind is Trap.STACK_OVERFLOW and error.position is not None:
        message = "maximum recursion depth exceeded"
        return Site(RecursionError, message, error.position, error.stack[0].function)
    return found


def too_deep(error: TrapError, site: Site, most: int) -> RecursionError:
    """The exception for a call that stopped at a site with more than `most` frames, where Python
    cannot take over; with a traceback of the compiled functions. Python's own recursion ends
    before."""
    reason = site.message or site.type.__name__
    where = f"{site.function}, {site.position.file}:{site.position.line}"
    raised = RecursionError(
        f"maximum recursion depth exceeded: {reason} ({where}), where Python cannot take over, as more "
        f"than {most} calls are active"
    )
    places = [(each.function, each.position) for each in error.stack if each.position is not None]
    return raised.with_traceback(_chained(map(_entry, *zip(*places, strict=True))))


def add_place(error: Exception, where: str) -> None:
    """Add the place of an item to the message of an exception of Python; to others, whose messages
    and arguments belong to the program, as a note."""
    is_python = type(error).__module__ == "builtins"
    if is_python and not error.args:
        error.args = (where,)
    elif is_python and error.args == (str(error),):
        error.args = (f"{error.args[0]}, {where}",)
    else:
        error.add_note(where)


STORED = "%stored"
"""The variable for the value that CPython stores into an array or a list."""
_NUMBERS = int, float, complex, np.generic


def add_values(error: BaseException) -> None:
    """Add a note to an OverflowError of an integer that an array or a NumPy scalar cannot hold: the
    line that raised it, the value that it stores, and the numbers in its variables."""
    text = str(error)
    is_integer = "too large to convert" in text or " out of bounds for " in text
    trace, last = error.__traceback__, None
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code.co_filename):
            last = trace
        trace = trace.tb_next
    if last is None or not is_integer or not isinstance(error, OverflowError):
        return
    code, variables = last.tb_frame.f_code, last.tb_frame.f_locals
    is_store = STORED in code.co_names and STORED in variables
    found = [f"the value is {shown(variables[STORED])}"] if is_store else []
    for name in _names_at(code, last.tb_lasti, last.tb_lineno):
        value = variables.get(name)
        if isinstance(value, _NUMBERS):
            found.append(f"{name} = {shown(value)}")
    if found:
        line = linecache.getline(code.co_filename, last.tb_lineno).strip()
        place = f"{code.co_filename}:{last.tb_lineno}: {line}".rstrip(": ")
        error.add_note(f"{place}; {', '.join(found)}")


def _names_at(code: types.CodeType, instruction: int, line: int) -> Iterable[str]:
    """The variables that the lines of an instruction read, in their order."""
    _, last, _, _ = [*code.co_positions()][instruction // 2]
    found: dict[str, Any] = {}
    for each in dis.get_instructions(code):
        at = each.positions.lineno if each.positions is not None else None
        if at is not None and line <= at <= (last or line) and each.opname.startswith("LOAD_"):
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            found.update(dict.fromkeys(name for name in names if isinstance(name, str)))
    return [name for name in found if name.isidentifier()]


def caught_error(site: Site, *calls: Site) -> BaseException:
    """The exception that compiled code has caught, with the line that raised it, and that of the
    call in the function that has caught it; those of calls between these are not known."""
    raised = site.type() if site.message is None else site.type(site.message)
    places = [(each.function, each.position) for each in (site, *calls)]
    return raised.with_traceback(_chained(_entry(*place) for place in places))


def without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this package."""
    entries = []
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_code.co_filename):
            entries.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno))
        trace = trace.tb_next
    return _chained(reversed(entries))


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) or file == "<call>" or "/ferryvm_backends/" in file


def _chained(entries: Iterable[_Entry]) -> types.TracebackType | None:
    """A traceback with these entries, which are given innermost first."""
    found: types.TracebackType | None = None
    for entry in entries:
        found = types.TracebackType(found, *entry)
    return found


def _entry(function: str, position: Position) -> _Entry:
    """The entry of a traceback for a line of a function."""
    code = compile("raise RuntimeError", position.file, "exec").replace(
        co_name=function, co_qualname=function, co_firstlineno=position.line
    )
    try:
        exec(code, {})  # noqa: S102  # our own line: it makes a frame with these names
    except RuntimeError as error:
        trace = error.__traceback__ and error.__traceback__.tb_next
        assert trace is not None
        return trace.tb_frame, trace.tb_lasti, position.line
    raise AssertionError("no error")
