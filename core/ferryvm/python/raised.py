# SPDX-License-Identifier: Apache-2.0
"""Exceptions of compiled Python functions: those that Python raises, with its lines in the traceback."""

from __future__ import annotations

import types
from collections.abc import Iterable

from ferryvm.engine import TrapError, UncaughtError
from ferryvm.isa.trap import Trap
from ferryvm.machine.state import Frame
from ferryvm.python.site import Site, Sites


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


def python_error(error: TrapError, site: Site) -> BaseException:
    """The exception that Python raises at a site, with a traceback of the compiled functions."""
    message = site.message
    if site.is_limit:
        where = f"{site.position.file}:{site.position.line}"
        reason = message or "the result does not fit into 64 bits"
        message = (
            f"{reason} ({site.function}, {where}); Python cannot take over, since the function has "
            "changed arrays by then"
        )
    raised = site.type(message) if message is not None else site.type()
    return raised.with_traceback(_traceback(reversed(error.stack)))


def _traceback(frames: Iterable[Frame]) -> types.TracebackType | None:
    """A traceback with a line for each frame, outermost first."""
    places = [frame for frame in frames if frame.position is not None]
    found: types.TracebackType | None = None
    for frame in reversed(places):
        position = frame.position
        assert position is not None
        inner: types.TracebackType | None = None
        code = compile("raise RuntimeError", position.file, "exec").replace(
            co_name=frame.function, co_qualname=frame.function, co_firstlineno=position.line
        )
        try:
            exec(code, {})  # noqa: S102  # our own line: it makes a frame with these names
        except RuntimeError as error:
            inner = error.__traceback__ and error.__traceback__.tb_next
        if inner is not None:
            found = types.TracebackType(found, inner.tb_frame, inner.tb_lasti, position.line)
    return found
