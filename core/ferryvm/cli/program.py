# SPDX-License-Identifier: Apache-2.0
"""`ferry asm`, `compile`, `dis`, `verify`: conversions between forms of programs."""

from __future__ import annotations

from pathlib import Path

import click

import ferryvm
from ferryvm.cli.device import check_device_option
from ferryvm.cli.file import naming, refuse_same_file
from ferryvm.cli.option import device_option, language_option
from ferryvm.cli.path import FILE
from ferryvm.errors import FerryError
from ferryvm.language import IMAGE
from ferryvm.verify import verify as check


def _write_image(
    source: Path, output: Path | None, optimize: bool | None, language: str | None
) -> None:
    if language is None and source.suffix == IMAGE:
        raise FerryError(f"{source}: is an image already; a text is expected")
    output = output or source.with_suffix(IMAGE)
    refuse_same_file(source, output)
    with naming(source):
        program = ferryvm.read(source, optimize, language)
        check(program)
    ferryvm.save(program, output)


@click.command("asm")
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="Image to write (FILE with suffix .fvm).")
@click.option("--peephole/--no-peephole", default=False, help="Optimise the code (off).")
def assemble(file: Path, output: Path | None, peephole: bool) -> None:
    """Assemble FILE (.fasm) into an image."""
    if file.suffix != ".fasm":
        raise FerryError(f"{file}: a .fasm file expected; `ferry compile` takes other languages")
    _write_image(file, output, peephole, "assembly")


@click.command("compile")
@click.argument("file", type=FILE)
@click.option("-o", "--output", type=FILE, help="Image to write (FILE with suffix .fvm).")
@click.option(
    "--peephole/--no-peephole",
    default=None,
    help="Optimise the code (on for Skiff, off for assembly).",
)
@language_option
@click.option("--regions", is_flag=True, help="List the regions of FILE; write nothing.")
@click.option(
    "--emit",
    metavar="STAGE",
    help="Print how a region is compiled, and write nothing: ir, or a stage of a compiler "
    "(llvm, optimized, asm, opencl, vliw).",
)
@click.option(
    "--html", type=FILE, metavar="FILE", help="Draw the stage in a page instead of printing it."
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
    language: str | None,
    regions: bool,
    emit: str | None,
    html: Path | None,
    region: str | None,
    backend: str | None,
    device: str | None,
    optimize: int | None,
) -> None:
    """Compile FILE (.skiff, or another language) into an image.

    With --regions or --emit a program (also .fvm) is shown instead.
    """
    chosen = [name for name, given in (("--regions", regions), ("--emit", emit)) if given]
    if output is not None and chosen:
        raise click.UsageError(f"{chosen[0]} writes no image: leave out --output")
    texts = {"--region": region, "--backend": backend, "--device": device}
    shown: dict[str, object] = {"--html": html, **texts, "--optimize": optimize}
    for name, given in shown.items():
        if given is not None and emit is None:
            raise click.UsageError(f"{name} says what --emit shows: add --emit STAGE")
    check_device_option(backend, device)
    if len(chosen) > 1:
        raise click.UsageError("--regions and --emit show different things: leave out one")
    if chosen:
        from ferryvm.cli import emit as shower  # makes an image without loading a compiler

        if emit is None:
            shower.show_regions(file, peephole, language)
        else:
            level = 2 if optimize is None else optimize
            region_name = region or "program"
            on = device or ""
            shower.emit(file, emit, region_name, backend, on, level, peephole, language, html)
        return
    _write_image(file, output, peephole, language)


@click.command("dis")
@click.argument("file", type=FILE)
@language_option
def disassemble(file: Path, language: str | None) -> None:
    """Print FILE (.fvm, .skiff, .fasm, or another language) as assembly."""
    with naming(file):
        program = ferryvm.read(file, language=language)
        check(program)
        text = ferryvm.disassemble(program)
    click.echo(text, nl=False)


@click.command()
@click.argument("files", type=FILE, nargs=-1, required=True)
@language_option
def verify(files: tuple[Path, ...], language: str | None) -> None:
    """Check that FILES (.fvm, .skiff, .fasm, or another language) are programs that can run;
    silent if they are."""
    faults = []
    for file in files:
        try:
            with naming(file):
                check(ferryvm.read(file, language=language))
        except FerryError as error:
            faults.append(str(error))
    if faults:
        raise FerryError("\n".join(faults))
