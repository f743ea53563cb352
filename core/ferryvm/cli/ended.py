# SPDX-License-Identifier: Apache-2.0
"""How runs end that do not end well."""

from __future__ import annotations

import click


class Interrupted(click.ClickException):
    """A run was interrupted; click would hide the place behind an `Abort` of its own."""


class Trapped(click.ClickException):
    """A program trapped; the message is all that is shown of it."""
