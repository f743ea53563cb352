# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command with its subcommands, and the handling of their errors."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm import notice
from ferryvm.cli import termination
from ferryvm.cli.run_failure import Interrupted, Trapped, exit_code
from ferryvm.errors import FerryError
from ferryvm.failure import is_out_of_memory, text_of
from ferryvm.float_environment import in_ours
from ferryvm.foreign import InterruptedIn

if TYPE_CHECKING:
    from ferryvm.cli.plugin_command import Brought

_COMMANDS = {
    "run": "run.run",
    "resume": "run.resume",
    "explain": "explain.explain",
    "asm": "program.assemble",
    "compile": "program.compile_",
    "dis": "program.disassemble",
    "verify": "program.verify",
    "diff": "diff.diff",
    "conformance": "conformance.conformance",
    "fuzz": "fuzz.fuzz",
    "replay": "replay.replay",
    "bisect": "bisect.bisect",
    "reduce": "reduce.reduce",
    "repl": "repl.repl",
    "isa": "show.isa",
    "hosts": "host.hosts",
    "backends": "backends.backends",
    "doctor": "doctor.doctor",
    "policy": "policy.policy",
    "languages": "language.languages",
}
"""Module and function of each command. They are imported on demand: all of them take 0.1 s."""


class _Commands(click.Group):
    """Our own commands, then those of plugins, which are searched for other names."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *_brought(ctx).loadable})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return _brought(ctx).get(cmd_name)
        if cmd_name not in self.commands:
            module, _, function = _COMMANDS[cmd_name].partition(".")
            with termination.loading():
                found = getattr(importlib.import_module(f"ferryvm.cli.{module}"), function)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and args[0] not in _brought(ctx).names:
            for name in self.list_commands(ctx):  # for the suggestion
                command = self.get_command(ctx, name)
                if command is not None:
                    self.commands.setdefault(name, command)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            found: object = super().invoke(ctx)
        except BaseException as error:
            name = ctx.invoked_subcommand
            if name is None or name in _COMMANDS:
                raise
            wrong = _brought(ctx).fault(name, error)
            if wrong is None:
                raise
            raise wrong from error
        name = ctx.invoked_subcommand
        if name is not None and name not in _COMMANDS:
            _brought(ctx).check_result(name, found)
        return found


def _brought(ctx: click.Context) -> Brought:
    """The commands of plugins, found once per call."""
    key = f"{__name__}.brought"
    if key not in ctx.meta:
        from ferryvm.cli.plugin_command import Brought
        from ferryvm.plugin import Plugins

        ctx.meta[key] = Brought(Plugins(), _COMMANDS)
    found: Brought = ctx.meta[key]
    return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ferryvm.__version__, prog_name="ferry")
def ferry() -> None:
    """Run programs on the engines of ferryvm, and move them between engines."""


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
    if "_FERRY_COMPLETE" in os.environ:  # a shell asks click for completions
        code = ferry.main(prog_name="ferry", standalone_mode=False)
    else:  # click's own `main` adds an empty line to the message of Ctrl-C
        with ferry.make_context("ferry", sys.argv[1:]) as context:
            code = ferry.invoke(context)
    sys.stdout.flush()
    return exit_code(code) or 0


def _reported(error: BaseException) -> int:
    """Report how the command ended; its exit code."""
    if termination.came and not isinstance(error, Interrupted):
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
            return exit_code(error.code) or 0
        case click.exceptions.Exit():
            return error.exit_code
        case click.exceptions.Abort() | KeyboardInterrupt():
            return _fail(text_of(error) or "interrupted", 130)
        case Interrupted():
            return _fail(error.message, 130)
        case Trapped():
            return _fail(error.message, 1)
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.ClickException():
            return _fail(error.format_message(), 2)
        case FerryError():
            return _fail(_lines(error), 2)
        case OSError():  # files are checked where they are named, so this is stdout
            return _fail(f"output cannot be written: {error.strerror}", 2)
    sys.excepthook(type(error), error, error.__traceback__)  # our own bug
    return 70


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
        click.echo(f"ferry: {message}", err=True)
