# SPDX-License-Identifier: Apache-2.0
"""Options that are a number of seconds."""

from __future__ import annotations

import math

import click


def check_seconds(option: str, value: float | None) -> None:
    """Raise UsageError for `nan` and `inf`, which pass every check of a range."""
    if value is not None and not math.isfinite(value):
        raise click.UsageError(f"{option} is {value}: a number of seconds is expected")
