# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command with its subcommands, and what becomes of errors."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli.ended import Interrupted, Trapped
from ferryvm.errors import FerryError
from ferryvm.float_environment import ours

if TYPE_CHECKING:
    from ferryvm.cli.brought import Brought

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
    "backends": "backends.backends",
    "doctor": "doctor.doctor",
    "policy": "policy.policy",
}
"""Module and function of each command, imported when it is needed: all of them take 0.1 s."""


class _Commands(click.Group):
    """Our own commands, then those of plugins, which are looked for where a name is none of ours."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *_brought(ctx).loadable})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return _brought(ctx).get(cmd_name)
        if cmd_name not in self.commands:
            module, _, function = _COMMANDS[cmd_name].partition(".")
            found = getattr(importlib.import_module(f"ferryvm.cli.{module}"), function)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and args[0] not in _brought(ctx).names:
            for name in self.list_commands(ctx):  # one of them is suggested
                command = self.get_command(ctx, name)
                if command is not None:
                    self.commands.setdefault(name, command)
        return super().resolve_command(ctx, args)


def _brought(ctx: click.Context) -> Brought:
    """The commands of plugins, found once in a call."""
    key = f"{__name__}.brought"
    if key not in ctx.meta:
        from ferryvm.cli.brought import Brought
        from ferryvm.plugin import Plugins

        ctx.meta[key] = Brought(Plugins(), _COMMANDS)
    found: Brought = ctx.meta[key]
    return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ferryvm.__version__, prog_name="ferry")
def ferry() -> None:
    """Run programs on the engines of ferryvm, and move them between engines."""


class _StderrHandler(logging.Handler):
    """Notices of the library (a first build, a damaged cache entry) as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"ferry: {record.getMessage()}", err=True)


def run_command() -> int:
    """Run the command that the process was started with; its exit code."""
    log = logging.getLogger("ferryvm")
    log.addHandler(_StderrHandler())
    log.setLevel(logging.INFO)
    try:
        with ours():  # what a command computes besides running programs, too
            code = ferry.main(prog_name="ferry", standalone_mode=False)
        if sys.stdout is not None:  # None where it was closed before we started
            sys.stdout.flush()
    except SystemExit:  # click ends so when whoever read our output has gone
        return 2
    except click.exceptions.Abort:
        return _fail("interrupted", 130)
    except Interrupted as error:
        return _fail(error.message, 130)
    except Trapped as error:
        return _fail(error.message, 1)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except FerryError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:
        # Whoever read our output has gone; closing it again at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except OSError as error:  # files are checked where they are named: what is left is stdout
        return _fail(f"output cannot be written: {error.strerror}", 2)
    except MemoryError:
        return _fail("out of memory", 2)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    click.echo(f"ferry: {message}", err=True)
    return code
