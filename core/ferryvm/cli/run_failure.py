# SPDX-License-Identifier: Apache-2.0
"""Messages and exit codes of runs that fail: traps, interrupts, host functions that raise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferryvm.errors import Diagnostic, FerryError, Position
from ferryvm.failure import described
from ferryvm.machine.control import Status
from ferryvm.machine.host import STANDARD, HostError

if TYPE_CHECKING:
    from ferryvm.machine.state import Machine

_LARGEST_SOURCE = 16 << 20
"""Bytes of a source file that is read again to show a line of it."""


class Interrupted(click.ClickException):
    """A run was interrupted; click would hide the place behind an `Abort` of its own."""


class Trapped(click.ClickException):
    """A program trapped, or what it called failed; the message is all that is shown of it."""


def host_failure(machine: Machine, error: Exception) -> Trapped | None:
    """The failure to tell where a host function raised; None for any other error, and where what
    the program writes cannot be written."""
    notes = getattr(error, "__notes__", ())  # the program's frames: it is a user's function's
    if isinstance(error, BrokenPipeError) or not (notes or machine.status is Status.HOST):
        return None
    name = machine.program.hosts[machine.control.exit_id].name
    if isinstance(error, HostError):
        message = str(error)
    elif isinstance(error, FerryError) or name in STANDARD:
        return None
    else:
        message = f"host function {name} raised {described(error)}"
    position = machine.position
    where = position or f"pc {machine.control.pc}"
    text = "\n".join((f"{where}: {message}", *map(str, notes)))
    return Trapped(with_source_line(text, position))


def with_source_line(message: str, position: Position | None) -> str:
    """`message` with the line that it is about below its first one, where that can be read."""
    if position is None:
        return message
    path = Path(position.file)
    # An image may name any file at all: nothing endless, nothing huge.
    if not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
        return message
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError):
        return message
    if position.line > len(lines):
        return message
    head, _, rest = message.partition("\n")
    text = head.removeprefix(f"{position}: ")
    shown = Diagnostic(position, text, lines[position.line - 1].rstrip("\r"))
    return f"{shown}\n{rest}"


def exit_code(given: object) -> int | None:
    """The exit code that a command returned or gave to `sys.exit`; None if it is none."""
    if given is None:
        return 0
    return given if type(given) is int and 0 <= given <= 255 else None
