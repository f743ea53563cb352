# SPDX-License-Identifier: Apache-2.0
"""`ferry asm`, `compile`, `dis`, `verify`: programs from one form into another."""

from __future__ import annotations

from pathlib import Path

import click

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.verify import verify as check

_FILE = click.Path(path_type=Path)


def _write_image(program: ferryvm.Program, source: Path, output: Path | None) -> None:
    check(program)
    ferryvm.save(program, output or source.with_suffix(".fvm"))


def _check_suffix(file: Path, suffix: str, other: str) -> None:
    if file.suffix != suffix:
        raise FerryError(f"{file}: a {suffix} file expected; {other}")


@click.command("asm")
@click.argument("file", type=_FILE)
@click.option("-o", "--output", type=_FILE, help="Image to write (FILE with suffix .fvm).")
@click.option("--peephole/--no-peephole", default=False, help="Optimise the code (off).")
def assemble(file: Path, output: Path | None, peephole: bool) -> None:
    """Assemble FILE (.fasm) into an image."""
    _check_suffix(file, ".fasm", "`ferry compile` takes .skiff")
    _write_image(ferryvm.read(file, optimize=peephole), file, output)


@click.command("compile")
@click.argument("file", type=_FILE)
@click.option("-o", "--output", type=_FILE, help="Image to write (FILE with suffix .fvm).")
@click.option("--peephole/--no-peephole", default=True, help="Optimise the code (on).")
def compile_(file: Path, output: Path | None, peephole: bool) -> None:
    """Compile FILE (.skiff) into an image."""
    _check_suffix(file, ".skiff", "`ferry asm` takes .fasm")
    _write_image(ferryvm.read(file, optimize=peephole), file, output)


@click.command("dis")
@click.argument("file", type=_FILE)
def disassemble(file: Path) -> None:
    """Print FILE (.fvm, .skiff or .fasm) as assembly."""
    program = ferryvm.read(file)
    check(program)
    click.echo(ferryvm.disassemble(program), nl=False)


@click.command()
@click.argument("files", type=_FILE, nargs=-1, required=True)
def verify(files: tuple[Path, ...]) -> None:
    """Check that FILES (.fvm, .skiff, .fasm) are programs that can run; silent if they are."""
    faults = []
    for file in files:
        try:
            check(ferryvm.read(file))
        except FerryError as error:
            text = str(error)
            faults.append(text if text.startswith(str(file)) else f"{file}: {text}")
    if faults:
        raise FerryError("\n".join(faults))
