# SPDX-License-Identifier: Apache-2.0
"""Which backends there are, and why one cannot be used.

Entry points are loaded one at a time: a plugin that fails is recorded with its reason, and the
rest go on. "No such name", "did not load" and "not usable on this machine" are three errors.
"""

from __future__ import annotations

import dataclasses
from importlib import metadata

import pluggy

from ferryvm import hooks
from ferryvm.backend import PROTOCOL_VERSION, Backend, BackendError
from ferryvm.errors import UnknownNameError
from ferryvm.hooks import BackendEntry

GROUP = "ferryvm"
"""The entry point group in which plugins are named."""


@dataclasses.dataclass(frozen=True)
class Listing:
    """One line of `ferry backends`."""

    name: str
    source: str
    """The distribution or plugin it comes from."""
    version: str
    reason: str | None
    """Why it cannot be used, None if it can."""


@dataclasses.dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that failed, and how."""

    name: str
    reason: str


class Registry:
    """Backends by name, from every plugin that loads."""

    def __init__(self, discover: bool = True) -> None:
        """`discover`: load the entry points of installed distributions."""
        self.manager = pluggy.PluginManager("ferryvm")
        self.manager.add_hookspecs(hooks)
        self.broken: list[BrokenPlugin] = []
        self._entries: dict[str, tuple[BackendEntry, str]] = {}
        self._loaded: dict[str, Backend] = {}
        if discover:
            for entry_point in metadata.entry_points(group=GROUP):
                self._load_plugin(entry_point)

    def _load_plugin(self, entry_point: metadata.EntryPoint) -> None:
        source = entry_point.dist.name if entry_point.dist else entry_point.name
        try:
            self.register(entry_point.load(), f"{source}:{entry_point.name}")
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, others go on
            self.broken.append(BrokenPlugin(f"{source}:{entry_point.name}", _cause(error)))

    def register(self, plugin: object, name: str) -> None:
        """Add a plugin. What its hook raises passes through."""
        self.manager.register(plugin, name)
        for implementation in self.manager.hook.ferryvm_backends.get_hookimpls():
            if implementation.plugin is plugin:
                self._add_entries(implementation.function(), name)

    def _add_entries(self, entries: object, source: str) -> None:
        if not isinstance(entries, list):
            raise BackendError(f"ferryvm_backends returned {type(entries).__name__}, not a list")
        for entry in entries:
            if not isinstance(entry, BackendEntry):
                message = f"ferryvm_backends returned a {type(entry).__name__} in its list"
                raise BackendError(f"{message}, not a BackendEntry")
            if entry.name in self._entries:
                taken = self._entries[entry.name][1]
                raise BackendError(f"backend name {entry.name!r} is taken by {taken}")
            self._entries[entry.name] = (entry, source)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all registered backends, usable or not."""
        return tuple(self._entries)

    def get(self, name: str) -> Backend:
        """The usable backend of that name.

        Raises UnknownNameError for a name nobody registered, BackendError for one that does not
        load or is not usable here.
        """
        backend = self._load(name)
        try:
            reason = backend.probe()
        except Exception as error:  # third-party code
            raise BackendError(f"backend {name!r}: its probe failed: {_cause(error)}") from error
        if reason is not None:
            raise BackendError(f"backend {name!r} is not usable here: {reason}")
        return backend

    def _load(self, name: str) -> Backend:
        if name in self._loaded:
            return self._loaded[name]
        if name not in self._entries:
            raise UnknownNameError("backend", name, self._entries)
        entry, source = self._entries[name]
        try:
            backend = entry.load()
        except Exception as error:  # third-party code
            message = f"backend {name!r} of {source} does not load: {_cause(error)}"
            raise BackendError(message) from error
        if not isinstance(backend, Backend):
            message = f"backend {name!r} of {source} loads as a {type(backend).__name__}"
            raise BackendError(f"{message}, not a Backend")
        if backend.protocol != PROTOCOL_VERSION:
            raise BackendError(
                f"backend {name!r} of {source} speaks protocol {backend.protocol}, "
                f"this ferryvm {PROTOCOL_VERSION}: install matching versions of both"
            )
        self._loaded[name] = backend
        return backend

    def listings(self) -> list[Listing]:
        """All backends with their state, then the plugins that failed."""
        lines = []
        for name, (_, source) in self._entries.items():
            version, reason = "?", None
            try:
                version = self._load(name).version
                self.get(name)
            except BackendError as error:
                reason = str(error)
            lines.append(Listing(name, source, version, reason))
        lines += [Listing("-", broken.name, "?", broken.reason) for broken in self.broken]
        return lines


def _cause(error: BaseException) -> str:
    """An exception in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
