# SPDX-License-Identifier: Apache-2.0
"""The option `--device`, for all commands that have `--backend`."""

from __future__ import annotations

import click

device_option = click.option(
    "--device",
    "--machine",
    metavar="NAME",
    help="What --backend compiles for: a device of opencl; a machine of vliw, or its file.",
)


def check_device_option(backend: str | None, device: str | None) -> None:
    """Raise UsageError for `--device` without a name, or without its backend."""
    if device is not None and backend is None:
        raise click.UsageError("--device says what a backend compiles for: add --backend NAME")
    if device == "":
        raise click.UsageError("--device: found no name")
