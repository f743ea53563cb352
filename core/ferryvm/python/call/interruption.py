# SPDX-License-Identifier: Apache-2.0
"""Calls and maps that an exception from outside stops: of Ctrl-C, a signal handler, or `print`.

A call goes on in CPython, which raises the exception in the line where the call stands, so that
clauses and `finally` of the functions get it. Of a map what was done by then is kept.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferryvm.engine.active_call import Call
from ferryvm.engine.interrupt import is_main
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.machine.launch import unfinished
from ferryvm.python.call.continuation import resume
from ferryvm.python.definition.raised import StatementError, without_ours

if TYPE_CHECKING:
    from ferryvm.python.compiled.compiled_version import Version


class MapInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a map. `results`: the array, or the tuple of arrays, with the results of the
    items that are done; `done`: how many these are; `left`: the numbers of the others in row-major
    order, as pairs of the first one and the one after the last."""

    def __init__(
        self, name: str, results: Any, count: int, left: Sequence[tuple[int, int]]
    ) -> None:
        """`name`: of the function; `count`: of items."""
        self.results, self.left = results, [*left]
        self.done = count - sum(end - first for first, end in left)
        first = f"; item {left[0][0]} is the first that is not" if left else ""
        super().__init__(
            f"map of {name}: interrupted, {self.done} of {count} items are done{first}; "
            "the error's results has them"
        )


def left_by(error: ProgramInterrupted, count: int) -> list[tuple[int, int]]:
    """The items that a launch of so many items, which was interrupted, has not done. The call is
    removed from the stack."""
    found: list[tuple[int, int]] | None = None
    if error.call is not None:
        found = error.call.stood(unfinished)
        error.call.abandon()
    return [(0, count)] if found is None else found


def ended(version: Version, error: BaseException, left: Callable[[BaseException], Any]) -> Any:
    """The value of a call in whose middle an exception came that is no error of ours. `left`: the
    end of a call that raises."""
    if isinstance(error, StatementError):
        frames, raised = version.frames_at(error), error.error
    elif isinstance(error, ProgramInterrupted) and isinstance(error.call, Call):
        call, found, frames = error.call, error.raised or _handled(), version.frames_at(error)
        if found is None and not (version.has_lists and frames):
            try:
                value = call.resume()
            except BaseException as another:  # noqa: BLE001  # a clause of the function may get it
                found = another
            else:
                return value if version.read is None else version.read(value)
            return left(found)
        call.abandon()
        if found is None and frames is not None:
            return resume(frames)
        raised = found or KeyboardInterrupt()
    else:
        frames, raised = version.frames_at(error), error
    if frames is not None:
        return resume(frames, raised)
    raise raised.with_traceback(without_ours(raised.__traceback__))


class Stopped(NamedTuple):
    """A run that has stopped, and the exception of the process's handler of Ctrl-C."""

    error: ProgramInterrupted
    raised: BaseException


def unless_it_goes_on(error: ProgramInterrupted) -> Stopped | None:
    """The end of a run that Ctrl-C interrupted; None if the process's handler raises nothing: then
    the run has gone on to its own end. Raises what it raises."""
    while True:
        raised = error.raised or _handled()
        if raised is not None or error.call is None:
            return Stopped(error, raised or KeyboardInterrupt())
        try:
            error.call.resume()
        except ProgramInterrupted as another:
            error = another
        else:
            return None


def _handled() -> BaseException | None:
    """The exception that the process's handler of Ctrl-C raises; None if it raises none."""
    if not is_main():  # the run was interrupted by another thread
        return KeyboardInterrupt()
    try:
        signal.raise_signal(signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  # the handler's
        return error
    return None
