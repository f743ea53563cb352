# SPDX-License-Identifier: Apache-2.0
"""Plugins: discovery, loading one at a time, and calls that isolate faults.

    entry points ──> allowed? ──> import ──> do its hooks match? ──> Plugin
                        │ no        │ fails       │ no: that hook is not used
                        └───────────┴─────────────┴──> PluginFault: plugin, reason, remedy

The in-tree distribution comes first, so that no other can take its names. FERRYVM_PLUGINS selects
the other plugins; those that it excludes are not imported.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ferryvm import hooks, notice, process
from ferryvm.errors import FerryError, suggestion
from ferryvm.failure import described, is_out_of_memory, kind_of
from ferryvm.float_environment import callers, ours
from ferryvm.foreign import ForeignError, contained, unchanged
from ferryvm.named_tuple import NamedTuple
from ferryvm.notice import Log
from ferryvm.own_plugin import alone
from ferryvm.time_limit import limited

if TYPE_CHECKING:
    from importlib import metadata

    import pluggy

    from ferryvm.delivery import Delivery

GROUP = "ferryvm"
"""The entry point group in which plugins are named."""

VARIABLE = "FERRYVM_PLUGINS"
"""Environment variable: unset or empty, all plugins; `none`, in-tree only; else the names of
plugins, by distribution or entry point, separated by commas."""

OWN = "ferryvm"
"""The distribution that the in-tree backends are in."""

E = TypeVar("E")

_LOG = Log(__name__)

_reported: set[str] = set()
"""Lines that this process has logged: a command may discover plugins more than once."""


class Plugin(NamedTuple):
    """A plugin: an implementation of hooks."""

    name: str
    """Its entry point; NAME in `plugin.NAME.FACT`."""
    distribution: str = ""
    """Name of its distribution; empty if it was registered without one."""
    version: str = "?"

    @property
    def is_own(self) -> bool:
        """True if it is in-tree."""
        return self.distribution == OWN

    @property
    def remedy(self) -> str:
        """The remedy for users of this plugin."""
        if not self.distribution or self.is_own:
            return ""
        return f"; update or uninstall {self.distribution}, or leave it out of {VARIABLE}"

    def __str__(self) -> str:
        return f"{self.distribution}:{self.name}" if self.distribution else self.name


class PluginFault(NamedTuple):
    """The reason that a plugin, or a hook of it, is not used."""

    plugin: Plugin
    message: str
    """One line that names the plugin."""
    is_forbidden: bool = False
    """True if FERRYVM_PLUGINS excludes the plugin."""


class _Implementation(NamedTuple):
    plugin: Plugin
    action: Callable[..., object]
    arguments: tuple[str, ...]


class Plugins:
    """The registered plugins, by the hooks that they implement."""

    def __init__(self, discover: bool = True, log_faults: bool = True) -> None:
        """`discover`: load the entry points of installed distributions; `log_faults`: log their
        faults, besides recording them."""
        self.faults: list[PluginFault] = []
        self.warnings: list[str] = []
        """Errors in FERRYVM_PLUGINS, one line each."""
        self._specified = {hook.__name__ for hook in hooks.SPECIFICATIONS}
        self._implementations: dict[str, list[_Implementation]] = {}
        self._names: dict[str, Plugin] = {}
        self._deliveries: dict[Plugin, Delivery] = {}
        self._log_faults = log_faults
        self._lock = threading.Lock()
        if discover:
            self._discover()

    # --- finding ----------------------------------------------------------------------------

    def _discover(self) -> None:
        found = self._found()
        found.sort(key=lambda pair: (not pair[0].is_own, pair[0].distribution, pair[0].name))
        if not any(plugin.is_own for plugin, _ in found):  # importlib.metadata ignores errors
            why = "either it is not installed, or there is too little memory to look for it"
            self._note(Plugin("?", OWN), f"is not found: {why}")
        wanted = self._wanted([plugin for plugin, _ in found])
        if not all(plugin.is_own for plugin, _ in found):
            from ferryvm import crash_note  # not needed without plugins

            for what in crash_note.left_behind():
                self._warn(f"an earlier run of ferry ended while it was {what}")
        for plugin, load in found:
            if not (plugin.is_own or wanted is None or plugin in wanted):
                setting = os.environ[VARIABLE]
                self._note(plugin, f"is left out: {VARIABLE} is {setting!r}", is_forbidden=True)
                continue
            try:
                # A library that it loads may change the thread's environment.
                around = ours() if plugin.is_own else callers()
                with self.loading(plugin, f"loading plugin {plugin}"), around:
                    implementation = load()
            except ForeignError as error:
                _check_memory(plugin, error)
                self._note(plugin, f"does not load: {error}{plugin.remedy}")
                continue
            self.register(implementation, plugin)

    @contextlib.contextmanager
    def loading(self, plugin: Plugin, doing: str) -> Iterator[None]:
        """Load code of a plugin, with a time limit. Raises as `contained`. Changes of the process
        state are undone and reported; if the code ends the process, the next one reports it."""
        if plugin.is_own:
            with contained(doing), process.owner.loading():
                yield
            return
        from ferryvm import crash_note

        notice.load()  # it may log under our name
        changed: list[str] = []
        limit = limited(doing, plugin.remedy)
        with (
            crash_note.noted(f"{doing}{plugin.remedy}"),
            unchanged(changed.append),
            contained(doing),
            limit,
        ):
            yield
        if changed:
            self._warn(f"{doing} changed {', '.join(changed)}: put back")

    def _found(self) -> list[tuple[Plugin, Callable[[], object]]]:
        """All plugins, each with its loader."""
        own = alone(GROUP, OWN)
        if own is not None:
            plugin = Plugin(own.name, OWN, own.version)
            return [(plugin, lambda: importlib.import_module(own.module))]
        return [(_plugin_of(point), point.load) for point in self._entry_points()]

    def _entry_points(self) -> list[metadata.EntryPoint]:
        from importlib import metadata  # only with plugins: see `own_plugin`

        try:
            return list(metadata.entry_points(group=GROUP))
        except Exception as error:
            if is_out_of_memory(error):
                raise MemoryError from error
            return list(self._readable_entry_points())

    def _readable_entry_points(self) -> Iterator[metadata.EntryPoint]:
        """The entry points of all distributions with readable metadata."""
        from importlib import metadata

        seen = set()
        for distribution in metadata.distributions():
            name, _ = _identity(distribution)
            if name in seen:  # shadowed by one of that name earlier on the path
                continue
            seen.add(name)
            try:
                yield from distribution.entry_points.select(group=GROUP)
            except Exception as error:
                if is_out_of_memory(error):
                    raise MemoryError from error
                plugin = Plugin("?", name)
                why = f"has entry points that cannot be read: {described(error)}"
                self._note(plugin, f"{why}; install {name} again or uninstall it")

    def _wanted(self, found: list[Plugin]) -> set[Plugin] | None:
        """The plugins that FERRYVM_PLUGINS names; None if it excludes none."""
        setting = os.environ.get(VARIABLE, "").strip()
        if not setting:
            return None
        wanted: set[Plugin] = set()
        if setting == "none":
            return wanted
        others = [plugin for plugin in found if not plugin.is_own]
        known = {name for plugin in others for name in (plugin.distribution, plugin.name)} - {""}
        for name in filter(None, map(str.strip, setting.split(","))):
            meant = {
                plugin
                for plugin in found
                if name == plugin.name or _normal(name) == _normal(plugin.distribution)
            }
            if not meant:
                listed = ", ".join(sorted(known)) or "none"
                self._warn(
                    f"{VARIABLE} names {name!r}, which no installed plugin is called"
                    f"{suggestion(name, known)} (known: {listed})"
                )
            wanted |= meant
        return wanted

    # --- registering ------------------------------------------------------------------------

    def register(self, implementation: object, plugin: Plugin) -> None:
        """Add a plugin; its faults are recorded in `faults`."""
        taken = self._names.setdefault(plugin.name, plugin)
        if taken is not plugin:
            why = f"has the name {plugin.name!r}, which {taken} has already"
            self._note(plugin, f"{why}{plugin.remedy}")
            return
        if plugin.is_own:
            self._add_own(plugin, implementation)
            return
        try:
            with contained(f"registering plugin {plugin}"):  # pluggy looks at every attribute
                self._manager.register(implementation, str(plugin))
        except ForeignError as error:
            _check_memory(plugin, error)
            self._note(plugin, f"cannot be registered: {error}{plugin.remedy}")
            return
        for caller in self._manager.get_hookcallers(implementation) or ():
            for one in caller.get_hookimpls():
                if one.plugin is implementation:
                    self._add(plugin, caller.name, one)

    @functools.cached_property
    def _manager(self) -> pluggy.PluginManager:
        """The register of others' hooks."""
        import pluggy  # who has no plugins needs none of this

        mark = pluggy.HookspecMarker(hooks.PROJECT)
        for hook in hooks.SPECIFICATIONS:
            mark(hook)
        manager = pluggy.PluginManager(hooks.PROJECT)
        manager.add_hookspecs(hooks)
        return manager

    def _add_own(self, plugin: Plugin, implementation: object) -> None:
        """Add hooks of our own, which are those functions that have the name of one."""
        for hook in hooks.SPECIFICATIONS:
            action = getattr(implementation, hook.__name__, None)
            if action is not None:
                code = action.__code__
                arguments = code.co_varnames[: code.co_argcount]
                added = _Implementation(plugin, action, arguments)
                self._implementations.setdefault(hook.__name__, []).append(added)

    def _add(self, plugin: Plugin, hook: str, one: pluggy.HookImpl) -> None:
        if hook not in self._specified:
            if not one.optionalhook:
                near = suggestion(hook, self._specified)
                known = ", ".join(sorted(self._specified))
                self._note(plugin, f"implements {hook}, which is no hook{near} (known: {known})")
        elif one.wrapper or one.hookwrapper:
            self._note(plugin, f"has a wrapper around {hook}; only the hook itself is called")
        else:
            added = _Implementation(plugin, one.function, tuple(one.argnames))
            self._implementations.setdefault(hook, []).append(added)

    # --- calling ----------------------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def looking(plugin: Plugin, doing: str, *let_through: type[FerryError]) -> Iterator[None]:
        """Call a plugin with a time limit. Raises as `contained`."""
        around = contextlib.nullcontext() if plugin.is_own else limited(doing, plugin.remedy)
        with contained(doing, *let_through), around:
            yield

    def implement(self, hook: str) -> bool:
        """True if some plugin implements a hook."""
        return bool(self._implementations.get(hook))

    def call(
        self, hook: str, only: Plugin | None = None, **arguments: object
    ) -> Iterator[tuple[Plugin, object]]:
        """The results of a hook, plugin by plugin; `only`: of that plugin alone.

        A hook that raises is dropped; the caller drops one that returns a wrong value.
        """
        for one in tuple(self._implementations.get(hook, ())):
            if only is not None and one.plugin != only:
                continue
            try:
                doing = f"calling {hook} of plugin {one.plugin}"
                with self.looking(one.plugin, doing), callers():
                    result = one.action(*(arguments[name] for name in one.arguments))
            except ForeignError as error:
                _check_memory(one.plugin, error)
                self.drop(one.plugin, hook, f"raised {error}")
            else:
                yield one.plugin, result

    def entries(
        self,
        hook: str,
        kind: type[E],
        fault: Callable[[E], str | None],
        only: Plugin | None = None,
    ) -> Iterator[tuple[Plugin, E]]:
        """The items that a hook returns in a list.

        `fault`: the fault of an item, or None. A faulty item drops the plugin from the hook.
        """
        for plugin, found in self.call(hook, only):
            if type(found) is not list:
                what = f"returned {kind_of(found)}, not a list of {kind.__name__}"
                self.drop(plugin, hook, what)
                continue
            sound: list[E] = []
            with self.checking(plugin, hook):
                for entry in found:
                    wrong: str | None
                    if isinstance(entry, kind):
                        wrong = None if plugin.is_own else fault(entry)
                    else:
                        wrong = f"returned {kind_of(entry)} in its list, not a {kind.__name__}"
                    if wrong is None:
                        sound.append(entry)
                    else:
                        self.drop(plugin, hook, wrong)
            yield from ((plugin, entry) for entry in sound)

    def deliver(self, hook: str, event: object) -> None:
        """Deliver an event to plugins, in a thread for each, without waiting."""
        for one in tuple(self._implementations.get(hook, ())):
            found = self._deliveries.get(one.plugin)
            if found is None:
                with self._lock:
                    found = self._deliveries.setdefault(one.plugin, self._delivery(one.plugin))
            found.put(hook, event)

    def _delivery(self, plugin: Plugin) -> Delivery:
        from ferryvm.delivery import Delivery  # only for plugins that listen

        def notify(hook: str, event: object) -> None:
            for _, result in self.call(hook, plugin, event=event):
                if result is not None:
                    self.drop(plugin, hook, f"returned {kind_of(result)}, where None is expected")

        def complain(what: str) -> None:
            self._note(plugin, f"{what}{plugin.remedy}")

        return Delivery(plugin.name, notify, complain)

    def settle(self) -> None:
        """Wait for the delivery of all events, for at most a second for each plugin."""
        for one in tuple(self._deliveries.values()):
            one.settle()

    @contextlib.contextmanager
    def checking(self, plugin: Plugin, hook: str) -> Iterator[None]:
        """Examine the result of a hook: an exception in it drops the hook, too."""
        is_entered = False
        try:
            with contained(f"looking at what {hook} of plugin {plugin} returned"):
                is_entered = True
                yield
        except ForeignError as error:
            if not is_entered:  # `contained` itself got no memory
                raise MemoryError from error
            _check_memory(plugin, error)
            self.drop(plugin, hook, f"returned what raises {error}")

    def drop(self, plugin: Plugin, hook: str, what: str) -> None:
        """Record a fault of a plugin's hook, and do not call it again."""
        with self._lock:  # hooks are called in several threads
            before = self._implementations.get(hook, [])
            after = [one for one in before if one.plugin != plugin]
            self._implementations[hook] = after
        if len(after) < len(before):
            self._note(plugin, f"{hook} {what}; it is not called again{plugin.remedy}")

    # --- reporting --------------------------------------------------------------------------

    def _note(self, plugin: Plugin, what: str, *, is_forbidden: bool = False) -> None:
        message = (
            f"plugin {plugin} {what}" if plugin.name != "?" else f"{plugin.distribution} {what}"
        )
        self.faults.append(PluginFault(plugin, message, is_forbidden))
        if not is_forbidden:
            self.log(message)

    def _warn(self, message: str) -> None:
        self.warnings.append(message)
        self.log(message)

    def log(self, message: str) -> None:
        """Log a line about plugins, once in a process."""
        if self._log_faults and message not in _reported:
            _reported.add(message)
            _LOG.warning("%s", message)


def _check_memory(plugin: Plugin, error: ForeignError) -> None:
    """Raise MemoryError if our own code got no memory: a message that its backends are unknown
    would mislead."""
    if plugin.is_own and error.__cause__ is not None and is_out_of_memory(error.__cause__):
        raise MemoryError from error


def _plugin_of(point: metadata.EntryPoint) -> Plugin:
    if point.dist is None:
        return Plugin(point.name)
    name, version = _identity(point.dist)
    return Plugin(point.name, name, version)


def _identity(distribution: metadata.Distribution) -> tuple[str, str]:
    """A distribution's name and version; one without METADATA is called by its folder."""
    try:
        said = distribution.metadata  # read once: it parses the file each time
        name, version = str(said["Name"] or ""), str(said["Version"] or "")
    except Exception as error:
        if is_out_of_memory(error):  # otherwise ours would count as foreign
            raise MemoryError from error
        name = version = ""
    folder = getattr(getattr(distribution, "_path", None), "name", "unnamed")
    return name or folder, version or "?"


def _normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
