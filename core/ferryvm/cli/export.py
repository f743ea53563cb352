# SPDX-License-Identifier: Apache-2.0
"""`ferry export`: a part of a program as files for programs without ferryvm."""

from __future__ import annotations

from pathlib import Path

import click

import ferryvm
from ferryvm.cli.file import naming
from ferryvm.cli.option import language_option
from ferryvm.cli.path import FILE, FolderPath
from ferryvm.verify import verify


@click.command("export")
@click.argument("file", type=FILE)
@click.option(
    "--region", required=True, metavar="NAME", help="Region to export: see --regions of compile."
)
@click.option(
    "--target",
    default="c",
    metavar="NAME",
    help="Form of the code: c, llvm, opencl, ptx, spirv, wasm (c).",
)
@click.option(
    "-o", "--output", type=FolderPath(), required=True, metavar="DIR", help="Folder to write."
)
@click.option("--as", "name", metavar="NAME", help="Name of the exported function.")
@click.option("--vectors", type=click.IntRange(1, 100_000), help="Golden vectors to make (60).")
@click.option("--seed", type=int, default=1, help="Seed of their random inputs (1).")
@click.option(
    "--optimize",
    type=click.IntRange(0, 3),
    default=2,
    help="Level of the passes (2); at 0 the code is nearest to the program.",
)
@click.option(
    "--group",
    type=click.IntRange(1),
    metavar="N",
    help="Members of a group of a kernel, as a constant (an argument).",
)
@click.option(
    "--fold",
    "fold",
    multiple=True,
    metavar="NAME=VALUE",
    help="Make a number that is an argument a constant; may be given several times.",
)
@language_option
def export(
    file: Path,
    region: str,
    target: str,
    output: Path,
    name: str | None,
    vectors: int | None,
    seed: int,
    optimize: int,
    fold: tuple[str, ...],
    group: int | None,
    language: str | None,
) -> None:
    """Export a region of FILE as a function with plain arguments, and a proof.

    The folder has the code, a manifest, golden vectors of the reference interpreter, and programs
    that check the code with them: `make check`.
    """
    from ferryvm.portable import ExportOptions, export_region
    from ferryvm.portable.folder import VECTORS

    constants: dict[str, str | float] = {}
    for text in fold:
        argument, equals, value = text.partition("=")
        if not (argument and equals and value):
            raise click.UsageError(f"--fold {text}: NAME=VALUE is expected")
        constants[argument] = value
    options = ExportOptions(target, name, seed, vectors, optimize, constants, group)
    with naming(file):
        verified = verify(ferryvm.read(file, language=language))
        made = export_region(verified, region, output, options)
    kilobytes = made.bytes / 1000
    proof = "1 vector" if made.vectors == 1 else f"{made.vectors} vectors"
    if made.dependent and made.vectors < (vectors or VECTORS):
        proof += f" ({made.dependent} launches are none: their items are not independent)"
    click.echo(
        f"{output}: {made.interface.name}, {proof}, {kilobytes:.0f} kB; prove it: make check"
    )
