# SPDX-License-Identifier: Apache-2.0
"""Reading a policy file: every fault in it at once, each with its position in the text.

    text ── TOML ── keys (types, bounds), conditions, backends ── rules compared ──> Policy
             │        │ all faults of these are reported at once        │ warnings
             └ one fault ends it

Faults that are only warnings leave a policy that can be used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from ferryvm.policy import keys, model, predicate
from ferryvm.policy.fact import vocabulary
from ferryvm.policy.fault import PolicyError
from ferryvm.policy.model import Policy
from ferryvm.policy.predicate import When
from ferryvm.policy.reachability import contradiction, unreached
from ferryvm.toml import fault
from ferryvm.toml.fault import Path, PlacedFault, TomlFault
from ferryvm.toml.reading import examine, settle, text_of
from ferryvm.toml.table import MISSING, key_faults


@dataclasses.dataclass(frozen=True)
class KnownBackends:
    """The backends that a policy may name."""

    names: Collection[str]
    interpreters: Collection[str] = ()
    """Backends that compile no regions, as far as it is known."""
    compilers: Collection[str] = ()
    """Backends that run no whole programs, as far as it is known."""
    without_cells: Collection[str] = ()
    """Interpreters from which compiled code cannot be entered, as far as it is known."""

    def faults(self, path: Path, name: object, takes_regions: bool) -> Iterator[TomlFault]:
        """The faults of a backend's name in the position of a compiler or an interpreter."""
        if not isinstance(name, str):
            return
        if name not in self.names:
            yield fault.unknown(path, "backend", name, self.fitting(takes_regions))
        elif name in (self.interpreters if takes_regions else self.compilers):
            wrong = "an interpreter" if takes_regions else "a compiler"
            fitting = fault.listed(self.fitting(takes_regions))
            yield TomlFault(path, f"{fault.show(name)} is {wrong}", fitting)

    def interpreter_faults(self, name: object) -> Iterator[TomlFault]:
        """The faults of a backend's name as the interpreter beside compilers."""
        path: Path = ("interpreter",)
        yield from self.faults(path, name, False)
        if isinstance(name, str) and name in self.without_cells:
            wrong = f"{fault.show(name)} has no cells: nothing is counted and no code entered in it"
            others = [one for one in self.fitting(False) if one not in self.without_cells]
            yield TomlFault(path, wrong, fault.listed(others))

    def fitting(self, takes_regions: bool) -> list[str]:
        """The names that are allowed in the position of a compiler, or of an interpreter."""
        others = self.interpreters if takes_regions else self.compilers
        return [one for one in self.names if one not in others]


@dataclasses.dataclass(frozen=True)
class Reading:
    """The result of reading a policy."""

    policy: Policy | None
    """None if there were errors."""
    faults: tuple[PlacedFault, ...]
    """In the order of the text; only warnings if there is a policy."""


def load(path: FilePath, backends: KnownBackends) -> Policy:
    """The policy in a file. Raises PolicyError with every fault; warnings go to the log."""
    reading = read(path, backends)
    return settle(reading.policy, reading.faults, PolicyError)


def read(path: FilePath, backends: KnownBackends) -> Reading:
    """As `load`, with the faults as values. Raises FerryError if the file cannot be read."""
    return read_text(text_of(path), str(path), backends)


def read_text(text: str, file: str, backends: KnownBackends) -> Reading:
    """The policy in a text; `file` is its name in messages."""

    def judge(document: dict[str, Any]) -> tuple[Policy | None, list[TomlFault]]:
        conditions: list[When] = []
        faults = [*_key_faults(document, backends), *_rule_faults(document, backends, conditions)]
        if not all(one.is_warning for one in faults):
            return None, faults
        policy = model.build(document, conditions)
        return policy, [*faults, *unreached(policy)]

    return Reading(*examine(text, file, keys.PolicyKeys, judge))


def _key_faults(document: Mapping[str, Any], backends: KnownBackends) -> Iterator[TomlFault]:
    """Violations of the declared keys."""
    for one in key_faults(keys.PolicyKeys, document):
        if one.found == MISSING:  # the name of a backend: everything else is optional
            fitting = fault.listed(backends.fitting(takes_regions=True))
            yield dataclasses.replace(one, allowed=fitting)
        else:
            yield one


# --- names and conditions -------------------------------------------------------------------


def _rule_faults(
    document: Mapping[str, Any], backends: KnownBackends, conditions: list[When]
) -> Iterator[TomlFault]:
    """Faults of names of backends and of conditions; keys must be as declared.

    The condition of each rule without faults is appended to `conditions`.
    """
    yield from backends.interpreter_faults(document.get("interpreter"))
    shadow = document.get("shadow")
    if isinstance(shadow, dict):
        yield from backends.faults(("shadow", "against"), shadow.get("against"), False)
    rules = document.get("rule")
    facts, fitting = vocabulary(), {*backends.fitting(takes_regions=True)}
    for index, rule in enumerate(rules if isinstance(rules, list) else []):
        if not isinstance(rule, dict):
            continue
        path: Path = ("rule", index)
        chain = rule.get("backends", [])
        chain = chain if isinstance(chain, list) else []
        for step, entry in enumerate(chain):
            is_table = isinstance(entry, dict)
            name = entry.get("name") if is_table else entry
            if isinstance(name, str) and name in fitting:
                continue  # the common case: files may have 100,000 rules
            at: Path = (*path, "backends", step)
            yield from backends.faults((*at, "name") if is_table else at, name, True)
        yield from _chain_faults(path, rule.get("action", "compile"), rule, chain)
        faults: list[TomlFault] = []
        when = rule.get("when", {})
        if isinstance(when, dict):
            read = predicate.read(when, (*path, "when"), faults.append)
            # Without the parts that have faults, predicates that contain them hold too often or too
            # rarely; single tests are independent of them.
            sound = When(read.tests) if faults else read
            conditions.append(read)
            yield from faults
            if sound.outcomes(facts) == {False}:
                yield from contradiction(sound, (*path, "when"), facts)


def _chain_faults(
    path: Path, action: object, rule: Mapping[str, Any], chain: list[Any]
) -> Iterator[TomlFault]:
    if action == "compile" and not rule.get("backends"):
        yield TomlFault((*path, "backends"), "no backends", 'one at least, or action = "interpret"')
    if action == "interpret" and chain:
        yield TomlFault((*path, "backends"), 'backends with action = "interpret"', "none")
    if rule.get("place", "first") != "first":
        return  # the others are places of launches
    for step, entry in enumerate(chain[:-1]):
        if isinstance(entry, dict) and entry.get("required") is True:
            found = "never asked: the backend before it is required"
            yield TomlFault((*path, "backends", step + 1), found, is_warning=True)
            return
