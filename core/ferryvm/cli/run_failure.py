# SPDX-License-Identifier: Apache-2.0
"""Messages of runs that fail: traps, host functions that raise."""

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
"""Size limit in bytes of source files that are read again to show a line."""


class Trapped(click.ClickException):
    """A program trapped, or a host function failed; only the message is shown."""


def host_failure(machine: Machine, error: Exception) -> Trapped | None:
    """The failure to report if a host function raised; None for other errors and for a failure to
    write output."""
    notes = getattr(error, "__notes__", ())  # the program's frames: the function is the user's
    if isinstance(error, BrokenPipeError) or not (notes or machine.status is Status.HOST):
        return None
    name = machine.program.hosts[machine.control.exit_id].name
    if isinstance(error, HostError):
        message = str(error)
    elif machine.status is Status.TRAP:  # thrown again by the program, maybe after other host calls
        message = f"a host function raised {described(error)}"
    elif isinstance(error, FerryError) or name in STANDARD:
        return None
    else:
        message = f"host function {name} raised {described(error)}"
    position = machine.position
    where = position or f"pc {machine.control.pc}"
    text = "\n".join((f"{where}: {message}", *map(str, notes)))
    return Trapped(with_source_line(text, position))


def with_source_line(message: str, position: Position | None) -> str:
    """`message` with the source line that it is about below its first line, if that can be read."""
    if position is None:
        return message
    path = Path(position.file)
    # An image may name any file, also an endless or huge one.
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
