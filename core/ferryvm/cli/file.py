# SPDX-License-Identifier: Apache-2.0
"""Files that commands are given: their names in messages, and checks of those to be written.

What is in a file is the business of the command; nothing here reads one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ferryvm.atomic_file import probe_file
from ferryvm.errors import FerryError


@contextlib.contextmanager
def naming(file: Path) -> Iterator[None]:
    """Put the file's name before messages about it that do not begin with it.

    Raises the FerryError that is raised under it, with the name in front.
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
    """Raise FerryError unless the file can be written; asked first, so nothing runs in vain."""
    try:
        probe_file(path)
    except OSError as error:
        raise FerryError(f"{path}: cannot be written: {error.strerror}") from None
