# SPDX-License-Identifier: Apache-2.0
"""Files named on the command line: their names in messages, and checks of output files.

Reading the files is up to the commands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ferryvm.atomic_file import probe_file
from ferryvm.errors import FerryError


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
