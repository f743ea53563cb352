# SPDX-License-Identifier: Apache-2.0
"""`ferry policy`: check a policy, show one, list facts, print the schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.cli.path import FILE
from ferryvm.errors import FerryError, first_of

if TYPE_CHECKING:
    from ferryvm.policy.check import KnownBackends


@click.group()
def policy() -> None:
    """Check and show policies, which select backends. docs/policies.md explains how to write
    one."""


@policy.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
def check(files: tuple[Path, ...]) -> None:
    """Check FILES; silent if they are good.

    A fault is one line with file, line, column and key; the first twenty of a file are shown.
    Warnings alone leave the exit code 0.
    """
    from ferryvm.policy.check import read

    known = _known()
    errors = []
    for file in files:
        try:
            reading = read(file, known)
        except FerryError as error:
            errors.append(str(error))
            continue
        for line in first_of([placed for placed in reading.faults if placed.fault.is_warning]):
            click.echo(f"ferry: {line}", err=True)
        errors += first_of([placed for placed in reading.faults if not placed.fault.is_warning])
    if errors:
        raise FerryError("\n".join(errors))


@policy.command()
@click.argument("file", type=FILE, required=False)
def show(file: Path | None) -> None:
    """Print the default policy with its comments, or FILE with the keys that it omits."""
    from ferryvm.policy import DEFAULT

    if file is None:
        click.echo(DEFAULT.read_text(encoding="utf-8"), nl=False)
        return
    from ferryvm.policy.check import load
    from ferryvm.policy.writer import write

    click.echo(write(load(file, _known())), nl=False)


def _known() -> KnownBackends:
    """All backends, including those not usable here: a policy may be for another machine."""
    from ferryvm.backend import BackendError, Compiler, Interpreter
    from ferryvm.policy.check import KnownBackends
    from ferryvm.registry import Registry

    registry = Registry()
    interpreters: list[str] = []
    compilers: list[str] = []
    without_cells: list[str] = []
    for name in registry.names:
        try:
            backend = registry.get(name)
        except BackendError:
            continue  # its kind is not known
        (compilers if isinstance(backend, Compiler) else interpreters).append(name)
        if isinstance(backend, Interpreter) and not backend.capabilities.cells:
            without_cells.append(name)
    return KnownBackends(registry.names, interpreters, compilers, without_cells)


@policy.command()
def facts() -> None:
    """List the facts that rules can test; those of the machine with their values here."""
    from rich.table import Table

    from ferryvm.cli.show import print_table
    from ferryvm.policy import fact, here

    machine, meanings = here(), fact.meanings()
    table = Table("fact", "is", "meaning", box=None)
    for name, one in fact.vocabulary().items():
        first, _, rest = name.partition(".")
        value = f" Here: {getattr(machine, rest)}." if first == fact.MACHINE else ""
        table.add_row(name, one.type.value, meanings[name] + value)
    print_table(table)


@policy.command()
@click.option("-o", "--output", type=FILE, help="File to write instead of standard output.")
@click.option("--markdown", is_flag=True, help="Print the tables of docs/policies.md instead.")
def schema(output: Path | None, markdown: bool) -> None:
    """Print the JSON schema of policies, for editors."""
    import json

    from ferryvm.atomic_file import replace_file
    from ferryvm.cli.file import check_writable
    from ferryvm.policy import schema as made

    text = made.markdown() if markdown else json.dumps(made.json_schema(), indent=2)
    if output is None:
        click.echo(text)
    else:
        check_writable(output)
        replace_file(output, f"{text}\n".encode())
