# SPDX-License-Identifier: Apache-2.0
"""Commands of plugins: found by a hook, loaded when they are called or listed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import click

from ferryvm.cli.termination import exit_code
from ferryvm.errors import FerryError
from ferryvm.failure import described, is_ctrl_c, kind_of, shown
from ferryvm.float_environment import callers
from ferryvm.foreign import ForeignError, contained
from ferryvm.hooks import CommandEntry
from ferryvm.plugin import Plugin, Plugins

_HOOK = "ferryvm_commands"

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_ALLOWED = "small letters, digits and - are allowed, a letter first"


class Brought:
    """The commands of plugins, by name. A fault of one is logged, and does not affect the
    others."""

    def __init__(self, plugins: Plugins, own: Collection[str]) -> None:
        """`own`: names that are taken."""
        self._plugins, self._own = plugins, own
        self._entries: dict[str, tuple[CommandEntry, Plugin]] = {}
        self._loaded: dict[str, click.Command] = {}
        for plugin, entry in plugins.entries(_HOOK, CommandEntry, _fault):
            self._add(entry, plugin)

    def _add(self, entry: CommandEntry, plugin: Plugin) -> None:
        taken = ""
        if entry.name in self._own:
            taken = "is ferry's own"
        elif entry.name in self._entries:
            taken = f"is taken by {self._entries[entry.name][1]}"
        if taken:
            self._plugins.log(f"command name {entry.name!r} of {plugin} {taken}{plugin.remedy}")
        else:
            self._entries[entry.name] = (entry, plugin)

    @property
    def names(self) -> Collection[str]:
        """Names of all commands, loadable or not."""
        return self._entries.keys()

    @property
    def loadable(self) -> Mapping[str, click.Command]:
        """The commands that load; the faults of the others are logged."""
        found = {}
        for name in self._entries:
            try:
                command = self._load(name)
                with contained(f"listing command {name!r} of {self._entries[name][1]}"):
                    command.get_short_help_str()  # click's help calls it, outside of our error handling
                    found[name] = command
            except ForeignError as error:
                who = f"command {name!r} of {self._entries[name][1]}"
                self._plugins.log(f"{who} cannot be listed: {error}")
            except FerryError as error:
                self._plugins.log(str(error))
        return found

    def get(self, name: str) -> click.Command | None:
        """A command, None for an unknown name. Raises FerryError if it does not load."""
        return self._load(name) if name in self._entries else None

    def _load(self, name: str) -> click.Command:
        if name not in self._loaded:
            entry, plugin = self._entries[name]
            who = f"command {name!r} of {plugin}"
            try:
                with self._plugins.loading(plugin, f"loading {who}"), callers():
                    found: object = entry.load()
            except ForeignError as error:
                why = f"does not load: {error}{plugin.remedy}"
                raise FerryError(f"{who} {why}") from error
            if not issubclass(type(found), click.Command):
                why = f"loads as {kind_of(found)}, not a command of click{plugin.remedy}"
                raise FerryError(f"{who} {why}")
            assert isinstance(found, click.Command)
            _run_in_callers(found)
            self._loaded[name] = found
        return self._loaded[name]

    def fault(self, name: str, error: BaseException) -> FerryError | None:
        """The message about a command that raised this; None for exceptions that a command may
        raise: FerryError, click's own, Ctrl-C, an exit code given to `sys.exit`."""
        plugin = self._entries[name][1]
        if plugin.is_own or issubclass(type(error), _ENDS) or is_ctrl_c(error):
            return None
        if type(error) is SystemExit and exit_code(error.code) is not None:
            return None
        return FerryError(f"command {name!r} of {plugin} failed: {described(error)}{plugin.remedy}")

    def check_result(self, name: str, result: object) -> None:
        """Raise FerryError if the result is not an exit code."""
        if exit_code(result) is None:
            plugin = self._entries[name][1]
            what = f"returned {shown(result)}, where None or an exit code is expected"
            raise FerryError(f"command {name!r} of {plugin} {what}{plugin.remedy}")


def _fault(entry: CommandEntry) -> str | None:
    """The fault of an entry; None if it has none."""
    if type(entry.name) is not str or not _NAME.fullmatch(entry.name):
        return f"returned a command of the name {shown(entry.name)}; {_ALLOWED}"
    if not callable(entry.load):
        return f"returned {kind_of(entry.load)} to load command {entry.name!r} by, no function"
    return None


_ENDS = (FerryError, click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)


def _run_in_callers(command: click.Command) -> None:
    """Make a command run in the floating-point environment of the process's start."""
    invoke = command.invoke

    def run(context: click.Context) -> object:
        with callers():
            return invoke(context)

    command.invoke = run  # type: ignore[method-assign,assignment]  # it is this one object's
