# SPDX-License-Identifier: Apache-2.0
"""Variants of a machine: the tables of its file with some numbers changed.

They are varied before they are read, so that variants pass the same checks as files.

    alu=1..8                   number of members of a group of units or files
    int.registers=8,16,32      a key of a group
    alu.work.multiply=1..4     a nested key
    slots=1..4                 a key of the machine; where a group has its name, machine.memory
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferryvm.errors import FerryError, suggestion
from ferryvm.toml.allowed import allowed, names_at
from ferryvm.toml.fault import Path, listed
from ferryvm_backends.vliw.machine.keys import MachineKeys

MOST = 1_000
"""Variants of one sweep."""

Value = int | float | bool

_MACHINE = "machine"
"""Prefix of a key of the machine that has the same name as a group."""
_VARIED = ("a whole number", "a number", "true or false", "a latency")
"""Prefixes of the names of parameters that can be varied."""
_RANGE = re.compile(r"(\d{1,12})\.\.(\d{1,12})")
_NUMBER = re.compile(r"\d{1,12}(\.\d{1,12})?")
_PREDICATES = {"true": True, "false": False}
_EXPECTED = "NAME=VALUES is expected, such as alu=1..8 or int.registers=8,16,32"


@dataclasses.dataclass(frozen=True)
class Axis:
    """A parameter that is varied."""

    name: str
    """As the user wrote it."""
    path: Path
    """Its place in the document."""
    values: Sequence[Value]


@dataclasses.dataclass(frozen=True)
class Variant:
    """A machine that is to be tried."""

    settings: Mapping[str, Value]
    """By name of the axis."""
    document: dict[str, Any]

    def __str__(self) -> str:
        return ", ".join(f"{name}={shown(value)}" for name, value in self.settings.items())


def shown(value: Value) -> str:
    """A value as a user writes it."""
    return str(value).lower()


def read_axes(texts: Sequence[str], document: Mapping[str, Any]) -> list[Axis]:
    """The axes of a sweep, from the user's options. `document`: of a machine without faults.

    Raises FerryError for unknown names, values that are not numbers, and more than MOST variants.
    """
    axes = [_axis(text, document) for text in texts]
    for one, other in itertools.combinations(axes, 2):
        if one.path == other.path:
            raise FerryError(f"--vary {other.name}: it is varied twice")
    count = math.prod(len(axis.values) for axis in axes)
    if count > MOST:
        raise FerryError(f"--vary: these are {count} variants, {MOST} are the most")
    return axes


def variants(axes: Sequence[Axis], document: Mapping[str, Any]) -> Iterator[Variant]:
    """Every combination of the varied values; the last axis changes first."""
    for values in itertools.product(*(axis.values for axis in axes)):
        changed = copy.deepcopy(dict(document))
        for axis, value in zip(axes, values, strict=True):
            _set(changed, axis.path, value)
        yield Variant({axis.name: v for axis, v in zip(axes, values, strict=True)}, changed)


def _set(document: dict[str, Any], path: Path, value: Value) -> None:
    at: Any = document
    for part, below in itertools.pairwise(path):
        if isinstance(below, str) and isinstance(part, str):
            inner = at.get(part, {})
            # A number denotes a table with this key.
            at[part] = inner if isinstance(inner, dict) else {"latency": inner}
        at = at[part]
    at[path[-1]] = value


# --- names ----------------------------------------------------------------------------------


def _axis(text: str, document: Mapping[str, Any]) -> Axis:
    name, equals, values = (part.strip() for part in text.partition("="))
    if not (name and equals and values):
        raise FerryError(f"--vary {text!r}: {_EXPECTED}")
    path = _path(name, document)
    found = _values(name, values)
    return Axis(name, path, found)


def _path(name: str, document: Mapping[str, Any]) -> Path:
    """The place of something in the document. Raises FerryError."""
    groups: dict[str, Path] = {
        table["name"]: (array, index)
        for array in ("file", "unit")
        for index, table in enumerate(document[array])
    }
    machine = f"machine {document['name']!r}"
    first, *rest = name.split(".")
    path: Path = ()
    if first in groups:
        path, keys = groups[first], rest or ["count"]
    elif first == _MACHINE and rest:
        keys = rest
    else:
        keys = [first, *rest]
        known = {*groups, *_varied(())}
        if first not in known:
            raise _unknown(name, machine, "group or key", first, known)
    has = first if path else machine
    for key in keys:
        known = _varied(path)
        if key not in known:
            raise _unknown(name, has, "number", key, known)
        path, has = (*path, key), key
    if not _is_number(path):
        below = listed(f"{name}.{key}" for key in _varied(path))
        raise FerryError(f"--vary {name}: a table; a number in it is expected: {below}")
    return path


def _varied(path: Path) -> set[str]:
    """The keys of the table at a place that are numbers, or tables of numbers."""
    found = set()
    for key in names_at(MachineKeys, path):
        below = (*path, key)
        if _is_number(below) or (not _is_array(below) and _varied(below)):
            found.add(key)
    return found


def _is_number(path: Path) -> bool:
    return allowed(MachineKeys, path).startswith(_VARIED)


def _is_array(path: Path) -> bool:
    return allowed(MachineKeys, path).startswith("a list of")


def _unknown(name: str, has: str, what: str, part: str, known: set[str]) -> FerryError:
    near = suggestion(part, sorted(known))
    return FerryError(
        f"--vary {name}: {has} has no {what} {part!r}{near} (allowed: {listed(known)})"
    )


# --- values ---------------------------------------------------------------------------------


def _values(name: str, text: str) -> Sequence[Value]:
    found: dict[str, Value] = {}
    for part in map(str.strip, text.split(",")):
        for value in _part(name, part):
            found[shown(value)] = value
    return tuple(found.values())


def _part(name: str, text: str) -> Sequence[Value]:
    if text in _PREDICATES:
        return (_PREDICATES[text],)
    if _NUMBER.fullmatch(text):
        return (float(text) if "." in text else int(text),)
    match = _RANGE.fullmatch(text)
    if match is None:
        expected = "a number, a range such as 1..8, true or false is expected"
        raise FerryError(f"--vary {name}: found {text!r}; {expected}")
    first, last = map(int, match.groups())
    if last < first:
        raise FerryError(f"--vary {name}: the range {text} is empty: it ends before it begins")
    if last - first >= MOST:
        count = last - first + 1
        raise FerryError(f"--vary {name}: these are {count} variants, {MOST} are the most")
    return range(first, last + 1)
