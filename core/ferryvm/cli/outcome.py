# SPDX-License-Identifier: Apache-2.0
"""The process of the `ferry` command: from its words to its exit code.

    words ──> direct: the common form of `ferry run` ──> program_run
          └─> command: click, for all others         ──> the subcommand

Whatever a command raises is reported here in one line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from ferryvm import notice
from ferryvm.cli import direct, termination
from ferryvm.cli.message import say
from ferryvm.errors import FerryError
from ferryvm.failure import is_out_of_memory, text_of
from ferryvm.float_environment import in_ours
from ferryvm.foreign import InterruptedIn


def run_command() -> int:
    """Run the command with the process's arguments; its exit code."""
    try:
        return _run()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        return _reported(error)


@in_ours  # also for computations of the command itself
def _run() -> int:
    sys.unraisablehook = _unraisable
    notice.deliver(_say)  # a first build, a damaged cache entry
    termination.run()
    code = _invoke(sys.argv[1:])
    sys.stdout.flush()
    return termination.exit_code(code) or 0


def _invoke(words: list[str]) -> object:
    """The result of the command for the words after its name."""
    completes = "_FERRY_COMPLETE" in os.environ  # a shell asks click for completions
    call = None if completes else direct.parsed(words)
    with termination.loading():
        if call is not None:
            from ferryvm.cli import program_run
        else:
            from ferryvm.cli import command
    if call is not None:
        program_run.run(call.file, call.options)
        return None
    if completes:
        return command.ferry.main(prog_name="ferry", standalone_mode=False)
    return command.invoke(words)  # click's own `main` adds an empty line to the message of Ctrl-C


def _reported(error: BaseException) -> int:
    """Report how the command ended; its exit code."""
    if termination.came and not isinstance(error, termination.Interrupted):
        # Imports and plugins may have turned the KeyboardInterrupt into any exception.
        number = termination.ending_signal()
        if number:
            return _fail(f"ended by {signal.Signals(number).name}", 128 + number)
        what = text_of(error) if isinstance(error, InterruptedIn) else "interrupted"
        return _fail(what, 130)
    if isinstance(error, BrokenPipeError) or isinstance(error.__context__, BrokenPipeError):
        termination.die(
            signal.SIGPIPE
        )  # the reader of our output has gone: end as other commands do
    if is_out_of_memory(error):
        return _fail("out of memory", 2)
    match error:
        case SystemExit():
            return termination.exit_code(error.code) or 0
        case KeyboardInterrupt():
            return _fail(text_of(error) or "interrupted", 130)
        case termination.Interrupted():
            return _fail(str(error), 130)
        case FerryError():
            return _fail(_lines(error), 2)
        case OSError():  # files are checked where they are named, so this is stdout
            return _fail(f"output cannot be written: {error.strerror}", 2)
    if "click" in sys.modules:  # otherwise it is no exception of click's
        code = _reported_as_click(error)
        if code is not None:
            return code
    sys.excepthook(type(error), error, error.__traceback__)  # our own bug
    return 70


def _reported_as_click(error: BaseException) -> int | None:
    """Report an exception of a class of click's; the exit code, None for other classes."""
    import click

    from ferryvm.cli.run_failure import Trapped

    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.Abort():
            return _fail(text_of(error) or "interrupted", 130)
        case Trapped():
            return _fail(error.message, 1)
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            return _fail(error.format_message(), 2)
    return None


def _lines(error: FerryError) -> str:
    """The message, which may have several lines; a plugin's may be empty."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - third-party code
        return text_of(error)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Handle Ctrl-C in a destructor as Ctrl-C; report a lack of memory there in a line."""
    if termination.came and issubclass(unraisable.exc_type, KeyboardInterrupt):
        termination.at_once(termination.came[-1])
    error = unraisable.exc_value
    if issubclass(unraisable.exc_type, MemoryError) or (error and is_out_of_memory(error)):
        _say("out of memory while an object was removed; the command goes on")
        return
    sys.__unraisablehook__(unraisable)


def _fail(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    """Write a line to stderr; failure to write is ignored."""
    with contextlib.suppress(OSError, MemoryError):
        say(f"ferry: {message}", is_error=True)
