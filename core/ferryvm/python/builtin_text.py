# SPDX-License-Identifier: Apache-2.0
"""Functions of texts and bytes that are Python functions of the subset, see `builtin_list`."""

from __future__ import annotations

from typing import Any


def has_text(wanted: Any, text: Any) -> Any:
    """True if a text is a part of another one."""
    size = len(wanted)
    for start in range(len(text) - size + 1):
        at = 0
        while at < size and text[start + at] == wanted[at]:
            at += 1
        if at == size:
            return True
    return False


def has_byte(wanted: Any, values: Any) -> Any:
    """True if a number is among bytes."""
    if wanted < 0 or wanted > 255:
        raise ValueError(f"{wanted} is no byte")
    for value in values:  # noqa: SIM110  # it is code of the subset
        if value == wanted:
            return True
    return False
