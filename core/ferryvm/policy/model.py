# SPDX-License-Identifier: Apache-2.0
"""A policy as the engine uses it: plain frozen values, built without the checker of files.

    Policy ── interpreter, profile, shadow
       └── rules, first that matches wins ── when (predicate) ── backends, a chain of Choice
                                                                     └── name, Options

`ferryvm.policy.keys` defines valid files; `build` makes a policy of a valid file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from ferryvm import record
from ferryvm.failure import shown
from ferryvm.policy.fact import open_fact
from ferryvm.policy.predicate import When, read
from ferryvm.toml.fault import TomlFault

INTERPRETER = "threaded"
"""Runs code that is not compiled, unless a policy selects another."""


@record.dataclass(frozen=True)
class Profile:
    """The counts of the interpreter, and the thresholds at which a site is hot."""

    enabled: bool = True
    """Off: nothing is counted, so nothing gets hot."""
    loop_threshold: int = 100_000
    """Passes of a loop head."""
    function_threshold: int = 25_000
    """Entries of a function."""
    scope_threshold: int = 1
    """Entries of an enter-jit scope, which the program marked for compilation."""
    delay_ms: int = 0
    """Milliseconds by which the compilation of a hot site is deferred in the background."""


PROMPT = Profile(loop_threshold=50, function_threshold=50)
"""For a compiler that is named on the command line: decisions follow soon after its code leaves."""


@record.dataclass(frozen=True)
class Shadow:
    """A second backend, which repeats each run of compiled code for comparison."""

    against: str = "reference"
    """Its name."""


@record.dataclass(frozen=True)
class Options:
    """Options of a compilation, and limits of failing guards."""

    threshold: int | None = None
    """Count below which this backend is skipped; None: use it as soon as the site is hot."""
    optimize: int = 2
    """Optimisation level, 0 to 3."""
    background: bool = True
    """Compile while the interpreter continues."""
    speculate: bool = False
    """Leave out paths that were never taken in the profile, with a guard in their place."""
    cache: bool = True
    """Read the code from the cache on disk, and store it there."""
    required: bool = False
    """A refusal or failure of this backend is an error; no further backend is used."""
    guard_limit: int = 1_000
    """Failures of one guard before the region is compiled again without it."""
    recompile_limit: int = 3
    """Number of times that a region is compiled again with its remaining speculations; then it is
    compiled without any."""
    retry_after: int = 10_000_000
    """Further counts after which an abandoned region is tried again; 0: never."""
    device: str = ""
    """The backend's target; empty: its default."""
    recompile_after: int | None = None
    """Work of quick code after which code of the level above replaces it; 0: there is no quick
    code. None: the backend's number, or 0 if programs wait for the code."""
    threads: int = 0
    """Threads that run the items of a launch where that pays, for native code; 0: as many as the
    process has cores."""
    lanes: int = 0
    """Lanes of vectors in which items of a launch are run; 0: as many as suit the processor; 1:
    none."""
    guard_share: float = 0.01
    """Share of the items of a launch that may fail one guard, where items run out of order, before
    the region is compiled again without it."""
    observe_items: int = 0
    """Items of a launch that are observed first, to speculate; 0: by their work."""


@record.dataclass(frozen=True)
class Choice:
    """One step of a rule's chain."""

    backend: str
    """Name of a compiler."""
    options: Options = Options()


class Action(enum.Enum):
    """The action of a rule on the regions that it matches."""

    COMPILE = "compile"
    INTERPRET = "interpret"


class LaunchPlacing(enum.Enum):
    """The way in which a rule's backends share the launches that it matches."""

    FIRST = "first"
    """The first backend that compiles the launch runs its items."""
    MEASURED = "measured"
    """All backends are places; each range of items runs where it is expected to end first."""
    SPLIT = "split"
    """All backends are places; each range of items is divided among them, so that all end at
    once."""


_EVERYTHING = When()


@record.dataclass(frozen=True)
class Rule:
    """A predicate of regions, and the action on them."""

    name: str = ""
    """For people; may be empty."""
    when: When = _EVERYTHING
    action: Action = Action.COMPILE
    backends: tuple[Choice, ...] = ()
    """In order of preference, the first that compiles the region is used; empty if the action is
    INTERPRET."""
    place: LaunchPlacing = LaunchPlacing.FIRST
    """For regions that are launches."""

    @property
    def chain(self) -> tuple[Choice, ...]:
        """The backends that are asked for a region in turn. Where launches are placed by time it is
        the first alone: the others compile only for the items of its launches."""
        return self.backends if self.place is LaunchPlacing.FIRST else self.backends[:1]


@record.dataclass(frozen=True)
class Policy:
    """The rules that select a backend for each region."""

    interpreter: str = INTERPRETER
    """The backend that runs code that is not compiled."""
    profile: Profile = Profile()
    rules: tuple[Rule, ...] = ()
    """The first that matches applies; regions that none matches are interpreted."""
    whole_program: bool = False
    """The rules are applied to the whole program before its first instruction."""
    shadow: Shadow | None = None

    @classmethod
    def for_compiler(cls, name: str, interpreter: str = INTERPRETER, device: str = "") -> Policy:
        """The policy of `--backend NAME` for a compiler: the whole program, at once, or an
        error."""
        options = Options(optimize=3, background=False, required=True, device=device)
        choice = Choice(name, options)
        rule = Rule(f"everything to {name}", backends=(choice,))
        return cls(interpreter, PROMPT, (rule,), whole_program=True)

    @classmethod
    def for_interpreter(cls, name: str) -> Policy:
        """The policy of `--backend NAME` for an interpreter: only that backend, and nothing is
        counted."""
        return cls(name, Profile(enabled=False))


def check_chosen(backend: object, policy: object) -> None:
    """Raise TypeError for what a caller gives in place of the name of a backend, such as a list of
    names, or in place of a policy, such as a file's name."""
    if backend is not None and not isinstance(backend, str):
        raise TypeError(
            f"backend is {shown(backend)}; the name of one is needed; a policy may name more"
        )
    if policy is not None and not isinstance(policy, Policy):
        message = "a Policy is needed; ferryvm.policy.load(file, backends) reads one"
        raise TypeError(f"policy is {shown(policy)}; {message}")


def build(document: Mapping[str, Any], conditions: Sequence[When]) -> Policy:
    """The policy of a TOML document that has been checked; `conditions` are the predicates of its
    rules."""
    keys = dict(document)
    rules = map(_rule, keys.pop("rule", ()), conditions)
    shadow = dict(keys.pop("shadow", {"enabled": False}))
    return Policy(
        profile=Profile(**keys.pop("profile", {})),
        rules=tuple(rules),
        shadow=Shadow(**shadow) if shadow.pop("enabled", True) else None,
        **keys,
    )


def build_ours(document: Mapping[str, Any]) -> Policy:
    """The policy of a TOML document of our own, which needs no check; names of facts are not
    checked."""
    whens = [rule.get("when", {}) for rule in document.get("rule", ())]
    return build(document, [read(when, ("when",), _refuse, open_fact) for when in whens])


def _rule(table: Mapping[str, Any], when: When) -> Rule:
    keys = {key: value for key, value in table.items() if key != "when"}
    action = Action(keys.pop("action", Action.COMPILE.value))
    place = LaunchPlacing(keys.pop("place", LaunchPlacing.FIRST.value))
    backends = tuple(map(_choice, keys.pop("backends", ())))
    return Rule(when=when, action=action, backends=backends, place=place, **keys)


def _choice(entry: str | Mapping[str, Any]) -> Choice:
    if isinstance(entry, str):
        return Choice(entry)
    keys = dict(entry)
    return Choice(keys.pop("name"), Options(**keys))


def _refuse(fault: TomlFault) -> None:
    raise ValueError(f"a document that has not been checked: {fault}")
