# SPDX-License-Identifier: Apache-2.0
"""The hooks that plugins implement; docs/plugins.md has an example of each.

A plugin is a module (or object) named by an entry point of the group `ferryvm`; in-tree backends
come through the same hooks. A hook may leave out arguments that it does not use. A hook that
raises, or returns a wrong value, is reported in one line and not called again; the program
continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pluggy

from ferryvm.backend import Backend

if TYPE_CHECKING:
    import click

    from ferryvm.front_end import FrontEnd
    from ferryvm.machine.control import Status
    from ferryvm.region.region import Region

__all__ = [
    "BackendEntry",
    "CommandEntry",
    "FactValue",
    "LanguageEntry",
    "PlacementEvent",
    "TransferEvent",
    "ferryvm_backends",
    "ferryvm_commands",
    "ferryvm_languages",
    "ferryvm_placement",
    "ferryvm_policy_facts",
    "ferryvm_transfer",
    "hookimpl",
]

hookspec = pluggy.HookspecMarker("ferryvm")
hookimpl = pluggy.HookimplMarker("ferryvm")
"""Decorator that marks a function of a plugin as the implementation of the hook of its name."""


class BackendEntry(NamedTuple):
    """A backend by name, not loaded yet: what can be listed without importing it."""

    name: str
    load: Callable[[], Backend]


class CommandEntry(NamedTuple):
    """A command of `ferry` by name, not loaded yet: it is loaded when it is called, or listed."""

    name: str
    load: Callable[[], click.Command]


class LanguageEntry(NamedTuple):
    """A language by name, not loaded yet: what can be listed without importing its front end."""

    name: str
    suffixes: tuple[str, ...]
    """Of files in it, as `.skiff`; `--language` takes others."""
    load: Callable[[], FrontEnd]
    summary: str = ""
    """A line for `ferry languages`."""


FactValue = bool | int | float | str
"""Type of a fact's value."""


class PlacementEvent(NamedTuple):
    """An event of mixed execution at one site of a program."""

    kind: str
    """`hot`: the site reached its threshold; `attempt`: a backend was asked to compile;
    `installed`: its code is entered from now on; `removed`: no longer; `guard`: a guard of the
    code failed too often."""
    pc: int
    counting: bool
    """True if the event concerns the form of the code that counts instructions."""
    region: str
    """Name of the region that was chosen for the site; empty before that."""
    why: str
    """The reason for compiling at the site: `reached 20000 times`."""
    backend: str = ""
    """The backend that was asked, or whose code it is; empty for `hot`."""
    outcome: str = ""
    """Result of an attempt: `compiled`, `from the cache`, `refused`, `failed`, `not asked` or
    `lost`."""
    reason: str = ""
    """Why an attempt brought no code."""
    seconds: float = 0.0
    """Duration of an attempt."""
    guard: int | None = None
    """pc of the branch whose guard failed."""


class TransferEvent(NamedTuple):
    """One execution of compiled code, from its entry by an interpreter to its exit."""

    backend: str
    region: str
    entry: int
    """pc at which the code was entered."""
    exit: int
    """pc at which the code was left."""
    status: Status
    """The reason of the exit; LEAVE: the interpreter goes on at `exit`."""
    began: float
    """`time.perf_counter()` at the entry."""
    seconds: float


@hookspec
def ferryvm_backends() -> list[BackendEntry]:
    """The backends that this plugin brings; called when names are first needed.

    `load` is called when the backend is first asked for; importing the libraries it needs belongs
    there, so that a library that is missing concerns only those who ask for this backend.
    """
    raise NotImplementedError  # a specification: plugins implement it


@hookspec
def ferryvm_commands() -> list[CommandEntry]:
    """The commands of `ferry` that this plugin brings: commands or groups of click.

    Called when `ferry` is given a name that is none of its own, and for its help. A command raises
    FerryError for what a user has to be told in one line, with exit code 2; what it returns is its
    exit code.
    """
    raise NotImplementedError  # a specification: plugins implement it


@hookspec
def ferryvm_languages() -> list[LanguageEntry]:
    """The languages that this plugin brings; called when a program is in none of ours.

    `load` is called when a program is first in the language.
    """
    raise NotImplementedError  # a specification: plugins implement it


@hookspec
def ferryvm_placement(event: PlacementEvent) -> None:
    """Called when a place gets hot, a backend is asked, code is installed or taken away.

    Called in a thread of the plugin's own, in the order of the events: neither the program nor a
    compilation waits for it. The end of a run does, for a second: a hook that has not taken its
    events by then is called no more.
    """


@hookspec
def ferryvm_transfer(event: TransferEvent) -> None:
    """Called after each stay in compiled code, where transfers are observed.

    That is not so in a usual run, since a transfer takes nanoseconds and a hook microseconds:
    `ferry run --trace` observes them, and `ferryvm.engine.observer.Observer` does from Python.
    """


@hookspec
def ferryvm_policy_facts(region: Region) -> Mapping[str, FactValue]:
    """Facts about a region that rules of policies can ask for, by name.

    The fact `cost` of a plugin whose entry point is `tally` is `plugin.tally.cost` in a rule.
    Called when a policy is asked about a region, which is once or a few times in a run.
    """
    raise NotImplementedError  # a specification: plugins implement it
