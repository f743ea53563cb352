# SPDX-License-Identifier: Apache-2.0
"""The in-tree plugin if there is no other, found without `importlib.metadata`.

That module takes a tenth of the time of a small program, and most users have no plugin. In any
unusual case (another finder, a file on the path, an unreadable folder, a second distribution with
the group), the result is None and `importlib.metadata` is used.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from importlib.machinery import PathFinder

from ferryvm.named_tuple import NamedTuple

_METADATA = (".dist-info", ".egg-info")
_POINTS = "entry_points.txt"
_MOMENT = 2_000_000_000
"""Nanoseconds: file systems note times in steps of up to two seconds."""


class OwnPlugin(NamedTuple):
    """The one entry point of a group."""

    name: str
    module: str
    version: str


def alone(group: str, distribution: str) -> OwnPlugin | None:
    """The entry point of `distribution`, a module, if it is the only one in the group; None if
    `importlib.metadata` has to decide.

    What was found is kept as long as the folders on the path are as they were: an engine is made in
    less time than it takes to read what a hundred distributions say of themselves.
    """
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return None
    try:
        path = tuple(map(_stamp, sys.path))
        # What changes twice in a moment may have one time: only what is older is kept.
        is_old = max((changed for *_, changed in path), default=0) < time.time_ns() - _MOMENT
        found = _found if is_old else _found.__wrapped__
        return found(group, distribution, path)
    except (OSError, UnicodeError):
        return None


Stamp = tuple[str, int, int, int]
"""A folder on the path, the file system's numbers for it, and when something was added to it or
removed from it."""


def _stamp(folder: str) -> Stamp:
    try:
        now = os.stat(folder or ".")
    except FileNotFoundError:
        return folder, 0, 0, 0
    return folder, now.st_dev, now.st_ino, now.st_mtime_ns


@functools.lru_cache(maxsize=4)
def _found(group: str, distribution: str, path: tuple[Stamp, ...]) -> OwnPlugin | None:
    header = f"[{group}]"
    found: list[tuple[str, str]] = []
    for folder, *_ in path:
        for name in _names(folder or "."):
            if name.endswith(".egg"):
                return None
            if name.endswith(_METADATA):
                text = _text(os.path.join(folder, name, _POINTS))
                if header in text:
                    found.append((name, text))
    if len(found) != 1:
        return None
    ((name, text),) = found
    version = name.removeprefix(f"{distribution}-").removesuffix(".dist-info")
    point, _, module = text.partition(header)[2].partition("[")[0].partition("=")
    point, module = point.strip(), module.strip()
    is_usual = name == f"{distribution}-{version}.dist-info" and version
    if not is_usual or not point.isidentifier() or not module.replace(".", "_").isidentifier():
        return None
    return OwnPlugin(point, module, version)


def _names(folder: str) -> list[str]:
    """Names in a folder of the path; empty if there is no such folder."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _text(file: str) -> str:
    """The entry points of a distribution; nothing if it has none."""
    try:
        with open(file, encoding="utf-8") as points:
            return points.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
