# SPDX-License-Identifier: Apache-2.0
"""The in-tree plugin if there is no other, found without `importlib.metadata`.

That module takes a tenth of the time of a small program, and most users have no plugin. In any
unusual case (another finder, a file on the path, an unreadable folder, a second distribution with
the group), the result is None and `importlib.metadata` is used.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

from ferryvm.named_tuple import NamedTuple

_METADATA = (".dist-info", ".egg-info")
_POINTS = "entry_points.txt"


class OwnPlugin(NamedTuple):
    """The one entry point of a group."""

    name: str
    module: str
    version: str


def alone(group: str, distribution: str) -> OwnPlugin | None:
    """The entry point of `distribution`, a module, if it is the only one in the group; None if
    `importlib.metadata` has to decide."""
    if any(hasattr(f, "find_distributions") and f is not PathFinder for f in sys.meta_path):
        return None
    header = f"[{group}]"
    found: list[tuple[str, str]] = []
    try:
        for folder in sys.path:
            for name in _names(folder or "."):
                if name.endswith(".egg"):
                    return None
                if name.endswith(_METADATA):
                    text = _text(os.path.join(folder, name, _POINTS))
                    if header in text:
                        found.append((name, text))
    except (OSError, UnicodeError):
        return None
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
