# SPDX-License-Identifier: Apache-2.0
"""`ferry import`: prove a kernel in a folder, as programs that import it do before they run."""

from __future__ import annotations

from pathlib import Path

import click

from ferryvm.cli.path import FolderPath


@click.command("import")
@click.argument("folder", type=FolderPath())
@click.option("--device", default="", metavar="NAME", help="Part of the name of an OpenCL device.")
@click.option("--unproved", is_flag=True, help="Accept a manifest without golden vectors.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def import_(folder: Path, device: str, unproved: bool, as_json: bool) -> None:
    """Load the kernel in FOLDER, which has a manifest, and try its golden vectors.

    This runs the code that is in the folder. `--hosts FOLDER` offers the kernel to programs.
    """
    from ferryvm.portable.imported.kernel import import_kernel

    kernel = import_kernel(folder, device=device, unproved=unproved)
    if as_json:
        import json

        shown = {
            "name": kernel.name,
            "target": kernel.target,
            "signature": str(kernel.signature),
            "parameters": kernel.parameters,
            "vectors": kernel.vectors,
        }
        click.echo(json.dumps(shown, indent=2))
        return
    passed = f"{kernel.vectors} vectors pass" if kernel.vectors else "not proved: it has no vectors"
    click.echo(f"{folder}: {kernel.name} {kernel.signature}, {passed} ({kernel.target})")
