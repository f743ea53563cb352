# SPDX-License-Identifier: Apache-2.0
"""`ferry asm`, `compile`, `dis`, `verify`: programs from one form into another."""

from __future__ import annotations

from pathlib import Path

import click

import ferryvm
from ferryvm.cli.device import check_device_option, device_option
from ferryvm.cli.file import naming, refuse_same_file
from ferryvm.errors import FerryError
from ferryvm.verify import verify as check

_FILE = click.Path(path_type=Path)


def _write_image(source: Path, output: Path | None, optimize: bool) -> None:
    output = output or source.with_suffix(".fvm")
    refuse_same_file(source, output)
    with naming(source):
        program = ferryvm.read(source, optimize=optimize)
        check(program)
    ferryvm.save(program, output)


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
    _write_image(file, output, peephole)


@click.command("compile")
@click.argument("file", type=_FILE)
@click.option("-o", "--output", type=_FILE, help="Image to write (FILE with suffix .fvm).")
@click.option(
    "--peephole/--no-peephole",
    default=None,
    help="Optimise the code (on for Skiff, off for assembly).",
)
@click.option("--regions", is_flag=True, help="List the regions of FILE; write nothing.")
@click.option(
    "--emit",
    metavar="STAGE",
    help="Print how a region is compiled, and write nothing: ir, or a stage of a compiler "
    "(llvm, optimized, asm, opencl, vliw).",
)
@click.option(
    "--html", type=_FILE, metavar="FILE", help="Draw the stage in a page instead of printing it."
)
@click.option("--region", metavar="NAME", help="Region to be shown (program: the whole).")
@click.option(
    "--backend",
    metavar="NAME",
    help="Compiler whose stage is shown (the first that has it, llvm before others).",
)
@device_option
@click.option("--optimize", type=click.IntRange(0, 3), help="Level of its optimiser (2).")
def compile_(
    file: Path,
    output: Path | None,
    peephole: bool | None,
    regions: bool,
    emit: str | None,
    html: Path | None,
    region: str | None,
    backend: str | None,
    device: str | None,
    optimize: int | None,
) -> None:
    """Compile FILE (.skiff) into an image.

    With --regions or --emit any program (.skiff, .fasm, .fvm) is shown instead.
    """
    asked = [name for name, given in (("--regions", regions), ("--emit", emit)) if given]
    if output is not None and asked:
        raise click.UsageError(f"{asked[0]} writes no image: leave out --output")
    texts = {"--region": region, "--backend": backend, "--device": device}
    shown: dict[str, object] = {"--html": html, **texts, "--optimize": optimize}
    for name, given in shown.items():
        if given is not None and emit is None:
            raise click.UsageError(f"{name} says what --emit shows: add --emit STAGE")
    check_device_option(backend, device)
    if len(asked) > 1:
        raise click.UsageError("--regions and --emit show different things: leave out one")
    if asked:
        from ferryvm.cli import emit as shower  # loads no compiler where an image is made

        if emit is None:
            shower.show_regions(file, peephole)
        else:
            level = 2 if optimize is None else optimize
            region_name = region or "program"
            shower.emit(file, emit, region_name, backend, device or "", level, peephole, html)
        return
    _check_suffix(file, ".skiff", "`ferry asm` takes .fasm")
    _write_image(file, output, peephole is not False)


@click.command("dis")
@click.argument("file", type=_FILE)
def disassemble(file: Path) -> None:
    """Print FILE (.fvm, .skiff or .fasm) as assembly."""
    with naming(file):
        program = ferryvm.read(file)
        check(program)
        text = ferryvm.disassemble(program)
    click.echo(text, nl=False)


@click.command()
@click.argument("files", type=_FILE, nargs=-1, required=True)
def verify(files: tuple[Path, ...]) -> None:
    """Check that FILES (.fvm, .skiff, .fasm) are programs that can run; silent if they are."""
    faults = []
    for file in files:
        try:
            with naming(file):
                check(ferryvm.read(file))
        except FerryError as error:
            faults.append(str(error))
    if faults:
        raise FerryError("\n".join(faults))
