# SPDX-License-Identifier: Apache-2.0
"""From a file to what it means: text, document, and every fault with its place."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ferryvm.errors import FerryError, Position
from ferryvm.toml.fault import DocumentError, Fault, Path, PlacedFault
from ferryvm.toml.position import Place, places
from ferryvm.toml.syntax import syntax_fault
from ferryvm.toml.table import Table

_LOG = logging.getLogger(__name__)

Value = TypeVar("Value")

Judge = Callable[[dict[str, Any]], tuple[Value | None, Iterable[Fault]]]
"""From a document to what it means, None if it has errors, and to its faults."""


def text_of(path: FilePath) -> str:
    """The text of a file. Raises FerryError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")  # Windows editors put a mark in front
    except OSError as error:
        raise FerryError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FerryError(f"{path}: not UTF-8 text (byte {error.start})") from None


def examine(
    text: str, file: str, keys: type[Table], judge: Judge[Value]
) -> tuple[Value | None, tuple[PlacedFault, ...]]:
    """What a text means, None if it has errors, and its faults in the order of the text.

    `file` is what messages call it, `keys` are what it may have.
    """
    try:
        return _examine(text, file, keys, judge)
    except RecursionError:
        return None, (PlacedFault(Position(file, 1, 1), Fault((), "nested too deeply")),)


def _examine(
    text: str, file: str, keys: type[Table], judge: Judge[Value]
) -> tuple[Value | None, tuple[PlacedFault, ...]]:
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # not TOML, or an integer of thousands of digits
        (line, column), said = syntax_fault(error, text, keys)
        return None, (PlacedFault(Position(file, line, column), said),)
    where = places(text)
    value, faults = judge(document)
    placed = [PlacedFault(_position(file, where, one.path), one) for one in faults]
    return value, tuple(sorted(placed, key=lambda one: one.position))


def _position(file: str, where: Mapping[Path, Place], path: Path) -> Position:
    """The place of a key, or of what it is in where it stands nowhere itself."""
    if path not in where and path and isinstance(path[-1], str):
        path = (*path[:-1], *path[-1].split("."))  # a name with dots, written as dotted keys
    while path and path not in where:
        path = path[:-1]
    line, column = where.get(path, (1, 1))
    return Position(file, line, column)


def settle(value: Value | None, faults: Sequence[PlacedFault], error: type[DocumentError]) -> Value:
    """What `examine` found, if it can be used: warnings go to the log. Raises `error` with all else."""
    if value is None:
        raise error([placed for placed in faults if not placed.fault.is_warning])
    for warning in faults:
        _LOG.warning("%s", warning)
    return value
