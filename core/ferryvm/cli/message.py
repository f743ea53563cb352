# SPDX-License-Identifier: Apache-2.0
"""Lines of the command on its standard streams."""

from __future__ import annotations

import sys

_ESCAPE = "\x1b"


def say(text: str, is_error: bool = False) -> None:
    """Write a line to standard output, or to standard error, as `click.echo` does; click is loaded
    only for escape sequences, and for streams that are closed or not in UTF-8."""
    stream = sys.stderr if is_error else sys.stdout
    if str(getattr(stream, "encoding", None)).lower() == "utf-8" and _ESCAPE not in text:
        stream.write(f"{text}\n")
        stream.flush()
        return
    import click

    click.echo(text, err=is_error)
