# SPDX-License-Identifier: Apache-2.0
"""From a file to its value: text, document, and every fault with its position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar

import tomli

from ferryvm.errors import Position, first_of
from ferryvm.garbage import collector_suspended
from ferryvm.input_file import read_text
from ferryvm.notice import Log
from ferryvm.toml.fault import DocumentError, Path, PlacedFault, TomlFault
from ferryvm.toml.position import Place, places
from ferryvm.toml.syntax import deep_key, syntax_fault
from ferryvm.toml.table import Table

_LOG = Log(__name__)

MOST_BYTES = 16 << 20
"""The largest file that is read: 100,000 rules of a policy take 9 MB."""

Value = TypeVar("Value")

Judge = Callable[[dict[str, Any]], tuple[Value | None, Iterable[TomlFault]]]
"""Turns a document into its value, None if it has errors, and its faults."""


def text_of(path: FilePath) -> str:
    """The text of a file. Raises FerryError if it cannot be read."""
    return read_text(path, MOST_BYTES)


def examine(
    text: str, file: str, keys: type[Table], judge: Judge[Value]
) -> tuple[Value | None, tuple[PlacedFault, ...]]:
    """The document of a text, None if it has errors, and its faults in the order of the text.

    `file` is its name in messages, `keys` are the allowed keys.
    """
    try:
        with collector_suspended():
            return _examine(text, file, keys, judge)
    except RecursionError:
        return None, (PlacedFault(Position(file, 1, 1), TomlFault((), "nested too deeply")),)


def _examine(
    text: str, file: str, keys: type[Table], judge: Judge[Value]
) -> tuple[Value | None, tuple[PlacedFault, ...]]:
    deep = deep_key(text)
    if deep is not None:
        return None, (PlacedFault(Position(file, *deep.place), deep.fault),)
    try:
        document = tomli.loads(text)
    except ValueError as error:  # not TOML, or an integer of thousands of digits
        (line, column), said = syntax_fault(error, text, keys)
        return None, (PlacedFault(Position(file, line, column), said),)
    value, found = judge(document)
    faults = list(found)
    where = places(text) if faults else {}  # takes as long as parsing it
    placed = [PlacedFault(_position(file, where, one.path), one) for one in faults]
    return value, tuple(sorted(placed, key=lambda one: one.position))


def _position(file: str, where: Mapping[Path, Place], path: Path) -> Position:
    """The position of a key, or of its container if it is not written itself."""
    if path not in where and path and isinstance(path[-1], str):
        path = (*path[:-1], *path[-1].split("."))  # a name with dots may be written as dotted keys
    while path and path not in where:
        path = path[:-1]
    line, column = where.get(path, (1, 1))
    return Position(file, line, column)


def settle(value: Value | None, faults: Sequence[PlacedFault], error: type[DocumentError]) -> Value:
    """The document that `examine` found, if it has no errors: warnings are logged. Raises `error`
    with all others."""
    if value is None:
        raise error([placed for placed in faults if not placed.fault.is_warning])
    for line in first_of(faults):
        _LOG.warning("%s", line)
    return value
