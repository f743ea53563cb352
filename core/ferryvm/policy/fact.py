# SPDX-License-Identifier: Apache-2.0
"""The facts that rules can test: of the region, of the machine, and from plugins.

Their names are the fields of `Facts` and `MachineFacts`, so rules can test a fact added there at
once. A field that counts by chapter is one fact for each chapter: `mix.heap`. They are collected
when a file is checked or code is hot, not in every run.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ferryvm import pattern, record

if TYPE_CHECKING:
    from ferryvm.policy.machine import MachineFacts
    from ferryvm.region.fact import Facts

Value = bool | int | float | str
"""Type of a fact's value."""

MACHINE, PLUGIN = "machine", "plugin"
"""Prefixes of the names of facts that are not the region's."""

_PLUGIN_FACT = pattern.lazy(rf"{PLUGIN}\.[^.]+\.[^.]+")


class FactType(enum.Enum):
    """The type of a fact; the value is for people."""

    BOOLEAN = "true or false"
    COUNT = "whole number from 0"
    SHARE = "number from 0 to 1"
    TEXT = "text"
    OPEN = "as the plugin says"


@record.dataclass(frozen=True)
class Fact:
    """A property that a rule can test."""

    name: str
    type: FactType
    values: tuple[str, ...] | None = None
    """For a text all its possible values; None if any text is possible."""


_TYPES = {bool: FactType.BOOLEAN, int: FactType.COUNT, float: FactType.SHARE, str: FactType.TEXT}


def _owners() -> Iterator[tuple[type, str]]:
    """The classes that declare facts, and the prefixes of their names."""
    from ferryvm.policy.machine import MachineFacts
    from ferryvm.region.fact import Facts

    yield Facts, ""
    yield MachineFacts, f"{MACHINE}."


@functools.cache
def vocabulary() -> Mapping[str, Fact]:
    """All facts but those from plugins, by name: the region's, then the machine's."""
    import typing  # a run without hot code needs no vocabulary

    from ferryvm.isa import INSTRUCTIONS
    from ferryvm.region.region import RegionKind

    closed = {"kind": tuple(kind.value for kind in RegionKind)}
    chapters = dict.fromkeys(row.chapter for row in INSTRUCTIONS)
    found = {}
    for owner, prefix in _owners():
        for field, hint in typing.get_type_hints(owner).items():
            if hint in _TYPES:
                name = f"{prefix}{field}"
                found[name] = Fact(name, _TYPES[hint], closed.get(name))
            else:  # numbers by chapter of the instruction table
                names = [f"{prefix}{field}.{chapter}" for chapter in chapters]
                found.update({name: Fact(name, FactType.COUNT) for name in names})
    return found


def find(name: str) -> Fact | None:
    """The fact of that name; the facts of plugins are not known in advance."""
    fact = vocabulary().get(name)
    return open_fact(name) if fact is None and _PLUGIN_FACT.fullmatch(name) else fact


def open_fact(name: str) -> Fact:
    """A fact with any type and value."""
    return Fact(name, FactType.OPEN)


class Values:
    """The values of the facts for one region, by their names in rules."""

    def __init__(self, facts: Facts, machine: MachineFacts, extra: Mapping[str, Value]) -> None:
        """`extra`: facts from plugins, by full name (`plugin.NAME.FACT`)."""
        self._facts, self._machine, self._extra = facts, machine, extra
        self._found: dict[str, Value | None] = {}

    def get(self, name: str) -> Value | None:
        """The fact's value, None if the fact does not exist here."""
        if name not in self._found:
            self._found[name] = self._get(name)
        return self._found[name]

    def _get(self, name: str) -> Value | None:
        first, _, rest = name.partition(".")
        if first == PLUGIN:
            return self._extra.get(name)
        found = getattr(self._machine, rest) if first == MACHINE else getattr(self._facts, first)
        value: Value = found.get(rest, 0) if isinstance(found, Mapping) else found
        return value


def meanings() -> Mapping[str, str]:
    """The meaning of each fact: the docstrings of the fields."""
    found = {
        f"{prefix}{name}": text
        for owner, prefix in _owners()
        for name, text in attribute_docstrings(owner).items()
    }
    return {name: found.get(name) or found[name.partition(".")[0]] for name in vocabulary()}


def attribute_docstrings(owner: type) -> dict[str, str]:
    """The texts below the fields of a class, each in one line."""
    import ast
    import inspect
    import itertools
    import textwrap

    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in itertools.pairwise(tree.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(said))
            ):
                found[name] = " ".join(said.split())
    return found
