# SPDX-License-Identifier: Apache-2.0
"""The registry of backends, with the reason for each that is not usable.

"No such name", "did not load" and "not usable on this machine" are three errors. A fault of one
backend or plugin is recorded and reported, and does not affect the others.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ferryvm import pattern
from ferryvm.backend import (
    PROTOCOL_VERSION,
    Backend,
    BackendError,
    Capabilities,
    Compiler,
    Finding,
    Forcing,
    Interpreter,
)
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.failure import kind_of, one_line, shown
from ferryvm.foreign import ForeignError
from ferryvm.hooks import BackendEntry
from ferryvm.host_registry import HostRegistry
from ferryvm.named_tuple import NamedTuple
from ferryvm.plugin import VARIABLE, Plugin, PluginFault, Plugins

__all__ = ["Availability", "Listing", "Registry", "UnknownBackendError"]

RESERVED = ("all", "mixed", "none")
"""Reserved names, which have another meaning where a backend's name is expected."""

_NAME = pattern.lazy(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_ALLOWED = "letters, digits and _ . + - are allowed, a letter or digit first"


class Availability(enum.Enum):
    """State of a backend; the value is for people."""

    USABLE = "usable"
    NOT_USABLE = "not usable"
    """Its `probe` returns a reason: it is not usable on this machine."""
    BROKEN = "broken"
    """It, or its plugin, violates the contract."""
    FORBIDDEN = "forbidden"
    """FERRYVM_PLUGINS excludes its plugin."""
    NAME_TAKEN = "name taken"
    """Another backend has its name."""


class Listing(NamedTuple):
    """One line of `ferry backends`."""

    name: str
    """The backend's name; `-` for a plugin without a known backend."""
    kind: str
    """`interpreter` or `compiler`; `?` if unknown."""
    source: str
    """The plugin it comes from, as `distribution:entry point`."""
    version: str
    protocol: int | None
    """The version of the contract that it implements; None if unknown."""
    state: Availability
    reason: str | None
    """The reason that it is not usable, None if it is."""
    capabilities: Capabilities | None = None


_DEVICES = ("gpu", "cpu", "cuda", "device")
"""Words for what a backend runs on."""


class UnknownBackendError(UnknownNameError):
    """No backend has that name; the message also lists the plugins that did not load."""

    def __init__(self, name: str, known: list[str], missing: list[str]) -> None:
        super().__init__("backend", name, known)
        if name in _DEVICES:
            self.args = (f"{self.args[0]}; backend 'opencl' runs on GPUs and processors",)
        if missing:
            self.args = (f"{self.args[0]}; not there to ask: {'; '.join(missing)}",)


class Registry:
    """Backends by name, from every plugin that loads."""

    strict = False
    """True if its compilers are under test: the IR is verified between passes, the cache is not
    used, and a compiler's fault ends the program even if the policy would continue."""

    def __init__(self, discover: bool = True, log_faults: bool = True) -> None:
        """`discover`: load the entry points of installed distributions; `log_faults`: log their
        faults, besides recording them."""
        self.plugins = Plugins(discover, log_faults)
        self.hosts = HostRegistry(self.plugins)
        """The host functions that every engine of this registry offers."""
        self._entries: dict[str, tuple[BackendEntry, Plugin]] = {}
        self._taken: list[tuple[str, Plugin, str]] = []
        """Backends whose name another one has: name, plugin, reason."""
        self._loaded: dict[str, Backend] = {}
        self._failed: dict[str, str] = {}
        self._collect(None)

    def register(self, implementation: object, name: str) -> None:
        """Add a plugin without an entry point. Raises BackendError if it has a fault."""
        before = len(self.plugins.faults) + len(self._taken)
        plugin = Plugin(name)
        self.plugins.register(implementation, plugin)
        self._collect(plugin)
        self.hosts.look_again(plugin)
        if len(self.plugins.faults) + len(self._taken) > before:
            taken = [reason for _, other, reason in self._taken if other is plugin]
            raise BackendError(taken[0] if taken else self.plugins.faults[-1].message)

    def _collect(self, only: Plugin | None) -> None:
        found = self.plugins.entries("ferryvm_backends", BackendEntry, _entry_fault, only)
        for plugin, entry in found:
            self._add(entry, plugin)

    def _add(self, entry: BackendEntry, plugin: Plugin) -> None:
        taken = ""
        if entry.name in RESERVED:
            taken = "is reserved"
        elif entry.name in self._entries:
            taken = f"is taken by {self._entries[entry.name][1]}"
        if taken:
            reason = f"backend name {entry.name!r} of {plugin} {taken}{plugin.remedy}"
            self._taken.append((entry.name, plugin, reason))
            self.plugins.log(reason)
        else:
            self._entries[entry.name] = (entry, plugin)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all registered backends, usable or not."""
        return tuple(self._entries)

    @property
    def faults(self) -> list[PluginFault]:
        """Faults of plugins so far."""
        return self.plugins.faults

    def get(self, name: str) -> Backend:
        """The usable backend of that name.

        Raises UnknownNameError for an unregistered name, BackendError for a backend that does not
        load or is not usable on this machine.
        """
        backend = self._load(name)
        state, reason = self._probe(backend, name)
        if state is Availability.BROKEN:
            raise BackendError(f"backend {name!r}: {reason}")
        if reason is not None:
            raise BackendError(f"backend {name!r} is not usable here: {reason}")
        return backend

    def _probe(self, backend: Backend, name: str) -> tuple[Availability, str | None]:
        plugin = self._entries[name][1]
        try:
            with self.plugins.looking(plugin, f"probing backend {name!r} of plugin {plugin}"):
                reason: object = backend.probe()
        except ForeignError as error:
            return Availability.BROKEN, f"its probe failed: {error}{plugin.remedy}"
        if reason is None:
            return Availability.USABLE, None
        if not issubclass(type(reason), str):
            what = f"its probe returned {kind_of(reason)}, not None or a text"
            return Availability.BROKEN, f"{what}{plugin.remedy}"
        assert isinstance(reason, str)
        return Availability.NOT_USABLE, one_line(reason)

    def _entry(self, name: str) -> tuple[BackendEntry, Plugin]:
        if name not in self._entries:
            missing = [fault.message for fault in self.plugins.faults]
            raise UnknownBackendError(name, list(self._entries), missing)
        return self._entries[name]

    def _load(self, name: str) -> Backend:
        if name in self._loaded:
            return self._loaded[name]
        entry, plugin = self._entry(name)
        if name not in self._failed:
            doing = f"loading backend {name!r} of plugin {plugin}"
            try:
                with self.plugins.loading(plugin, doing):
                    backend: object = entry.load()
            except ForeignError as error:
                what = f"of {plugin} does not load: {error}{plugin.remedy}"
                self._failed[name] = f"backend {name!r} {what}"
                raise BackendError(self._failed[name]) from error
            fault: str | None
            try:
                with self.plugins.looking(plugin, doing):
                    fault = _fault(backend, name, plugin)
            except ForeignError as error:
                fault = f"cannot be looked at: {error}{plugin.remedy}"
            if fault is None:
                assert isinstance(backend, Backend)
                self._loaded[name] = backend
                return backend
            self._failed[name] = f"backend {name!r} of {plugin} {fault}"
        raise BackendError(self._failed[name])

    # --- listing ----------------------------------------------------------------------------

    def listings(self) -> list[Listing]:
        """All backends with their state, then the plugins with a fault."""
        lines = [self._listing(name, plugin) for name, (_, plugin) in self._entries.items()]
        for name, plugin, reason in self._taken:
            state = Availability.NAME_TAKEN
            lines.append(Listing(name, "?", str(plugin), plugin.version, None, state, reason))
        for fault in self.plugins.faults:
            state = Availability.FORBIDDEN if fault.is_forbidden else Availability.BROKEN
            source, version = str(fault.plugin), fault.plugin.version
            lines.append(Listing("-", "?", source, version, None, state, fault.message))
        return lines

    def listing(self, name: str) -> Listing:
        """One backend with its state. Raises UnknownNameError for an unregistered name."""
        return self._listing(name, self._entry(name)[1])

    def _listing(self, name: str, plugin: Plugin) -> Listing:
        source = str(plugin)
        try:
            backend = self._load(name)
        except BackendError as error:
            return Listing(name, "?", source, plugin.version, None, Availability.BROKEN, str(error))
        kind = "interpreter" if isinstance(backend, Interpreter) else "compiler"
        state, reason = self._probe(backend, name)
        why = reason and f"backend {name!r}: {reason}"
        try:
            with self.plugins.looking(plugin, f"looking at backend {name!r} of plugin {plugin}"):
                version, has = one_line(backend.version), backend.capabilities
                return Listing(name, kind, source, version, backend.protocol, state, why, has)
        except ForeignError as error:
            why = f"backend {name!r}: cannot be looked at: {error}{plugin.remedy}"
            return Listing(name, kind, source, plugin.version, None, Availability.BROKEN, why)

    # --- examining --------------------------------------------------------------------------

    def findings(self, name: str) -> tuple[Finding, ...]:
        """The findings of a backend on this machine; none if it does not load.

        If `examine` raises, or returns a wrong value, that is the only finding. Raises
        UnknownNameError for an unregistered name.
        """
        plugin = self._entry(name)[1]
        try:
            backend = self._load(name)
        except BackendError:  # its state says so
            return ()
        try:
            doing = f"examining backend {name!r} of plugin {plugin}"
            with self.plugins.looking(plugin, doing, _WrongFindingsError):
                return _checked(backend.examine())
        except _WrongFindingsError as error:
            problem = f"its examine returned {error}"
        except ForeignError as error:
            problem = f"its examine failed: {error}"
        return (Finding(name, problem=problem, remedy=plugin.remedy.removeprefix("; ")),)


class _WrongFindingsError(FerryError):
    """The findings have a wrong type; the message describes them."""


def _checked(found: object) -> tuple[Finding, ...]:
    """Findings with every text in one line. Raises _WrongFindingsError, and any other exception,
    because facts may be of any class."""
    if not isinstance(found, list | tuple):
        raise _WrongFindingsError(f"{kind_of(found)}, not a list of Finding")
    return tuple(_checked_finding(finding) for finding in found)


def _checked_finding(finding: object) -> Finding:
    if not isinstance(finding, Finding):
        raise _WrongFindingsError(f"{kind_of(finding)} in its list, not a Finding")
    for name in ("subject", "problem", "remedy"):
        value: object = getattr(finding, name)
        if not isinstance(value, str):
            raise _WrongFindingsError(f"a finding with {kind_of(value)} as its {name}, not a text")
    facts: object = finding.facts
    if not isinstance(facts, Mapping):
        raise _WrongFindingsError(f"a finding with {kind_of(facts)} as its facts, not a mapping")
    for fact, value in facts.items():
        if not isinstance(fact, str):
            raise _WrongFindingsError(f"a fact named by {kind_of(fact)}, not by a text")
        if not isinstance(value, str | int | float):
            what = f"the fact {fact!r} with {kind_of(value)}, not with a text, a number or a bool"
            raise _WrongFindingsError(what)
    return Finding(
        one_line(finding.subject),
        {one_line(k): one_line(v) if isinstance(v, str) else v for k, v in facts.items()},
        one_line(finding.problem),
        one_line(finding.remedy),
    )


def _entry_fault(entry: BackendEntry) -> str | None:
    """The fault of an entry; None if it has none."""
    if type(entry.name) is not str or not _NAME.fullmatch(entry.name):
        return f"returned a backend of the name {shown(entry.name)}; {_ALLOWED}"
    if not callable(entry.load):
        return f"returned {kind_of(entry.load)} to load backend {entry.name!r} by, no function"
    return None


def _fault(backend: object, name: str, plugin: Plugin) -> str | None:
    """The fault of a loaded object; None if it is a usable backend."""
    if not isinstance(backend, Backend):
        aside = "; return an instance of it" if isinstance(backend, type) else ""
        return f"loads as {kind_of(backend)}, not a Backend{aside}{plugin.remedy}"
    protocol: object = backend.protocol
    if type(protocol) is not int or protocol != PROTOCOL_VERSION:
        return _other_protocol(protocol, plugin)
    if not isinstance(backend, Interpreter | Compiler):
        return f"is neither an Interpreter nor a Compiler{plugin.remedy}"
    for attribute, wanted in (("name", str), ("version", str), ("capabilities", Capabilities)):
        found = getattr(backend, attribute, None)
        is_exact = type(found) is str or attribute != "name"  # names are looked up and compared
        if not isinstance(found, wanted) or not is_exact:
            what = f"has {kind_of(found)} as its {attribute}, where {wanted.__name__} is expected"
            return f"{what}{plugin.remedy}"
    if backend.name != name:
        return f"calls itself {shown(backend.name)}; both names must be the same{plugin.remedy}"
    fault = _capabilities_fault(backend.capabilities)
    return fault and f"{fault}{plugin.remedy}"


def _capabilities_fault(has: Capabilities) -> str | None:
    """The fault of a field of the capabilities, if there is one."""
    for field in ("fuel", "cells", "devices"):
        value: object = getattr(has, field)
        if type(value) is not bool:
            return f"has {kind_of(value)} as its capabilities.{field}, where bool is expected"
    heap: object = has.heap
    if heap is not None and (type(heap) is not int or heap < 0):
        return f"has {shown(heap)} as its capabilities.heap, where None or bytes are expected"
    forcing: object = has.forcing
    if type(forcing) is not frozenset or any(type(one) is not Forcing for one in forcing):
        return f"has {shown(forcing)} as its capabilities.forcing, no frozenset of Forcing"
    return None


def _other_protocol(protocol: object, plugin: Plugin) -> str:
    if type(protocol) is not int:
        return f"has the protocol {shown(protocol)}; a number is expected{plugin.remedy}"
    whose = plugin.distribution or f"plugin {plugin}"
    older = whose if protocol < PROTOCOL_VERSION else "ferryvm"
    return (
        f"was made for protocol {shown(protocol)} of backends, this ferryvm has protocol "
        f"{PROTOCOL_VERSION}: update {older}, or leave {whose} out of {VARIABLE}"
    )
