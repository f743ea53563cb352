# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command with its subcommands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import click

import ferryvm
from ferryvm.cli import termination

if TYPE_CHECKING:
    from ferryvm.cli.plugin_command import Brought

_COMMANDS = {
    "run": "run.run",
    "resume": "run.resume",
    "explain": "explain.explain",
    "export": "export.export",
    "import": "imported.import_",
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


def invoke(words: list[str]) -> object:
    """The result of the command for the words after its name. Raises what click raises."""
    with ferry.make_context("ferry", words) as context:
        return ferry.invoke(context)
