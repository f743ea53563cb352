# SPDX-License-Identifier: Apache-2.0
"""Frequencies of the generator, as data. The file weights.toml beside this one has all sections and
keys; another file names only those that it changes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path

import tomli

from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.testing.generate.chance import Weighted

Section = Mapping[str, float]

_DEFAULT = Path(__file__).with_name("weights.toml")
_OPEN = {
    "functions": "number",
    "size": "number",
    "work": "number",
    "trips": "number",
    "items": "number",
    "members": "number",
    "python_helpers": "number",
}
"""Sections whose keys are numbers."""
_MOST = {
    "functions": 20,
    "size": 2000,
    "work": 15_000,
    "trips": 500,
    "items": 100,
    "members": 100,
    "python_helpers": 4,
}
"""Upper bounds of those numbers: beyond, programs would not end in time."""


class WeightsError(FerryError):
    """A file of weights that cannot be used."""


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """Frequencies of the generator; each field is a section of weights.toml."""

    chance: Section
    functions: Section
    size: Section
    work: Section
    trips: Section
    items: Section
    members: Section
    literal: Section
    statement: Section
    value: Section
    leaf: Section
    trap: Section
    object_statement: Section
    object_value: Section
    reference: Section
    object_trap: Section
    launch_statement: Section
    launch_trap: Section
    item: Section
    item_statement: Section
    item_object: Section
    item_trap: Section
    item_object_trap: Section
    instruction: Section
    skiff_statement: Section
    skiff_value: Section
    skiff_launch: Section
    skiff_launch_value: Section
    skiff_item: Section
    skiff_phase: Section
    skiff_member: Section
    python_helpers: Section
    python_parameter: Section
    python_variable: Section
    python_statement: Section
    python_int: Section
    python_float: Section
    python_bool: Section
    python_scalar: Section

    @classmethod
    def load(cls, path: str | Path) -> Weights:
        """The default weights, except those that the file changes. Raises WeightsError."""
        return _merged(str(path), _read(Path(path)), default())

    def numbers(self, section: str) -> Weighted[int]:
        """The numbers of a section, to be drawn by weight."""
        table: Section = getattr(self, section)
        return Weighted((int(key), weight) for key, weight in table.items())


@functools.cache
def default() -> Weights:
    """The weights of weights.toml."""
    return Weights(**tomli.loads(_DEFAULT.read_text(encoding="utf-8")))


_SECTIONS = tuple(field.name for field in dataclasses.fields(Weights))


def _read(path: Path) -> dict[str, dict[str, float]]:
    # Only for files of users: this takes half of the time in which a worker of a campaign starts.
    from ferryvm.toml.reading import text_of
    from ferryvm.toml.syntax import deep_key

    try:
        text = text_of(path)
        if deep_key(text) is not None:
            raise WeightsError(f"{path}: nested too deeply")
        found = tomli.loads(text)
    except WeightsError:
        raise
    except FerryError as error:
        raise WeightsError(str(error)) from None
    except ValueError as error:  # not TOML
        raise WeightsError(f"{path}: {error}") from None
    except RecursionError:
        raise WeightsError(f"{path}: nested too deeply") from None
    return found


def _merged(path: str, changes: Mapping[str, object], base: Weights) -> Weights:
    sections: dict[str, dict[str, float]] = {}
    for name, section in changes.items():
        if name not in _SECTIONS:
            raise WeightsError(f"{path}: {UnknownNameError('section', name, _SECTIONS)}")
        if not isinstance(section, dict):
            raise WeightsError(f"{path}: [{name}] is a section of weights, found {section!r}")
        known: Section = getattr(base, name)
        for key, weight in section.items():
            _check(path, name, key, weight, known)
        # Sections of numbers are replaced as a whole; elsewhere an omitted key has its default
        # weight.
        sections[name] = section if name in _OPEN else {**known, **section}
        if name not in ("chance", "instruction") and not any(sections[name].values()):
            raise WeightsError(f"{path}: [{name}]: one weight at least must be above 0")
    return dataclasses.replace(base, **sections)


def _check(path: str, name: str, key: str, weight: object, known: Section) -> None:
    """Raise WeightsError unless the section may hold this key and weight."""
    where = f"{path}: [{name}] {key}"
    if name in _OPEN:
        if not key.isascii() or not key.isdigit() or int(key) > _MOST[name]:
            raise WeightsError(f"{where}: keys are numbers from 0 to {_MOST[name]} here")
    elif key not in (BY_MNEMONIC if name == "instruction" else known):
        names = BY_MNEMONIC if name == "instruction" else known
        raise WeightsError(f"{path}: [{name}]: {UnknownNameError('key', key, names)}")
    most = 1.0 if name == "chance" else 1e9
    is_right = isinstance(weight, int | float) and 0 <= weight <= most  # which NaN is not
    if not is_right or isinstance(weight, bool):
        raise WeightsError(f"{where}: a number from 0 to {most:g} expected, found {weight!r}")
