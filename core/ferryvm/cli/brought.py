# SPDX-License-Identifier: Apache-2.0
"""Commands that plugins bring: found by a hook, loaded when they are called or listed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import click

from ferryvm.errors import FerryError
from ferryvm.failure import described, kind_of
from ferryvm.float_environment import callers
from ferryvm.hooks import CommandEntry
from ferryvm.plugin import Plugin, Plugins

_HOOK = "ferryvm_commands"

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_ALLOWED = "small letters, digits and - are allowed, a letter first"


class Brought:
    """The commands that plugins bring, by name. What is wrong with one is logged, and concerns no
    other."""

    def __init__(self, plugins: Plugins, own: Collection[str]) -> None:
        """`own`: names that are not to be had."""
        self._plugins, self._own = plugins, own
        self._entries: dict[str, tuple[CommandEntry, Plugin]] = {}
        self._loaded: dict[str, click.Command] = {}
        for plugin, entries in plugins.call(_HOOK):
            if not isinstance(entries, list):
                what = f"returned {kind_of(entries)}, not a list of CommandEntry"
                plugins.drop(plugin, _HOOK, what)
                continue
            for entry in entries:
                fault = self._add(entry, plugin)
                if fault:
                    plugins.drop(plugin, _HOOK, fault)

    def _add(self, entry: object, plugin: Plugin) -> str | None:
        """Take in an entry; None, or what is wrong with it."""
        if not isinstance(entry, CommandEntry):
            return f"returned {kind_of(entry)} in its list, not a CommandEntry"
        if not isinstance(entry.name, str) or not _NAME.fullmatch(entry.name):
            return f"returned a command of the name {entry.name!r}; {_ALLOWED}"
        if not callable(entry.load):
            return f"returned {kind_of(entry.load)} to load command {entry.name!r} by, no function"
        taken = ""
        if entry.name in self._own:
            taken = "is ferry's own"
        elif entry.name in self._entries:
            taken = f"is taken by {self._entries[entry.name][1]}"
        if taken:
            self._plugins.log(f"command name {entry.name!r} of {plugin} {taken}{plugin.remedy}")
        else:
            self._entries[entry.name] = (entry, plugin)
        return None

    @property
    def names(self) -> Collection[str]:
        """Names of all commands, whether they load or not."""
        return self._entries.keys()

    @property
    def loadable(self) -> Mapping[str, click.Command]:
        """Those commands that load; why another one does not is logged."""
        found = {}
        for name in self._entries:
            try:
                found[name] = self._load(name)
            except FerryError as error:
                self._plugins.log(str(error))
        return found

    def get(self, name: str) -> click.Command | None:
        """A command, None for a name that nobody brings. Raises FerryError for one that does not
        load."""
        return self._load(name) if name in self._entries else None

    def _load(self, name: str) -> click.Command:
        if name not in self._loaded:
            entry, plugin = self._entries[name]
            who = f"command {name!r} of {plugin}"
            try:
                with callers():
                    found: object = entry.load()
            except (Exception, SystemExit) as error:  # third-party code
                why = f"does not load: {described(error)}{plugin.remedy}"
                raise FerryError(f"{who} {why}") from error
            if not isinstance(found, click.Command):
                why = f"loads as {kind_of(found)}, not a command of click{plugin.remedy}"
                raise FerryError(f"{who} {why}")
            _run_in_callers(found)
            self._loaded[name] = found
        return self._loaded[name]


def _run_in_callers(command: click.Command) -> None:
    """Have a command run in the floating-point environment that the process was started with."""
    invoke = command.invoke

    def run(context: click.Context) -> object:
        with callers():
            return invoke(context)

    command.invoke = run  # type: ignore[method-assign,assignment]  # it is this one object's
