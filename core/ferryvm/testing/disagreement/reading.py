# SPDX-License-Identifier: Apache-2.0
"""Reading a disagreement's file; every kind of bad file is one clear line."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ferryvm import image
from ferryvm.backend import Forcing
from ferryvm.engine.execution import UNLIMITED
from ferryvm.errors import FerryError, Position, UnknownNameError
from ferryvm.machine.memory import Limits
from ferryvm.program import Program
from ferryvm.testing.bisect import Parting, Way
from ferryvm.testing.disagreement.model import Disagreement
from ferryvm.testing.region import Region
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.state import Difference
from ferryvm.testing.trace import TraceLine

FORMAT = "ferryvm disagreement"
VERSION = 1


class DisagreementError(FerryError):
    """A file is no disagreement that this version can read."""


def load(path: str | Path) -> Disagreement:
    """The disagreement in a file. Raises DisagreementError, naming file and fault."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DisagreementError(f"{path}: cannot be read: {error.strerror}") from None
    return from_text(content, str(path))


def from_text(content: bytes, name: str) -> Disagreement:
    """The disagreement that a file called `name` holds. Raises DisagreementError."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DisagreementError(f"{name}: not a disagreement file: {error}") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise DisagreementError(f'{name}: not a disagreement file: no "format": "{FORMAT}"')
    if value.get("version") != VERSION:
        found = json.dumps(value.get("version"))
        raise DisagreementError(f"{name}: version {found} of the format; this is {VERSION}")
    try:
        return _read(_Node(value, ""))
    except FerryError as error:
        raise DisagreementError(f"{name}: {error}") from None


T = TypeVar("T")


class _Node:
    """An object in the file; what it lacks is told with its place."""

    def __init__(self, value: Any, place: str) -> None:
        self.value, self.place = value, place
        if not isinstance(value, dict):
            raise FerryError(f"{place or 'the file'}: an object expected")

    def _place(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str, kind: type[T]) -> T:
        value = self.value.get(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise FerryError(f"{self._place(key)}: {_KINDS[kind]} expected")
        return value

    def count(self, key: str, most: int = UNLIMITED) -> int:
        value = self.get(key, int)
        if not 0 <= value <= most:
            raise FerryError(f"{self._place(key)}: a number from 0 to {most} expected")
        return value

    def texts(self, key: str) -> list[str]:
        values = self.get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise FerryError(f"{self._place(key)}: texts expected")
        return values

    def words(self, key: str) -> tuple[int, ...]:
        try:
            return tuple(int(text, 16) for text in self.texts(key))
        except ValueError:
            raise FerryError(f"{self._place(key)}: hexadecimal numbers expected") from None

    def rows(self, key: str) -> list[tuple[str, str, str]]:
        found = []
        for row in self.get(key, list):
            if not (
                isinstance(row, list) and len(row) == 3 and all(isinstance(x, str) for x in row)
            ):
                raise FerryError(f"{self._place(key)}: lists of three texts expected")
            found.append((row[0], row[1], row[2]))
        return found

    def one_of(self, key: str, known: type[T]) -> T:
        values = {one.value: one for one in known}  # type: ignore[attr-defined]  # an enum
        text = self.get(key, str)
        if text not in values:
            raise UnknownNameError(self._place(key), text, values)
        found: T = values[text]
        return found

    def node(self, key: str) -> _Node:
        return _Node(self.value.get(key), self._place(key))

    def nodes(self, key: str) -> list[_Node]:
        values = self.get(key, list)
        return [_Node(value, f"{self._place(key)}[{i}]") for i, value in enumerate(values)]

    def has(self, key: str) -> bool:
        return self.value.get(key) is not None


_KINDS: Mapping[type, str] = {str: "a text", int: "a whole number", list: "a list"}


def _read(node: _Node) -> Disagreement:
    limits = node.node("limits")
    kinds = {kind.value: kind for kind in Forcing}
    for text in node.texts("forcing"):
        if text not in kinds:
            raise UnknownNameError("forcing", text, kinds)
    backends = tuple(node.texts("backends"))
    good, bad = node.get("good", str), node.get("bad", str)
    if bad not in backends and bad != good:
        raise FerryError(f"bad: {bad!r} is none of the backends")
    found = node.node("versions")
    return Disagreement(
        _read_program(node),
        Limits(**{key: limits.count(key, 1 << 48) for key in ("stack", "heap", "first_heap")}),
        good,
        bad,
        backends,
        node.one_of("schedule", Schedule),
        node.get("seed", int),
        {key: found.get(key, str) for key in found.value},
        node.count("most"),
        frozenset(kinds[text] for text in node.texts("forcing")),
        _read_difference(node.node("difference")),
        _read_parting(node.node("parting")) if node.has("parting") else None,
        node.get("origin", str) if node.has("origin") else None,
    )


def _read_program(node: _Node) -> Program:
    try:
        content = base64.b64decode("".join(node.texts("image")), validate=True)
    except (binascii.Error, ValueError):
        raise FerryError("image: not base64") from None
    return image.from_bytes(content, "image")


def _read_difference(node: _Node) -> Difference:
    return Difference(node.get("field", str), node.get("good", str), node.get("bad", str))


def _read_parting(node: _Node) -> Parting:
    return Parting(
        node.one_of("way", Way),
        node.get("good", str),
        node.get("bad", str),
        node.count("entered"),
        node.count("number"),
        node.count("pc"),
        node.get("mnemonic", str),
        tuple(
            Region(
                region.get("kind", str),
                region.count("first"),
                region.count("last"),
                region.get("name", str),
                _read_position(region),
            )
            for region in node.nodes("regions")
        ),
        _read_position(node),
        _read_difference(node.node("difference")),
        tuple(_read_line(line) for line in node.nodes("good_trace")),
        tuple(_read_line(line) for line in node.nodes("bad_trace")),
        tuple(node.rows("after")),
    )


def _read_position(parent: _Node) -> Position | None:
    if not parent.has("position"):
        return None
    node = parent.node("position")
    return Position(node.get("file", str), node.count("line"), node.count("column"))


def _read_line(node: _Node) -> TraceLine:
    return TraceLine(
        node.count("pc"),
        node.get("mnemonic", str),
        node.get("immediate", str),
        node.words("operands"),
        node.words("results"),
        node.get("then", str),
    )
