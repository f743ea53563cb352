# SPDX-License-Identifier: Apache-2.0
"""The progress of long maps, shown in a terminal: `with ferryvm.progress(): ...`.

A map runs in parts then, between which its bar moves. Without the context a map is one launch.
"""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator
from typing import Protocol

SECONDS = 0.1
"""The time that a part takes, about."""

FIRST = 1 << 10
"""Items of the first part."""


class Bar(Protocol):
    """A bar for each map."""

    def add_task(self, description: str, *, total: int) -> object:
        """A new bar."""

    def advance(self, task: object, by: int) -> None:
        """Move a bar on by a number of items."""


class ShownProgress:
    """Shows the progress of maps."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def parts(self, name: str, count: int) -> Iterator[tuple[int, int]]:
        """The parts of a map of a function over a number of items: the first item, and the one
        after the last. The time between two parts determines the size of the next."""
        task = self._bar.add_task(f"map of {name}", total=count)
        first, size = 0, FIRST
        while first < count:
            end, began = min(first + size, count), time.perf_counter()
            yield first, end
            taken = max(time.perf_counter() - began, 1e-6)
            self._bar.advance(task, end - first)
            size = max(int(size * min(SECONDS / taken, 8)), 1)
            first = end


shown_progress: contextvars.ContextVar[ShownProgress | None] = contextvars.ContextVar(
    "shown_progress", default=None
)
"""The display of the progress of maps in this context."""


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """A context in which maps of Python functions show a bar with their progress and the time that
    is left, on standard error. Maps run in parts then, so those of less than a second take a little
    longer.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        token = shown_progress.set(ShownProgress(bar))  # type: ignore[arg-type]  # its tasks are numbers
        try:
            yield
        finally:
            shown_progress.reset(token)
