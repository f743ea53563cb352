# SPDX-License-Identifier: Apache-2.0
"""The option `--device`, for all commands that have `--backend`."""

from __future__ import annotations


def check_device_option(backend: str | None, device: str | None) -> None:
    """Raise UsageError for `--device` without a name, or without its backend."""
    if device is None or (backend is not None and device):
        return
    import click  # loaded only to refuse: see `direct`

    if backend is None:
        raise click.UsageError("--device says what a backend compiles for: add --backend NAME")
    raise click.UsageError("--device: found no name")
