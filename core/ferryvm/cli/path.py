# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and options that name files and folders, with the names' faults."""

from __future__ import annotations

import os
from pathlib import Path

import click

_Given = str | os.PathLike[str]


class FolderPath(click.Path):
    """A path that is not empty: that would be the current folder."""

    expected = "a folder is expected, `.` for the current one"

    def __init__(self, dir_okay: bool = True) -> None:
        super().__init__(path_type=Path, dir_okay=dir_okay)

    def convert(
        self, value: _Given, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail(f"it is empty; {self.expected}", param, ctx)
        return super().convert(value, param, ctx)


class FilePath(FolderPath):
    """A path that ends in a name: `.` and `/` have none."""

    expected = "a file is expected"

    def convert(
        self, value: _Given, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if os.fspath(value) and not Path(value).name:
            self.fail(f"{os.fspath(value)!r} is a folder; {self.expected}", param, ctx)
        return super().convert(value, param, ctx)


FILE = FilePath()
"""The type of arguments and options that name files."""
