# SPDX-License-Identifier: Apache-2.0
"""`ferry isa`, tables on the terminal, and options that name backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ferryvm.errors import UnknownNameError
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate, Instruction
from ferryvm.registry import Availability, Registry

if TYPE_CHECKING:
    from rich.table import Table


@click.command()
@click.argument("mnemonic", required=False)
@click.option("--markdown", is_flag=True, help="Print the whole reference, docs/isa.md.")
def isa(mnemonic: str | None, markdown: bool) -> None:
    """List the instruction set, or describe one MNEMONIC."""
    if markdown:
        from ferryvm.isa.manual import markdown as render

        click.echo(render(), nl=False)
    elif mnemonic is None:
        for row in INSTRUCTIONS:
            click.echo(f"{row.mnemonic:24} {row.effect:38} {row.summary}")
    elif mnemonic in BY_MNEMONIC:
        click.echo(_describe(BY_MNEMONIC[mnemonic]))
    else:
        raise UnknownNameError("instruction", mnemonic, BY_MNEMONIC)


def _describe(row: Instruction) -> str:
    from ferryvm.isa.reference import meaning

    immediate = "" if row.immediate is Immediate.NONE else f"\nimmediate: {row.immediate.value}"
    lines = "\n".join(f"    {line}" for line in meaning(row))
    return f"{row.mnemonic}  {row.effect}\n{row.summary}{immediate}\nmeaning:\n{lines}"


def print_table(table: Table) -> None:
    """Print a table on standard output."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = 400  # a pipe has no width, and no cell must be truncated there
    console.print(table)


backends_option = click.option(
    "--backends", default="all", show_default=True, metavar="A,B,...", help="Backends to compare."
)
"""For commands that compare; `chosen_backends` reads it."""

against_option = click.option(
    "--against",
    default="reference",
    show_default=True,
    metavar="NAME",
    help="Backend that they are held against.",
)


def chosen_backends(registry: Registry, text: str) -> tuple[str, ...]:
    """The backends that `--backends` names; `all` means those that are usable here.

    Unusable ones are reported on standard error with their reasons, and are errors if they are
    named.
    """
    if text != "all":
        return tuple(text.split(","))
    usable = []
    for line in registry.listings():
        if line.reason is None:
            usable.append(line.name)
        elif line.state is not Availability.FORBIDDEN:  # the user excluded it
            click.echo(f"ferry: left out of all: {line.reason}", err=True)
    return tuple(usable)
