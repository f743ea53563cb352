# SPDX-License-Identifier: Apache-2.0
"""The keys that a table of a file may have, as models of pydantic, and their faults.

pydantic finds all faults but describes them in its own words. These are not used: messages are made
from the position and the declaration there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pydantic

from ferryvm.toml.allowed import allowed, names_at
from ferryvm.toml.fault import Path, TomlFault, listed, nearest, show

MISSING = "is missing"
"""The value reported for a required key that is missing."""

_EXTRA = "extra_forbidden"
"""Pydantic's error type for a key that is not declared."""

_KEY = "[key]"
"""The last element of pydantic's location for a key that an open table does not allow."""


class Table(pydantic.BaseModel):
    """A table whose keys are all declared."""

    model_config = pydantic.ConfigDict(
        extra="forbid", strict=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


def key_faults(keys: type[Table], document: Mapping[str, Any]) -> Iterator[TomlFault]:
    """Violations of the declared keys in a file."""
    try:
        keys.model_validate(document)
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        unknown = {tuple(one["loc"][:-1]) for one in found if _is_key(one["type"], one["loc"])}
        for one in found:
            kind, path = one["type"], tuple(one["loc"])
            if _is_key(kind, path):
                path = path[:-1]
                kind = _EXTRA
            elif any(path[: len(key)] == key for key in unknown):
                continue  # about the value of a key that is reported already
            yield _fault(keys, kind, path, one["input"], document)


def _is_key(kind: str, path: Path) -> bool:
    """True if an error is about a key of a table whose keys are the values of a type."""
    return kind != _EXTRA and path[-1] == _KEY


def _fault(
    keys: type[Table], kind: str, path: Path, found: object, document: Mapping[str, Any]
) -> TomlFault:
    if kind == _EXTRA:
        known = sorted(names_at(keys, path[:-1]))
        return TomlFault(path, "unknown key", listed(known), nearest(str(path[-1]), known))
    if kind == "missing":
        return TomlFault(path, MISSING, allowed(keys, path))
    path = _standing(path, document)
    said = allowed(keys, path)
    near = None
    if isinstance(found, str) and '"' in said:
        near = nearest(found, re.findall(r'"([^"]*)"', said))
    return TomlFault(path, f"found {show(found)}", said, near)


def _standing(path: Path, document: Any) -> Path:
    """The prefix of a path that exists in a document: a validator may have turned a value into a
    table."""
    for length, part in enumerate(path):
        inside = document if isinstance(document, dict) else {}
        if isinstance(document, list):
            inside = dict(enumerate(document))
        if part not in inside:
            return path[:length]
        document = inside[part]
    return path


def sound(document: Mapping[str, Any], faults: Iterable[TomlFault]) -> dict[str, Any]:
    """The document without the parts that have faults: keys are removed, elements of arrays are
    None.

    The rest is as declared, except for missing required keys, so rules can be checked on it.
    """
    return _sound_table(document, (), {fault.path for fault in faults})


def _sound_table(table: Mapping[str, Any], path: Path, faulty: set[Path]) -> dict[str, Any]:
    return {
        key: _sound_value(value, (*path, key), faulty)
        for key, value in table.items()
        if (*path, key) not in faulty
    }


def _sound_value(value: Any, path: Path, faulty: set[Path]) -> Any:
    if path in faulty:
        return None
    if isinstance(value, dict):
        return _sound_table(value, path, faulty)
    if isinstance(value, list):
        return [_sound_value(one, (*path, index), faulty) for index, one in enumerate(value)]
    return value
