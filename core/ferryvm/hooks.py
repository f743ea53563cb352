# SPDX-License-Identifier: Apache-2.0
"""The hooks that plugins implement; docs/plugins.md has an example of each.

A plugin is a module (or object) named by an entry point in the group `ferryvm`; in-tree backends
use the same hooks. A hook may omit arguments that it does not use. A hook that raises, or returns a
wrong value, is reported in one line and not called again; the program continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ferryvm.backend import Backend
from ferryvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    import click
    import pluggy

    from ferryvm.front_end import FrontEnd
    from ferryvm.machine.control import Status
    from ferryvm.machine.host import HostFunction
    from ferryvm.region.region import Region

__all__ = [
    "BackendEntry",
    "CommandEntry",
    "FactValue",
    "HostEntry",
    "LanguageEntry",
    "PlacementEvent",
    "TransferEvent",
    "ferryvm_backends",
    "ferryvm_commands",
    "ferryvm_hosts",
    "ferryvm_languages",
    "ferryvm_placement",
    "ferryvm_policy_facts",
    "ferryvm_transfer",
    "hookimpl",
]

PROJECT = "ferryvm"
"""The name under which pluggy marks and finds hooks."""

if TYPE_CHECKING:
    hookimpl = pluggy.HookimplMarker(PROJECT)
    """Decorator that marks a function of a plugin as the implementation of the hook of its name."""


def __getattr__(name: str) -> object:
    """`hookimpl`, at its first use: who has no plugins needs no pluggy, which takes 3 ms to
    load."""
    if name != "hookimpl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import pluggy

    marker = globals()["hookimpl"] = pluggy.HookimplMarker(PROJECT)
    return marker


class BackendEntry(NamedTuple):
    """A backend's name and its loader: it can be listed without being imported."""

    name: str
    load: Callable[[], Backend]


class CommandEntry(NamedTuple):
    """A `ferry` command's name and its loader, which is called to run or list the command."""

    name: str
    load: Callable[[], click.Command]


class LanguageEntry(NamedTuple):
    """A language's name and its loader: it can be listed without importing its front end."""

    name: str
    suffixes: tuple[str, ...]
    """Suffixes of its files, such as `.skiff`; with `--language` a file may have any."""
    load: Callable[[], FrontEnd]
    summary: str = ""
    """A description in one line, for `ferry languages`."""


class HostEntry(NamedTuple):
    """A host function's name and its loader: it can be listed without being imported."""

    name: str
    load: Callable[[], HostFunction]
    """Returns a host function, as `ferryvm.host` makes it."""


FactValue = bool | int | float | str
"""Type of a fact's value."""


class PlacementEvent(NamedTuple):
    """An event of mixed execution at one site of a program."""

    kind: str
    """`hot`: the site reached its threshold; `attempt`: a backend was requested to compile;
    `installed`: its code is entered from now on; `replaced`: better code is, instead of the one
    before; `removed`: no longer; `guard`: a guard of the code failed too often."""
    pc: int
    counting: bool
    """True if the event concerns the form of the code that counts instructions."""
    region: str
    """Name of the region that was chosen for the site; empty before that."""
    why: str
    """The reason for compiling at the site: `reached 20000 times`."""
    backend: str = ""
    """The backend of the attempt, or of the code; empty for `hot`."""
    outcome: str = ""
    """Result of an attempt: `compiled`, `from the cache`, `refused`, `failed`, `not asked` or
    `lost`."""
    reason: str = ""
    """The reason that there is no code after an attempt."""
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
    """The reason for the exit; LEAVE: the interpreter continues at `exit`."""
    began: float
    """`time.perf_counter()` at the entry."""
    seconds: float


def ferryvm_backends() -> list[BackendEntry]:
    """The backends of this plugin; called when names are first needed.

    `load` is called when the backend is first used. It should import the libraries that the backend
    needs, so that a missing library affects only users of this backend.
    """
    raise NotImplementedError  # a specification: plugins implement it


def ferryvm_commands() -> list[CommandEntry]:
    """The plugin's commands for `ferry`: click commands or groups.

    Called when the name given to `ferry` is not a built-in command, and for its help. A FerryError
    that a command raises is shown in one line, with exit code 2. A command returns its exit code.
    """
    raise NotImplementedError  # a specification: plugins implement it


def ferryvm_languages() -> list[LanguageEntry]:
    """The languages of this plugin; called if no built-in language matches a program.

    `load` is called for the first program in the language.
    """
    raise NotImplementedError  # a specification: plugins implement it


def ferryvm_hosts() -> list[HostEntry]:
    """The host functions of this plugin; called if a program imports one that is not standard.

    `load` is called when a program first imports that one.
    """
    raise NotImplementedError  # a specification: plugins implement it


def ferryvm_placement(event: PlacementEvent) -> None:
    """Called when a site gets hot, a backend is requested to compile, code is installed or removed.

    Called in a separate thread for each plugin, in the order of the events: neither the program nor
    a compilation waits for it. The end of a run waits for one second: a hook that has not handled
    its events by then is not called again.
    """


def ferryvm_transfer(event: TransferEvent) -> None:
    """Called after each execution of compiled code, if transfers are observed.

    They are not observed by default, since a transfer takes nanoseconds and a hook microseconds:
    `ferry run --trace` observes them, as does `ferryvm.engine.observer.Observer` in Python.
    """


def ferryvm_policy_facts(region: Region) -> Mapping[str, FactValue]:
    """Facts about a region that rules of policies can test, by name.

    The fact `cost` of a plugin whose entry point is `tally` is `plugin.tally.cost` in a rule.
    Called when a policy decides about a region, once or a few times in a run.
    """
    raise NotImplementedError  # a specification: plugins implement it


SPECIFICATIONS = (
    ferryvm_backends,
    ferryvm_commands,
    ferryvm_languages,
    ferryvm_hosts,
    ferryvm_placement,
    ferryvm_transfer,
    ferryvm_policy_facts,
)
"""All hooks."""
