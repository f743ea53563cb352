# SPDX-License-Identifier: Apache-2.0
"""Messages and exit codes of runs that fail."""

from __future__ import annotations

import click


class Interrupted(click.ClickException):
    """A run was interrupted; click would hide the place behind an `Abort` of its own."""


class Trapped(click.ClickException):
    """A program trapped; the message is all that is shown of it."""


def exit_code(given: object) -> int | None:
    """The exit code that a command returned or gave to `sys.exit`; None if it is none."""
    if given is None:
        return 0
    return given if type(given) is int and 0 <= given <= 255 else None
