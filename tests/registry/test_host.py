# SPDX-License-Identifier: Apache-2.0
"""Host functions of plugins, and those added to a registry: when they load, and taken names."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm import HostFunction, host, i64, plugin
from ferryvm.engine import Engine
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.hooks import HostEntry
from ferryvm.machine.host import STANDARD, HostError

from ..double.registry import plugin as plugin_of
from ..double.registry import registry

ASKING = ferryvm.assemble("""
.host twice (i64) -> (i64)
.function main
    i64.const 21
    host twice
    halt
""")


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_reported", set())


@host
def twice(x: i64) -> i64:
    """Double a number."""
    return 2 * x


def test_ferryvm_hosts_is_asked_and_its_function_loaded_when_a_program_imports_it() -> None:
    asked: list[str] = []

    def hosts() -> list[HostEntry]:
        asked.append("names")
        return [HostEntry("twice", load), HostEntry("other", _raise)]

    def load() -> HostFunction:
        asked.append("twice")
        return twice

    found = registry(name="p", ferryvm_hosts=hosts)
    engine = Engine("reference", registry=found)
    assert engine.start(ferryvm.compile("(print! 3)")).run().output == "3\n"
    assert asked == []
    for _ in range(2):
        assert engine.start(ASKING).run().value == 42
    assert asked == ["names", "twice"]
    assert list(found.hosts) == [*STANDARD, "twice", "other"]
    assert (len(found.hosts), found.hosts.source("twice")) == (len(STANDARD) + 2, "plugin p")


def _raise() -> HostFunction:
    raise ValueError("no wish to")


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (_raise, "does not load: ValueError: no wish to (test_host.py:"),
        (lambda: 3, "loads as an int, not a HostFunction; ferryvm.host makes one"),
        (lambda: host(name="thrice")(twice.function), "calls itself 'thrice'; both names must be"),
    ],
)
def test_a_function_that_does_not_load_is_one_line(
    load: Callable[[], HostFunction], what: str
) -> None:
    found = registry(name="p", ferryvm_hosts=lambda: [HostEntry("twice", load)])
    with pytest.raises(HostError) as caught:
        Engine("reference", registry=found).start(ASKING)
    assert str(caught.value).startswith(f"host function 'twice' of plugin p {what}")
    (line,) = [line for line in found.hosts.listings if line.name == "twice"]
    assert (line.function, line.reason) == (None, str(caught.value))


def test_a_name_that_is_taken_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    entries = [HostEntry("print_i64", _raise), HostEntry("twice", lambda: twice)]
    found = registry(name="p", ferryvm_hosts=lambda: entries)
    found.register(plugin_of(ferryvm_hosts=lambda: [HostEntry("twice", _raise)]), "q")
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert Engine("reference", registry=found).start(ASKING).run().value == 42
    assert [record.getMessage() for record in caplog.records] == [
        "host function 'print_i64' of plugin p is left out: it is a standard one",
        "host function 'twice' of plugin q is left out: plugin p has one of that name",
    ]
    assert found.hosts["print_i64"] is STANDARD["print_i64"]


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        (lambda: [3], "returned an int in its list, not a HostEntry"),
        (lambda: [HostEntry("a b", _raise)], "returned a host function of the name 'a b'; letters"),
        (lambda: [HostEntry("a", 3)], "returned an int to load host function 'a' by, no function"),  # type: ignore[arg-type] # what is tested
        (_raise, "raised ValueError: no wish to"),
    ],
)
def test_a_hook_that_returns_anything_else_is_told(
    caplog: pytest.LogCaptureFixture, entries: Callable[[], object], what: str
) -> None:
    found = registry(name="p", ferryvm_hosts=entries)
    with caplog.at_level(logging.WARNING, "ferryvm"), pytest.raises(UnknownNameError):
        Engine("reference", registry=found).start(ASKING)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"plugin p ferryvm_hosts {what}")


def test_a_plugin_that_is_registered_later_is_asked_too() -> None:
    found = registry(name="p", ferryvm_hosts=lambda: [HostEntry("other", _raise)])
    assert "twice" not in found.hosts
    found.register(plugin_of(ferryvm_hosts=lambda: [HostEntry("twice", lambda: twice)]), "q")
    assert found.hosts["twice"] is twice


def test_a_name_that_is_added_twice_is_an_error_with_both_sources() -> None:
    found = registry(name="p", ferryvm_hosts=lambda: [HostEntry("brought", _raise)])
    found.hosts.add({"twice": twice}, "mine.py")
    for name, by in (
        ("twice", "is given by mine.py, too"),
        ("print_i64", "is a standard one"),
        ("brought", "is given by plugin p, too"),
    ):
        with pytest.raises(HostError) as caught:
            found.hosts.add({name: twice}, "other.py")
        assert str(caught.value).startswith(f"host function '{name}' of other.py {by}; ")


def test_functions_of_an_engine_may_take_any_name() -> None:
    found = registry(name="p", ferryvm_hosts=lambda: [HostEntry("twice", _raise)])
    engine = Engine("reference", registry=found, hosts=[twice])
    assert engine.start(ASKING).run().value == 42
    assert list(engine.hosts) == [*STANDARD, "twice"]
    with pytest.raises(FerryError):
        Engine("reference", registry=found).start(ASKING)
