# SPDX-License-Identifier: Apache-2.0
"""`ferry run` and `ferry resume`: only a program's output goes to stdout.

`direct` parses the common form of `ferry run` without these declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ferryvm.cli import program_run
from ferryvm.cli.argument import ProgramCommand
from ferryvm.cli.limit import limited
from ferryvm.cli.option import device_option, hosts_option, language_option, policy_option
from ferryvm.cli.path import FILE, FilePath
from ferryvm.cli.run_option import Options
from ferryvm.machine.control import UNLIMITED


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that `run` and `resume` share."""
    for option in reversed(
        (
            click.option("--backend", metavar="NAME",
                         help="One backend alone; see `ferry backends`."),
            device_option,
            policy_option,
            hosts_option,
            click.option("--trace", type=FilePath(dir_okay=False),
                         metavar="FILE", help="Write compilations and transfers as a trace for "
                         "Perfetto or about:tracing; slows transfers down."),
            click.option("--fuel", type=click.IntRange(0, UNLIMITED), metavar="N",
                         help="Stop after exactly N instructions."),
            click.option("--check", type=click.Choice(["independence"]),
                         help="independence: fail where an item of a launch accesses what another "
                         "one writes. Runs on the backend `reference`, slowly."),
            click.option("--count", is_flag=True, help="Count instructions exactly."),
            click.option("--save", type=FilePath(dir_okay=False),
                         metavar="STATE", help="Where to save the state when the program stops "
                         "before its end (fuel, Ctrl-C)."),
            click.option("--record", type=FilePath(dir_okay=False),
                         metavar="LOG", help="Write the calls of host functions, with their "
                         "results, to a file; see --replay."),
            click.option("--replay", type=FilePath(dir_okay=False),
                         metavar="LOG", help="Take the results of host functions from a file that "
                         "--record wrote; another call than its next one is an error."),
            click.option("--stats", metavar="FILE", help="Write metrics as JSON; - for stdout."),
            limited,
        )
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(cls=ProgramCommand)
@click.argument("file", type=FILE)
@click.option("--peephole/--no-peephole", default=None, help="Optimise (Skiff on, assembly off).")
@language_option
@_options
def run(file: Path, peephole: bool | None, language: str | None, **options: Any) -> None:
    """Run FILE, a program (.skiff, .fasm, .fvm, or a plugin's language) from its start. ARGUMENTS,
    after `--`, are the program's."""
    program_run.run(file, Options(**options), peephole, language)


@click.command(cls=ProgramCommand)
@click.argument("state", type=FILE)
@_options
def resume(state: Path, **options: Any) -> None:
    """Continue a saved STATE, on any backend. ARGUMENTS, after `--`, are the program's."""
    program_run.resume(state, Options(**options))
