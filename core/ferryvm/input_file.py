# SPDX-License-Identifier: Apache-2.0
"""Bounded reads of files that users name: never from a device or a pipe, never without a limit.

Refusals come before the read, in one line.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ferryvm.errors import FerryError

MOST_TEXT = 64 << 20
"""The size limit of a program's source text, in bytes."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bytes(
    path: Path, most: int, magic: bytes = b"", error: type[FerryError] = FerryError
) -> bytes | None:
    """The content of a regular file of at most `most` bytes.

    None if it does not begin with `magic`: then no more than that is read, and the file may be of
    any size and kind. Raises `error`, which names the file and the cause.
    """
    try:
        # Without this a pipe without a writer would block, and a terminal become ours.
        flags = (
            os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
        )
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            kind = _KINDS.get(stat.S_IFMT(found.st_mode))
            if kind is not None:
                raise error(f"{path}: cannot be read: it is {kind}, not a file")
            begin = file.read(len(magic))
            if begin != magic:
                return None
            is_small = found.st_size <= most
            content = begin + file.read(most + 1 - len(begin)) if is_small else begin
    except OSError as failure:
        raise error(f"{path}: cannot be read: {failure.strerror}") from None
    size = max(found.st_size, len(content))
    if size > most:
        raise error(f"{path}: cannot be read: it has {size} bytes, {most} at most are allowed")
    return content


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a file, in UTF-8 with universal newlines. Raises FerryError."""
    content = read_bytes(path, most) or b""
    try:
        text = content.decode("utf-8-sig")  # Windows editors write a byte-order mark
    except UnicodeDecodeError as failure:
        raise FerryError(f"{path}: not UTF-8 text (byte {failure.start})") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
