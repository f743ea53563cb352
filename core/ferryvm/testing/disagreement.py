# SPDX-License-Identifier: Apache-2.0
"""A disagreement as one self-contained file, and reading it again.

The file is JSON that a person can read: what was compared, what differs first, where the backends
part with the last instructions on both sides, the program as assembly; and its image in base64,
which is what a replay runs. It needs nothing but itself: not the source, not the campaign that
found it.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import ferryvm
from ferryvm import asm, image
from ferryvm.backend import Forcing
from ferryvm.durable import replace_file
from ferryvm.engine.execution import UNLIMITED
from ferryvm.errors import FerryError, Position, UnknownNameError
from ferryvm.machine.memory import Limits
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm.testing.bisect import Bisector, Parting, Way
from ferryvm.testing.differential import Comparison, Differ
from ferryvm.testing.region import Region
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.state import Difference
from ferryvm.testing.trace import TraceLine
from ferryvm.verify import Verified

SUFFIX = ".disagreement"
"""Of the files."""

_FORMAT = "ferryvm disagreement"
_VERSION = 1
_BASE64_COLUMNS = 76


class DisagreementError(FerryError):
    """A file is no disagreement that this version can read."""


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """Backends that did not do the same, with all that it takes to see it again."""

    program: Program
    limits: Limits
    good: str
    """The backend that the others are held against."""
    bad: str
    """The one that parts from it."""
    backends: tuple[str, ...]
    """All that the program moved between, `good` apart; only `bad` where it did not move."""
    schedule: Schedule
    seed: int
    versions: Mapping[str, str]
    """Of the backends, of ferryvm, of what they are built on; and the machine."""
    most: int
    """Instructions after which the program was stopped."""
    forcing: frozenset[Forcing]
    """What the backends were forced to."""
    difference: Difference
    """The first field in which the ends differ."""
    parting: Parting | None
    """Where they part; None if no search found it."""
    origin: str | None = None
    """Where the program comes from."""

    @property
    def good_trace(self) -> tuple[TraceLine, ...]:
        """The last instructions on the good side."""
        return self.parting.good_trace if self.parting else ()

    @property
    def bad_trace(self) -> tuple[TraceLine, ...]:
        """The last instructions on the bad side."""
        return self.parting.bad_trace if self.parting else ()

    def differ(self, registry: Registry | None = None) -> Differ:
        """What compares the same backends in the same way. Raises as `Differ`."""
        return Differ(self.backends, self.good, registry, self.limits, self.most, self.forcing)


def record(
    differ: Differ,
    program: Verified,
    comparison: Comparison,
    schedule: Schedule = Schedule.NONE,
    seed: int = 0,
    origin: str | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Disagreement:
    """The disagreement that a comparison found, bisected."""
    assert comparison.difference is not None
    backends = tuple(name for name in comparison.backends if name != differ.against)
    parting = None
    for name in backends:
        names = (differ.against, *backends)
        parting = Bisector(differ, name, program, progress).find(seed=seed, names=names)
        if parting is not None:
            break
    return Disagreement(
        program.program,
        differ.limits or Limits(),
        differ.against,
        parting.bad if parting else backends[0],
        backends,
        schedule,
        seed,
        versions((differ.against, *backends), differ.registry),
        differ.most,
        differ.forcing,
        comparison.difference,
        parting,
        origin,
    )


def versions(backends: tuple[str, ...], registry: Registry) -> dict[str, str]:
    """Versions of what a comparison depends on."""
    found = {f"backend {name}": registry.get(name).version for name in backends}
    found["ferryvm"] = ferryvm.__version__
    for library in ("llvmlite", "numpy"):
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    found["python"] = platform.python_version()
    found["machine"] = f"{platform.system()} {platform.machine()}"
    return found


# --- writing ---------------------------------------------------------------------------------


def save(disagreement: Disagreement, path: str | Path) -> None:
    """Write the file. Raises DisagreementError where that cannot be done."""
    try:
        replace_file(Path(path), to_text(disagreement).encode())
    except OSError as error:
        raise DisagreementError(f"{path}: cannot be written: {error.strerror}") from None


def to_text(disagreement: Disagreement) -> str:
    """The content of the file."""
    one = disagreement
    encoded = base64.b64encode(image.to_bytes(one.program)).decode()
    try:
        listing = asm.disassemble(one.program).splitlines()
    except FerryError as error:  # an image that no assembler laid out
        listing = [f"; {error}"]
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "origin": one.origin,
        "good": one.good,
        "bad": one.bad,
        "difference": _difference(one.difference),
        "parting": _parting(one.parting) if one.parting else None,
        "backends": one.backends,
        "schedule": one.schedule.value,
        "seed": one.seed,
        "most": one.most,
        "forcing": sorted(kind.value for kind in one.forcing),
        "limits": dataclasses.asdict(one.limits),
        "versions": dict(one.versions),
        "listing": listing,
        "image": [
            encoded[at : at + _BASE64_COLUMNS] for at in range(0, len(encoded), _BASE64_COLUMNS)
        ],
    }
    # Escaping what is not ASCII keeps names that are not Unicode (half a surrogate pair) writable.
    return json.dumps(content, indent=1) + "\n"


def _difference(one: Difference) -> dict[str, str]:
    return {"field": one.field, "good": one.left, "bad": one.right}


def _parting(one: Parting) -> dict[str, Any]:
    return {
        "way": one.way.value,
        "good": one.good,
        "bad": one.bad,
        "entered": one.entered,
        "number": one.number,
        "pc": one.pc,
        "mnemonic": one.mnemonic,
        "position": _position(one.position),
        "regions": [
            {**dataclasses.asdict(region), "position": _position(region.position)}
            for region in one.regions
        ],
        "difference": _difference(one.difference),
        "good_trace": [_line(line) for line in one.good_trace],
        "bad_trace": [_line(line) for line in one.bad_trace],
        "after": [list(row) for row in one.after],
    }


def _position(one: Position | None) -> dict[str, Any] | None:
    return None if one is None else dataclasses.asdict(one)


def _line(one: TraceLine) -> dict[str, Any]:
    return {
        "pc": one.pc,
        "mnemonic": one.mnemonic,
        "immediate": one.immediate,
        "operands": [f"{word:#x}" for word in one.operands],
        "results": [f"{word:#x}" for word in one.results],
        "then": one.then,
    }


# --- reading ---------------------------------------------------------------------------------


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
    if not isinstance(value, dict) or value.get("format") != _FORMAT:
        raise DisagreementError(f'{name}: not a disagreement file: no "format": "{_FORMAT}"')
    if value.get("version") != _VERSION:
        found = json.dumps(value.get("version"))
        raise DisagreementError(f"{name}: version {found} of the format; this is {_VERSION}")
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
