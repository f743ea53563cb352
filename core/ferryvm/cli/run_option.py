# SPDX-License-Identifier: Apache-2.0
"""The options of `ferry run` and `ferry resume`, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm import record

if TYPE_CHECKING:
    from pathlib import Path

    from ferryvm.machine.memory import Limits


@record.dataclass(frozen=True)
class Options:
    """Their values; the defaults are those of options that are not given. `ferryvm.cli.run`
    declares them for the command line."""

    backend: str | None = None
    device: str | None = None
    policy: Path | None = None
    hosts: tuple[str, ...] = ()
    trace: Path | None = None
    fuel: int | None = None
    count: bool = False
    check: str | None = None
    save: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    stats: str | None = None
    limits: Limits | None = None
    arguments: tuple[str, ...] = ()
    """The program's."""
