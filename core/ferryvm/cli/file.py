# SPDX-License-Identifier: Apache-2.0
"""Files named on the command line: their names in messages, and checks of output files.

Reading the files is up to the commands.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click

from ferryvm.atomic_file import probe_file
from ferryvm.errors import FerryError

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


@contextlib.contextmanager
def naming(file: Path) -> Iterator[None]:
    """Prefix messages with the file's name unless they begin with it.

    Raises the FerryError that is raised inside, with the name before its message.
    """
    try:
        yield
    except FerryError as error:
        if str(error).startswith(str(file)):
            raise
        raise FerryError(f"{file}: {error}") from error


def refuse_same_file(source: Path, output: Path) -> None:
    """Raise FerryError if writing `output` would destroy `source`."""
    if output.exists() and source.exists() and output.samefile(source):
        raise FerryError(f"{output}: is the input; name another file to write")


def check_writable(path: Path) -> None:
    """Raise FerryError unless the file can be written. Called before the work, so that no time is
    lost."""
    try:
        probe_file(path)
    except OSError as error:
        raise FerryError(f"{path}: cannot be written: {error.strerror}") from None
