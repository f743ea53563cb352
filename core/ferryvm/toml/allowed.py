# SPDX-License-Identifier: Apache-2.0
"""The values allowed at a position of a file, in words, from the models of its keys.

The declaration is found by walking from the model of the file along the path. If its type does not
describe it well, such as one that a validator widens, it carries `Words`.
"""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard

import annotated_types
import pydantic

from ferryvm.toml.fault import Path, dotted, show

_EXACT = 10**6
"""Numbers below this are written with all their digits."""


@dataclasses.dataclass(frozen=True)
class Words:
    """In the metadata of a type: the allowed values in words."""

    one: str
    many: str = ""
    """The plural, for a type whose values are elements of an array."""


class _Declared(NamedTuple):
    """A type, and its metadata."""

    hint: Any
    metadata: tuple[object, ...] = ()


def allowed(keys: type[pydantic.BaseModel], path: Path) -> str:
    """The values allowed at a position; empty if nothing is declared.

    `keys`: the model of the file. Indices of arrays may be omitted before a key.
    """
    declared = _at(keys, path)
    return _words(declared, path) if declared else ""


def headed(keys: type[pydantic.BaseModel], path: Path) -> str:
    """As `allowed`, but empty unless tables with their own headers are declared."""
    declared = _at(keys, path)
    return _words(declared, path) if declared and _is_array_of_tables(declared) else ""


def names_at(keys: type[pydantic.BaseModel], path: Path) -> Iterable[str]:
    """The keys that the table at a position may have; none if any are allowed."""
    declared = _at(keys, path)
    hint = _element(declared).hint if declared else None
    if _is_table(hint):
        return list(hint.model_fields)
    if typing.get_origin(hint) is dict:
        return [str(value) for value in _values(_plain(typing.get_args(hint)[0]).hint)]
    return ()


# --- declarations ---------------------------------------------------------------------------


def _at(keys: type[pydantic.BaseModel], path: Path) -> _Declared | None:
    """The declaration at a position."""
    at = _Declared(keys)
    for part in path:
        if isinstance(part, int):
            if typing.get_origin(at.hint) is not list:
                return None
            at = _plain(typing.get_args(at.hint)[0])
            continue
        at = _element(at)
        if _is_table(at.hint) and part in at.hint.model_fields:
            field = at.hint.model_fields[part]
            at = _plain(field.annotation, _constraints(field.metadata))
        elif typing.get_origin(at.hint) is dict:
            at = _plain(typing.get_args(at.hint)[1])
        else:
            return None
    return at


def _plain(hint: Any, metadata: tuple[object, ...] = ()) -> _Declared:
    """A type without `Annotated`, and without the None of an optional key."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _plain(typing.get_args(hint)[0], metadata)
    if origin is Annotated:
        inner, *more = typing.get_args(hint)
        return _plain(inner, (*metadata, *_constraints(more)))
    return _Declared(hint, metadata)


def _constraints(metadata: Sequence[Any]) -> tuple[object, ...]:
    return tuple(part for one in metadata for part in getattr(one, "metadata", [one]))


def _element(declared: _Declared) -> _Declared:
    """The element type of an array; any other type unchanged."""
    if typing.get_origin(declared.hint) is list:
        return _plain(typing.get_args(declared.hint)[0])
    return declared


def _is_table(hint: Any) -> TypeGuard[type[pydantic.BaseModel]]:
    return isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def _is_array_of_tables(declared: _Declared) -> bool:
    element = _element(declared)
    return element is not declared and _is_table(element.hint) and not _own(element)


def _own(declared: _Declared) -> Words | None:
    return next((one for one in declared.metadata if isinstance(one, Words)), None)


def _values(hint: Any) -> tuple[object, ...]:
    """The values of a type that enumerates them."""
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return tuple(one.value for one in hint)
    return ()


# --- words ----------------------------------------------------------------------------------


def _words(declared: _Declared, path: Path) -> str:
    own = _own(declared)
    if own is not None:
        return own.one
    hint, metadata = declared
    if typing.get_origin(hint) is list:
        return f"a list of {_several(declared, path)}"
    if values := _values(hint):
        return " or ".join(map(show, values))
    if hint in (int, float):
        return f"a {_NUMBERS[hint]}{_between(metadata)}"
    return {bool: "true or false", str: "a text"}.get(hint, "a table")


_NUMBERS = {int: "whole number", float: "number"}


def _several(array: _Declared, path: Path) -> str:
    """The elements of an array, in words."""
    if _is_array_of_tables(array):
        header = dotted(tuple(part for part in path if isinstance(part, str)))
        return f"tables, each headed [[{header}]]"
    element = _element(array)
    own = _own(element)
    if own is not None:
        return own.many
    if values := _values(element.hint):
        return " and ".join(map(show, values))
    if element.hint in (int, float):
        return f"{_NUMBERS[element.hint]}s{_between(element.metadata)}"
    return {bool: "true and false", str: "texts", list: "lists"}.get(
        typing.get_origin(element.hint) or element.hint, "tables"
    )


def _between(metadata: Sequence[object]) -> str:
    """The bounds of a number, after a blank; empty if it has none."""
    low = high = ""
    for bound in metadata:
        if isinstance(bound, annotated_types.Ge):
            low = f" from {_short(bound.ge)}"
        elif isinstance(bound, annotated_types.Gt):
            low = f" above {_short(bound.gt)}"
        elif isinstance(bound, annotated_types.Le):
            high = f"up to {_short(bound.le)}"
        elif isinstance(bound, annotated_types.Lt):
            high = f"below {_short(bound.lt)}"
    if low.startswith(" from") and high.startswith("up "):
        return f"{low} {high.removeprefix('up ')}"
    return f"{low}{',' if low and high else ''}{' ' if high else ''}{high}"


def _short(number: Any) -> str:
    """A bound; one with many zeros as `1e12`."""
    short = f"{number:.0e}".replace("e+0", "e").replace("e+", "e")
    return short if number >= _EXACT and float(short) == number else f"{number}"
