# SPDX-License-Identifier: Apache-2.0
"""Reading a policy file: every fault in it at once, each with its place in the text.

    text ── TOML ── keys (types, bounds), conditions, backends ── rules held together ──> Policy
             │        │ all faults of these are told at once        │ warnings
             └ one fault ends it

Faults that are only warnings leave a policy that can be used.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

import pydantic

from ferryvm.errors import FerryError, Position
from ferryvm.policy import fault, keys, model, predicate
from ferryvm.policy.fact import vocabulary
from ferryvm.policy.fault import Fault, Path, PolicyError
from ferryvm.policy.model import Policy
from ferryvm.policy.position import Place, places
from ferryvm.policy.predicate import When
from ferryvm.policy.reach import contradiction, unreached
from ferryvm.policy.syntax import syntax_fault

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Known:
    """The backends that a policy may name."""

    names: Collection[str]
    interpreters: Collection[str] = ()
    """Those that take no regions, as far as it is known."""
    compilers: Collection[str] = ()
    """Those that run no whole programs, likewise."""

    def faults(self, path: Path, name: object, takes_regions: bool) -> Iterator[Fault]:
        """What is wrong with naming a backend where one that takes regions stands, or another."""
        if not isinstance(name, str):
            return
        fitting = self.fitting(takes_regions)
        if name not in self.names:
            yield fault.unknown(path, "backend", name, fitting)
        elif name not in fitting:
            wrong = "an interpreter" if takes_regions else "a compiler"
            yield Fault(path, f"{fault.show(name)} is {wrong}", fault.listed(fitting))

    def fitting(self, takes_regions: bool) -> list[str]:
        """The names that may stand where one that takes regions does, or another."""
        others = self.interpreters if takes_regions else self.compilers
        return [one for one in self.names if one not in others]


@dataclasses.dataclass(frozen=True)
class PlacedFault:
    """A fault with its position in a file."""

    position: Position
    fault: Fault

    def __str__(self) -> str:
        return f"{self.position}: {self.fault}"


@dataclasses.dataclass(frozen=True)
class Reading:
    """What came of reading a policy."""

    policy: Policy | None
    """None if there are errors."""
    faults: tuple[PlacedFault, ...]
    """In the order of the text; only warnings if there is a policy."""


def load(path: FilePath, backends: Known) -> Policy:
    """The policy in a file. Raises PolicyError with every fault; warnings go to the log."""
    reading = read(path, backends)
    if reading.policy is None:
        raise PolicyError([placed for placed in reading.faults if not placed.fault.is_warning])
    for warning in reading.faults:
        _LOG.warning("%s", warning)
    return reading.policy


def read(path: FilePath, backends: Known) -> Reading:
    """As `load`, with the faults as values. Raises FerryError where the file cannot be read."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # Windows editors put a mark in front
    except OSError as error:
        raise FerryError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FerryError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return read_text(text, str(path), backends)


def read_text(text: str, file: str, backends: Known) -> Reading:
    """The policy in a text; `file` is what messages call it."""
    try:
        return _read_text(text, file, backends)
    except RecursionError:
        return Reading(None, (PlacedFault(Position(file, 1, 1), Fault((), "nested too deeply")),))


def _read_text(text: str, file: str, backends: Known) -> Reading:
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # not TOML, or an integer of thousands of digits
        (line, column), said = syntax_fault(error, text)
        return Reading(None, (PlacedFault(Position(file, line, column), said),))
    where = places(text)
    faults = [*_key_faults(document, backends), *_rule_faults(document, backends)]
    policy = None
    if all(one.is_warning for one in faults):
        policy = model.build(document)
        faults += unreached(policy)
    placed = [PlacedFault(_position(file, where, one.path), one) for one in faults]
    return Reading(policy, tuple(sorted(placed, key=lambda one: one.position)))


def _position(file: str, where: Mapping[Path, Place], path: Path) -> Position:
    """The place of a key, or of what it is in where it stands nowhere itself."""
    if path not in where and path and isinstance(path[-1], str):
        path = (*path[:-1], *path[-1].split("."))  # a fact whose name is written as dotted keys
    while path and path not in where:
        path = path[:-1]
    line, column = where.get(path, (1, 1))
    return Position(file, line, column)


# --- keys -----------------------------------------------------------------------------------


def _key_faults(document: Mapping[str, Any], backends: Known) -> Iterator[Fault]:
    """What the declared keys do not allow."""
    try:
        keys.PolicyKeys.model_validate(document)
    except pydantic.ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            yield _fault(one["type"], tuple(one["loc"]), one["input"], backends)


def _fault(kind: str, path: Path, found: object, backends: Known) -> Fault:
    names = tuple(part for part in path if isinstance(part, str))
    if kind == "extra_forbidden":
        known = keys.TABLES[names[:-1]].model_fields
        return dataclasses.replace(
            fault.unknown(path, "key", names[-1], known), found="unknown key"
        )
    if kind == "missing":  # the name of a backend: all else may be left out
        return Fault(path, "is missing", fault.listed(backends.fitting(takes_regions=True)))
    field = keys.field_at(path)
    said = keys.allowed(field, isinstance(path[-1], int)) if field else ""
    near = None
    if isinstance(found, str) and '"' in said:
        near = fault.nearest(found, re.findall(r'"([^"]*)"', said))
    return Fault(path, f"found {fault.show(found)}", said, near)


# --- names and conditions -------------------------------------------------------------------


def _rule_faults(document: Mapping[str, Any], backends: Known) -> Iterator[Fault]:
    """What is wrong with names of backends and conditions, wherever keys are as declared."""
    yield from backends.faults(("interpreter",), document.get("interpreter"), False)
    shadow = document.get("shadow")
    if isinstance(shadow, dict):
        yield from backends.faults(("shadow", "against"), shadow.get("against"), False)
    rules = document.get("rule")
    for index, rule in enumerate(rules if isinstance(rules, list) else []):
        if not isinstance(rule, dict):
            continue
        path: Path = ("rule", index)
        chain = rule.get("backends", [])
        chain = chain if isinstance(chain, list) else []
        for step, entry in enumerate(chain):
            at: Path = (*path, "backends", step)
            is_table = isinstance(entry, dict)
            name = entry.get("name") if is_table else entry
            yield from backends.faults((*at, "name") if is_table else at, name, True)
        yield from _chain_faults(path, rule.get("action", "compile"), rule, chain)
        faults: list[Fault] = []
        when = rule.get("when")
        if isinstance(when, dict):
            read = predicate.read(when, (*path, "when"), faults.append)
            # A part with a fault is left out, which makes what contains it hold too often or too
            # rarely; single tests stand for themselves.
            sound = When(read.tests) if faults else read
            yield from (*faults, *contradiction(sound, (*path, "when"), vocabulary()))


def _chain_faults(
    path: Path, action: object, rule: Mapping[str, Any], chain: list[Any]
) -> Iterator[Fault]:
    if action == "compile" and not rule.get("backends"):
        yield Fault((*path, "backends"), "no backends", 'one at least, or action = "interpret"')
    if action == "interpret" and chain:
        yield Fault((*path, "backends"), 'backends with action = "interpret"', "none")
    for step, entry in enumerate(chain[:-1]):
        if isinstance(entry, dict) and entry.get("required") is True:
            found = "never asked: the backend before it is required"
            yield Fault((*path, "backends", step + 1), found, is_warning=True)
            return
