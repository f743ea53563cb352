# SPDX-License-Identifier: Apache-2.0
"""Arguments of programs on the command line: everything after the first `--`.

    ferry run FILE --backend switch -- a b      the program's arguments are a and b

All words there belong to the program, options of `ferry` included; all words before belong to the
command. So a superfluous word is an error, and never an argument of the program by accident.
"""

from __future__ import annotations

import click

from ferryvm.cli.direct import SEPARATOR


class ProgramCommand(click.Command):
    """A command that runs programs: its function gets their arguments as `arguments`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; the arguments of the program become the parameter `arguments`. Raises
        UsageError for what is left over in front of `--`."""
        own: list[str] = []
        has_separator = SEPARATOR in args
        if has_separator:
            at = args.index(SEPARATOR)
            args, own = args[:at], args[at + 1 :]
        ctx.allow_extra_args = True  # they are refused below, with what to write
        try:
            extra = super().parse_args(ctx, args)
        except click.MissingParameter as error:
            if not has_separator or not isinstance(error.param, click.Argument):
                raise
            name = error.param.make_metavar(ctx)
            raise click.UsageError(
                f"{name} stands before `{SEPARATOR}`; what follows is the program's"
            ) from None
        if extra and not ctx.resilient_parsing:
            import shlex  # only for this message

            given = [str(ctx.params[it.name]) for it in self._positional if it.name is not None]
            command = f"{ctx.command_path} {shlex.join([*given, SEPARATOR, *extra, *own])}"
            raise click.UsageError(
                f"unexpected argument {extra[0]!r}; those of the program stand after "
                f"`{SEPARATOR}`: {command}"
            )
        ctx.params["arguments"] = tuple(own)
        return extra

    @property
    def _positional(self) -> list[click.Argument]:
        return [each for each in self.params if isinstance(each, click.Argument)]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As click's, and where arguments of the program stand."""
        return [*super().collect_usage_pieces(ctx), f"[{SEPARATOR} ARGUMENTS...]"]
