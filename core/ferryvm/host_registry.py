# SPDX-License-Identifier: Apache-2.0
"""The registry of host functions: the standard ones, those that a user added, and those of plugins.

    a name ──> standard, or added ──> HostFunction
                  │ neither: query plugins
                  └──> HostEntry ── load, at the first use ──> HostFunction, or HostError

A name means one function. A plugin's duplicate name is reported in one line and ignored; adding a
duplicate name is an error. Programs that import only standard functions load no plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferryvm import pattern
from ferryvm.errors import FerryError
from ferryvm.failure import kind_of, shown
from ferryvm.foreign import ForeignError
from ferryvm.hooks import HostEntry
from ferryvm.machine.host import STANDARD, HostError, HostFunction
from ferryvm.named_tuple import NamedTuple
from ferryvm.plugin import Plugin, Plugins

_HOOK = "ferryvm_hosts"
_NAME = pattern.lazy(r"[^\W\d][\w.-]*")
_STANDARD = "standard"


class HostListing(NamedTuple):
    """One line of `ferry hosts`."""

    name: str
    source: str
    """`standard`, the plugin that provides it, or the text of a user."""
    function: HostFunction | None
    reason: str = ""
    """The fault of one that does not load."""


class HostRegistry(Mapping[str, HostFunction]):
    """Host functions by name. A lookup raises HostError if a plugin's function does not load."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._functions = dict(STANDARD)
        self._sources: dict[str, str] = {}
        """The sources of functions that are not standard."""
        self._entries: dict[str, tuple[HostEntry, Plugin]] | None = None
        """The entries of plugins; None until they are queried."""

    def __getitem__(self, name: str) -> HostFunction:
        found = self._functions.get(name)
        if found is None:
            entry, plugin = self._brought()[name]
            found = self._functions[name] = self._loaded(entry, plugin)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._functions, *self._brought()))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._functions or name in self._brought()

    def source(self, name: str) -> str:
        """The origin of a host function, in words."""
        if name in STANDARD:
            return _STANDARD
        return self._sources.get(name) or f"plugin {self._brought()[name][1]}"

    def add(self, functions: Mapping[str, HostFunction], source: str) -> None:
        """Offer more host functions. Raises HostError for a duplicate name, with both sources."""
        for name in functions:
            if name in self:
                by = self.source(name)
                who = "is a standard one" if by == _STANDARD else f"is given by {by}, too"
                raise HostError(
                    f"host function {name!r} of {source} {who}; "
                    "host(name=...) gives it another name"
                )
        self._functions.update(functions)
        self._sources.update(dict.fromkeys(functions, source))

    def look_again(self, only: Plugin) -> None:
        """Query a plugin that was registered later, if the others have been queried."""
        if self._entries is not None:
            self._collect(self._entries, only)

    @property
    def listings(self) -> list[HostListing]:
        """All host functions, loaded; those that do not load with the reason."""
        found = []
        for name in self:
            try:
                found.append(HostListing(name, self.source(name), self[name]))
            except FerryError as error:
                found.append(HostListing(name, self.source(name), None, str(error)))
        return found

    # --- plugins ----------------------------------------------------------------------------

    def _brought(self) -> dict[str, tuple[HostEntry, Plugin]]:
        if self._entries is None:
            self._entries = {}
            self._collect(self._entries, None)
        return self._entries

    def _collect(self, into: dict[str, tuple[HostEntry, Plugin]], only: Plugin | None) -> None:
        for plugin, entry in self._plugins.entries(_HOOK, HostEntry, _fault, only):
            if entry.name in self._functions or entry.name in into:
                by = self.source(entry.name)
                what = f"host function {entry.name!r} of plugin {plugin} is left out: "
                who = "it is a standard one" if by == _STANDARD else f"{by} has one of that name"
                self._plugins.log(f"{what}{who}{plugin.remedy}")
            else:
                into[entry.name] = entry, plugin

    def _loaded(self, entry: HostEntry, plugin: Plugin) -> HostFunction:
        who = f"host function {entry.name!r} of plugin {plugin}"
        try:
            with self._plugins.loading(plugin, f"loading {who}"):
                found: object = entry.load()
        except ForeignError as error:
            raise HostError(f"{who} does not load: {error}{plugin.remedy}") from error
        if not isinstance(found, HostFunction):
            what = f"loads as {kind_of(found)}, not a HostFunction; ferryvm.host makes one"
            raise HostError(f"{who} {what}{plugin.remedy}")
        if found.name != entry.name:
            what = f"calls itself {shown(found.name)}; both names must be the same"
            raise HostError(f"{who} {what}{plugin.remedy}")
        return found


def _fault(entry: HostEntry) -> str | None:
    """The fault of an entry; None if it has none."""
    if type(entry.name) is not str or not _NAME.fullmatch(entry.name):
        allowed = "letters, digits and _ . - are allowed, a letter or _ first"
        return f"returned a host function of the name {shown(entry.name)}; {allowed}"
    if not callable(entry.load):
        return (
            f"returned {kind_of(entry.load)} to load host function {entry.name!r} by, no function"
        )
    return None


class Layered(Mapping[str, HostFunction]):
    """Host functions that override others with the same names."""

    def __init__(
        self, first: Mapping[str, HostFunction], others: Mapping[str, HostFunction]
    ) -> None:
        self._first, self._others = first, others

    def __getitem__(self, name: str) -> HostFunction:
        found = self._first.get(name)
        return self._others[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._others, *self._first))

    def __len__(self) -> int:
        return len(list(iter(self)))
