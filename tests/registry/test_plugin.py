# SPDX-License-Identifier: Apache-2.0
"""Plugins as installed distributions: one that is broken is told in one line, the rest work."""

from __future__ import annotations

import errno
import inspect
import json
import logging
import os
import re
from importlib import metadata
from pathlib import Path
from typing import NoReturn

import pytest

import ferryvm_backends
from ferryvm import hooks, plugin
from ferryvm.errors import UnknownNameError
from ferryvm.foreign import ForeignError
from ferryvm.plugin import VARIABLE
from ferryvm.registry import Availability, Listing, Registry

from .. import command
from ..double.distribution import GOOD, plant
from . import test_hook, test_host

ROOT = Path(__file__).parents[2]
REMEDY = "update or uninstall {0}, or leave it out of FERRYVM_PLUGINS"


def foreign(registry: Registry) -> dict[str, Listing]:
    """Lines of the backends that are not in-tree, by source."""
    lines = registry.listings()
    return {line.source: line for line in lines if not line.source.startswith("ferryvm:")}


BROKEN = {
    "raises at import": (
        "raise ImportError('no module named x')",
        "plugin bad:bad does not load: ImportError: no module named x (bad_plugin.py:1 in <module>)",
    ),
    "leaves at import": ("import sys; sys.exit(3)", "plugin bad:bad does not load: SystemExit: 3"),
    "is not Python": ("def", "plugin bad:bad does not load: SyntaxError: invalid syntax"),
    "raises in its hook": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl
        def ferryvm_backends():
            return 1 / 0
        """,
        (
            "plugin bad:bad ferryvm_backends raised ZeroDivisionError: division by zero "
            "(bad_plugin.py:5 in ferryvm_backends); it is not called again"
        ),
    ),
    "returns the wrong type": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl
        def ferryvm_backends():
            return None
        """,
        "plugin bad:bad ferryvm_backends returned None, not a list of BackendEntry",
    ),
    "returns the wrong type in a list": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl
        def ferryvm_backends():
            return ["late"]
        """,
        "plugin bad:bad ferryvm_backends returned a str in its list, not a BackendEntry",
    ),
    "implements a hook that there is not": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl
        def ferryvm_backend():
            return []
        """,
        (
            "plugin bad:bad implements ferryvm_backend, which is no hook; did you mean "
            "'ferryvm_backends'? (known: ferryvm_backends, ferryvm_commands, ferryvm_hosts, "
            "ferryvm_languages, ferryvm_placement, ferryvm_policy_facts, ferryvm_transfer)"
        ),
    ),
    "wants an argument that there is not": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl
        def ferryvm_placement(place):
            pass
        """,
        "plugin bad:bad cannot be registered: PluginValidationError: ",
    ),
    "wraps a hook": (
        """
        from ferryvm.hooks import hookimpl
        @hookimpl(wrapper=True)
        def ferryvm_backends():
            return (yield)
        """,
        "plugin bad:bad has a wrapper around ferryvm_backends; only the hook itself is called",
    ),
}


@pytest.mark.parametrize(("source", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_plugin_that_is_broken_is_one_line_and_the_rest_work(
    site: Path, caplog: pytest.LogCaptureFixture, source: str, reason: str
) -> None:
    plant(site, "early", GOOD.format(name="first"))
    plant(site, "bad", source)
    plant(site, "late", GOOD.format(name="last"))
    with caplog.at_level(logging.WARNING, "ferryvm"):
        found = Registry()
    assert found.get("first").version == found.get("last").version == "2.5"
    assert found.get("threaded").protocol == 1
    (message,) = [record.getMessage() for record in caplog.records]
    assert reason in message
    assert "\n" not in message
    line = foreign(found)["bad:bad"]
    assert (line.name, line.version, line.state) == ("-", "0.7", Availability.BROKEN)
    assert line.reason == message
    assert Registry().plugins.faults == found.plugins.faults
    assert len(caplog.records) == 1, "the same line is told once in a process"


def test_a_broken_plugin_is_told_with_a_remedy(site: Path) -> None:
    plant(site, "bad", "raise ImportError('no')")
    assert (foreign(Registry())["bad:bad"].reason or "").endswith(REMEDY.format("bad"))


def test_entry_points_that_cannot_be_read_concern_their_distribution_alone(site: Path) -> None:
    plant(site, "early", GOOD.format(name="first"))
    plant(site, "bad", "")
    (site / "bad-0.7.dist-info" / "entry_points.txt").write_text("[ferryvm]\nno equals sign\n")
    found = Registry()
    assert found.get("first").version == "2.5"
    assert "threaded" in found.names
    (fault,) = found.faults
    assert fault.message.startswith("bad has entry points that cannot be read: ")
    assert fault.message.endswith("; install bad again or uninstall it")


def test_a_plugin_without_metadata_is_called_by_its_folder(site: Path) -> None:
    plant(site, "good", GOOD.format(name="first"))
    (site / "good-0.7.dist-info" / "METADATA").unlink()
    line = foreign(Registry())["good-0.7.dist-info:good"]
    assert (line.name, line.state) == ("first", Availability.USABLE)


def test_a_backend_name_of_ours_cannot_be_taken(site: Path) -> None:
    plant(site, "bad", GOOD.format(name="switch"))
    found = Registry()
    assert found.get("switch").version != "2.5"
    line = foreign(found)["bad:bad"]
    assert (line.name, line.state) == ("switch", Availability.NAME_TAKEN)
    assert line.reason == (
        "backend name 'switch' of bad:bad is taken by ferryvm:in_tree_backends; "
        + REMEDY.format("bad")
    )


def test_a_plugin_name_cannot_be_taken(site: Path) -> None:
    plant(site, "early", GOOD.format(name="first"), entry="same")
    plant(site, "late", GOOD.format(name="last"), entry="same")
    found = Registry()
    assert "first" in found.names
    assert "last" not in found.names
    assert "has the name 'same', which early:same has already" in (
        foreign(found)["late:same"].reason or ""
    )


# --- what may be loaded ---------------------------------------------------------------------

MARK = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\n"


def imported(site: Path) -> set[str]:
    """The distributions whose plugins were imported."""
    return {file.stem.removesuffix("_plugin") for file in site.glob("*.imported")}


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, {"early", "late_one"}),
        ("", {"early", "late_one"}),
        ("none", set()),
        ("early", {"early"}),
        ("Late.One", {"late_one"}),
        ("entry", {"late_one"}),
        (" early , entry ", {"early", "late_one"}),
        ("ferryvm", set()),
    ],
)
def test_the_variable_says_which_plugins_are_imported(
    site: Path, monkeypatch: pytest.MonkeyPatch, setting: str | None, expected: set[str]
) -> None:
    plant(site, "early", MARK + GOOD.format(name="first"))
    plant(site, "late-one", MARK + GOOD.format(name="last"), entry="entry")
    if setting is not None:
        monkeypatch.setenv(VARIABLE, setting)
    found = Registry()
    assert imported(site) == expected
    assert "threaded" in found.names
    assert found.plugins.warnings == []
    forbidden = {
        line.source for line in found.listings() if line.state is Availability.FORBIDDEN
    }  # fmt: skip
    names = {"early": "early:early", "late_one": "late-one:entry"}
    assert forbidden == {source for name, source in names.items() if name not in expected}


def test_a_name_in_the_variable_that_nothing_has_is_a_warning(
    site: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plant(site, "early", GOOD.format(name="first"))
    monkeypatch.setenv(VARIABLE, "earl")
    with caplog.at_level(logging.WARNING, "ferryvm"):
        found = Registry()
    expected = (
        "FERRYVM_PLUGINS names 'earl', which no installed plugin is called; did you mean 'early'? "
        "(known: early"
    )
    (warning,) = found.plugins.warnings
    assert warning.startswith(expected)
    assert [record.getMessage() for record in caplog.records] == [warning]


def test_a_backend_that_is_missing_for_a_fault_is_asked_for_with_the_fault_named(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(site, "early", GOOD.format(name="first"))
    monkeypatch.setenv(VARIABLE, "none")
    with pytest.raises(Exception, match="no backend 'first'") as error:
        Registry().get("first")
    assert "plugin early:early is left out: FERRYVM_PLUGINS is 'none'" in str(error.value)


# --- ferry backends -------------------------------------------------------------------------


def ferry(site: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that sees the planted distributions."""
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    return command.ferry(*arguments, environment=environment)


def test_the_command_lists_every_state_with_its_reason(site: Path) -> None:
    plant(site, "absent", GOOD.format(name="absent") + "Small.probe = lambda self: 'no device'\n")
    plant(site, "bad", "raise ImportError('no module named x')")
    plant(site, "early", GOOD.format(name="first"))
    plant(site, "older", GOOD.format(name="older") + "Small.protocol = 0\n", version="3")
    plant(site, "taking", GOOD.format(name="switch"))
    plant(site, "unwanted", GOOD.format(name="unwanted"))
    setting = "absent,bad,early,older,taking,missing"
    code, out, err = ferry(site, "backends", "--json", FERRYVM_PLUGINS=setting)
    assert (code, err) == (0, "")
    document = json.loads(out)
    found = {
        line["source"]: (line["name"], line["kind"], line["version"], line["protocol"],
                         line["state"])
        for line in document["backends"] if not line["source"].startswith("ferryvm")
    }  # fmt: skip
    assert found == {
        "absent:absent": ("absent", "interpreter", "2.5", 1, "not usable"),
        "bad:bad": ("-", "?", "0.7", None, "broken"),
        "early:early": ("first", "interpreter", "2.5", 1, "usable"),
        "older:older": ("older", "?", "3", None, "broken"),
        "taking:taking": ("switch", "?", "0.7", None, "name taken"),
        "unwanted:unwanted": ("-", "?", "0.7", None, "forbidden"),
    }
    threaded = next(line for line in document["backends"] if line["name"] == "threaded")
    assert threaded["capabilities"] == {"fuel": True, "heap": None, "cells": True, "forcing": []}
    (warning,) = document["warnings"]
    assert "names 'missing'" in warning

    code, out, err = ferry(site, "backends", FERRYVM_PLUGINS=setting)
    assert (code, err) == (0, f"ferry: {warning}\n")
    reasons = [line["reason"] for line in document["backends"] if line["reason"]]
    assert len(reasons) == 5
    assert all(reason in out for reason in reasons)


def test_a_program_runs_although_a_plugin_is_broken(site: Path, tmp_path: Path) -> None:
    plant(site, "bad", "raise ImportError('no module named x')")
    program = tmp_path / "p.skiff"
    program.write_text("(print! 7)")
    code, out, err = ferry(site, "run", str(program))
    assert (code, out) == (0, "7\n")
    assert re.fullmatch(r"ferry: plugin bad:bad does not load: ImportError: .*\n", err)


COMMANDS = """
import click
from ferryvm.errors import FerryError
from ferryvm.hooks import CommandEntry, hookimpl

@click.command()
@click.argument("name")
def greet(name):
    \"\"\"Say hello to NAME.\"\"\"
    if name == "nobody":
        raise FerryError("there is nobody")
    click.echo(f"hello {name}")
    return 7

def broken():
    raise ImportError("no module named x")

@hookimpl
def ferryvm_commands():
    return [CommandEntry("greet", lambda: greet), CommandEntry("broken", broken)]
"""
"""A plugin with a command that works and one that does not load."""

BROKEN_COMMAND = (
    "ferry: command 'broken' of tally:tally does not load: ImportError: no module named x"
)


def test_a_command_of_a_plugin_is_one_of_ferry(site: Path) -> None:
    plant(site, "tally", COMMANDS)
    assert ferry(site, "greet", "you") == (7, "hello you\n", "")
    assert ferry(site, "greet", "nobody") == (2, "", "ferry: there is nobody\n")
    code, _, err = ferry(site, "gret")
    assert (code, err.splitlines()[-1]) == (
        2,
        "ferry: No such command 'gret'. Did you mean 'greet'?",
    )
    assert ferry(site, "greet", "you", FERRYVM_PLUGINS="none")[0] == 2


def test_help_lists_commands_of_plugins_and_tells_of_what_does_not_load(site: Path) -> None:
    plant(site, "tally", COMMANDS)
    code, out, err = ferry(site, "--help")
    assert code == 0
    assert re.search(r"^  greet +Say hello to NAME\.$", out, re.MULTILINE)
    assert re.search(r"^  run ", out, re.MULTILINE)
    assert "broken" not in out
    (line,) = err.splitlines()
    assert line.startswith(BROKEN_COMMAND)
    assert line.endswith(REMEDY.format("tally"))
    code, out, err = ferry(site, "broken")
    assert (code, out) == (2, "")
    assert err.startswith(BROKEN_COMMAND)
    assert len(err.splitlines()) == 1


def test_our_own_commands_ask_no_plugin_for_theirs(site: Path) -> None:
    plant(site, "tally", COMMANDS.replace("    return [", "    raise ValueError; return ["))
    assert ferry(site, "isa", "nop")[2] == ""
    assert "ferryvm_commands raised ValueError" in ferry(site, "greet", "you")[2]


# --- documentation --------------------------------------------------------------------------


def test_every_hook_is_documented_and_has_a_test_of_its_name() -> None:
    specs = {hook.__name__: hook for hook in hooks.SPECIFICATIONS}
    assert sorted(specs) == [name for name in sorted(hooks.__all__) if name.startswith("ferryvm_")]
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### `(\w+)", page, re.MULTILINE)
    modules = (test_hook, test_host)
    tests = {name for one in modules for name, _ in inspect.getmembers(one, inspect.isfunction)}
    for name, spec in specs.items():
        assert (spec.__doc__ or "").strip(), f"{name} has no documentation"
        assert name in headings, f"docs/plugins.md has no heading for {name}"
        assert any(test.startswith(f"test_{name}_") for test in tests), f"{name} has no test"
    assert sorted(headings) == sorted(specs), "a heading for a hook that there is not"


def test_own_backends_that_get_no_memory_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise OSError(errno.ENOMEM, "Cannot allocate memory", path)

    monkeypatch.setattr(ferryvm_backends.os, "listdir", refuse)
    with pytest.raises(MemoryError):
        Registry()


def test_own_metadata_that_cannot_be_listed_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "alone", lambda *_: None)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [])
    monkeypatch.setattr(plugin, "_reported", set())
    with pytest.raises(UnknownNameError, match="not there to ask: ferryvm is not found: "):
        Registry().get("threaded")
    (line,) = caplog.messages
    assert line.startswith("ferryvm is not found: either it is not installed, or there is too")


def test_own_metadata_that_cannot_be_read_is_not_taken_for_another_plugin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: metadata.Distribution) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(plugin, "alone", lambda *_: None)
    monkeypatch.setattr(metadata.Distribution, "metadata", property(refuse))
    with pytest.raises(MemoryError):
        Registry()


def test_a_check_that_cannot_begin_for_want_of_memory_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(doing: str) -> NoReturn:
        raise ForeignError("MemoryError") from MemoryError()

    found = plugin.Plugins(discover=False)
    monkeypatch.setattr(plugin, "contained", refuse)
    with pytest.raises(MemoryError), found.checking(plugin.Plugin("mine"), "ferryvm_backends"):
        pass
