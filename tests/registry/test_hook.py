# SPDX-License-Identifier: Apache-2.0
"""Each hook in a running engine: what it is told, and what becomes of one that misbehaves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import click
import pytest

import ferryvm
from ferryvm import plugin
from ferryvm.cli.plugin_command import Brought
from ferryvm.engine import Engine
from ferryvm.engine.journal import Event, Outcome
from ferryvm.engine.observer import Observer
from ferryvm.errors import FerryError
from ferryvm.front_end import FrontEnd
from ferryvm.hooks import (
    BackendEntry,
    CommandEntry,
    LanguageEntry,
    PlacementEvent,
    TransferEvent,
)
from ferryvm.language import Languages
from ferryvm.machine.control import Status
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.predicate import When, read
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.skiff import parse_listing
from ferryvm_backends.reference import ReferenceBackend

from ..double.registry import plugin as plugin_of
from ..double.registry import registry

LOOP = "(define i 0) (while (< i 40) (set! i (+ i 1))) (print! i)"


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_reported", set())


def hooked(**implementations: Callable[..., object]) -> Registry:
    """Ours, and a plugin `p` with these hooks."""
    return registry(name="p", **implementations)


def policy(when: Mapping[str, object] | None = None) -> Policy:
    """What has been reached ten times goes to llvm, at once."""
    faults: list[object] = []
    predicate = read(when, ("when",), faults.append) if when else When()
    assert not faults
    choice = Choice("llvm", Options(background=False))
    rule = Rule("hot", predicate, backends=(choice,))
    return Policy(profile=Profile(True, 10, 10, 10), rules=(rule,))


def run(found: Registry, chosen: Policy, observer: Observer | None = None) -> str:
    """What the loop prints."""
    engine = Engine(policy=chosen, registry=found)
    if observer is not None:
        observer.watch(engine)
    return engine.start(ferryvm.compile(LOOP)).run().output


def test_ferryvm_backends_brings_backends() -> None:
    found = hooked(ferryvm_backends=lambda: [BackendEntry("mine", Mine)])
    assert isinstance(found.get("mine"), Mine)
    assert "threaded" in found.names


class Mine(ReferenceBackend):
    name = "mine"


def brought(**loaders: Callable[[], object]) -> Brought:
    """Commands by name, of a plugin `p`."""
    plugins = plugin.Plugins(discover=False)
    entries = [CommandEntry(name, load) for name, load in loaders.items()]  # type: ignore[arg-type]
    hook = plugin_of(ferryvm_commands=lambda: entries)
    plugins.register(hook, plugin.Plugin("p"))
    return Brought(plugins, ["run"])


def test_ferryvm_commands_brings_commands_that_are_loaded_when_they_are_wanted() -> None:
    loaded = []

    def load() -> click.Command:
        loaded.append(1)
        return click.Command("greet")

    found = brought(greet=load)
    assert list(found.names) == ["greet"]
    assert found.get("run") is None
    assert not loaded
    assert found.get("greet") is found.loadable["greet"] is found.get("greet")
    assert loaded == [1]


def test_ferryvm_commands_of_a_taken_name_is_left_out_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plugins = plugin.Plugins(discover=False)
    for name in ("p", "q"):
        entries = [CommandEntry(c, lambda c=c: click.Command(c)) for c in ("run", "greet", name)]  # type: ignore[misc]
        hook = plugin_of(ferryvm_commands=lambda entries=entries: entries)
        plugins.register(hook, plugin.Plugin(name))
    found = Brought(plugins, ["run"])
    assert list(found.names) == ["greet", "p", "q"]
    assert [record.getMessage() for record in caplog.records] == [
        "command name 'run' of p is ferry's own",
        "command name 'run' of q is ferry's own",
        "command name 'greet' of q is taken by p",
    ]


def test_ferryvm_commands_that_do_not_load_concern_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = brought(greet=lambda: click.Command("greet"), raising=lambda: _raise(), text=lambda: "")
    with pytest.raises(FerryError, match="'raising' of p does not load: ValueError: no wish to"):
        found.get("raising")
    with pytest.raises(FerryError, match="'text' of p loads as a str, not a command of click"):
        found.get("text")
    assert not caplog.records
    assert list(found.loadable) == ["greet"]
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("returned", "what"),
    [
        (None, "returned None, not a list of CommandEntry"),
        ([3], "returned an int in its list, not a CommandEntry"),
        ([CommandEntry("Greet", list)], "returned a command of the name 'Greet'; small letters"),  # type: ignore[arg-type]
        ([CommandEntry("greet", 3)], "returned an int to load command 'greet' by, no function"),  # type: ignore[arg-type]
    ],
)
def test_ferryvm_commands_that_returns_what_it_should_not_is_told(
    caplog: pytest.LogCaptureFixture, returned: object, what: str
) -> None:
    plugins = plugin.Plugins(discover=False)
    hook = plugin_of(ferryvm_commands=lambda: returned)
    plugins.register(hook, plugin.Plugin("p"))
    assert not Brought(plugins, []).names
    (record,) = caplog.records
    assert record.getMessage().startswith(f"plugin p ferryvm_commands {what}")
    assert record.getMessage().endswith("; it is not called again")


def test_ferryvm_languages_brings_languages_that_are_loaded_when_they_are_wanted() -> None:
    loaded: list[int] = []

    def load() -> FrontEnd:
        loaded.append(1)
        return FrontEnd(parse_listing)

    made = hooked(ferryvm_languages=lambda: [LanguageEntry("mine", (".mine",), load)])
    languages = Languages(made.plugins)
    assert [one.name for one in languages.all] == ["skiff", "assembly", "classic", "mine"]
    assert not loaded
    for _ in range(2):
        program = languages.of(Path("a.mine")).program("(print! 3)", "a.mine")
        assert ferryvm.run(program, "reference").output == "3\n"
    assert loaded == [1]


def test_ferryvm_placement_is_told_of_each_event() -> None:
    events: list[PlacementEvent] = []
    found = hooked(ferryvm_placement=lambda event: events.append(event))
    assert run(found, policy()) == "40\n"
    hot, attempt, installed = events
    assert (hot.kind, hot.why, hot.region, hot.backend) == ("hot", "reached 10 times", "", "")
    assert (attempt.kind, attempt.backend, attempt.region) == ("attempt", "llvm", "main/loop.1")
    assert attempt.outcome in (Outcome.COMPILED.value, Outcome.CACHED.value)
    assert attempt.seconds > 0
    assert (installed.kind, installed.backend) == ("installed", "llvm")
    assert {event.pc for event in events} == {7}
    assert {event.counting for event in events} == {False}


def test_ferryvm_placement_says_why_a_backend_made_no_code() -> None:
    events: list[PlacementEvent] = []
    found = hooked(ferryvm_placement=lambda event: events.append(event))
    choice = Choice("threaded", Options(background=False))
    chosen = Policy(profile=Profile(True, 10, 10, 10), rules=(Rule(backends=(choice,)),))
    assert run(found, chosen) == "40\n"
    (attempt,) = [event for event in events if event.kind == "attempt"]
    assert attempt.outcome == Outcome.FAILED.value
    assert attempt.reason == "backend 'threaded' compiles no regions"


def test_ferryvm_placement_knows_all_kinds_of_events() -> None:
    documented = PlacementEvent.__doc__ or ""
    import inspect

    source = inspect.getsource(PlacementEvent)
    assert all(f"`{event.value}`" in source for event in Event), documented


def test_ferryvm_transfer_is_told_where_transfers_are_observed() -> None:
    events: list[TransferEvent] = []
    found = hooked(ferryvm_transfer=lambda event: events.append(event))
    observer = Observer(transfers=True)
    assert run(found, policy(), observer) == "40\n"
    (event,) = events
    assert (event.backend, event.region, event.entry) == ("llvm", "main/loop.1", 7)
    assert (event.status, event.exit) == (Status.LEAVE, 11)
    assert event.seconds > 0
    assert observer.transfers == events


def test_ferryvm_transfer_is_not_called_in_a_usual_run() -> None:
    events: list[TransferEvent] = []
    found = hooked(ferryvm_transfer=lambda event: events.append(event))
    assert run(found, policy()) == "40\n"
    assert events == []


@pytest.mark.parametrize(("wanted", "is_compiled"), [(">= 8", True), ("> 8", False)])
def test_ferryvm_policy_facts_can_be_asked_for_in_rules(wanted: str, is_compiled: bool) -> None:
    found = hooked(ferryvm_policy_facts=lambda region: {"cost": len(region.pcs)})
    observer = Observer()
    assert run(found, policy({"plugin.p.cost": wanted}), observer) == "40\n"
    (placement,) = observer.placements
    assert (placement.code is not None) == is_compiled
    assert placement.decision == (
        "rule 1 'hot': plugin.p.cost is 8, wanted >= 8" if is_compiled else "no rule matches"
    )


def _raise() -> None:
    raise ValueError("no wish to")


WRONG: dict[str, tuple[str, Callable[..., object], str]] = {
    "placement raises": (
        "ferryvm_placement", lambda event: _raise(), "raised ValueError: no wish to (test_hook.py:"
    ),
    "placement returns": (
        "ferryvm_placement", lambda event: 3, "returned an int, where None is expected"
    ),
    "transfer raises": (
        "ferryvm_transfer", lambda event: _raise(), "raised ValueError: no wish to (test_hook.py:"
    ),
    "transfer returns": (
        "ferryvm_transfer", lambda event: event, "returned a TransferEvent, where None is expected"
    ),
    "facts raise": (
        "ferryvm_policy_facts", lambda region: _raise(), "raised ValueError: no wish to ("
    ),
    "facts are no mapping": (
        "ferryvm_policy_facts", lambda region: None,
        "returned None, not a mapping from names to values",
    ),
    "facts have a wrong name": (
        "ferryvm_policy_facts", lambda region: {"a.b": 1},
        "returned a fact of the name 'a.b'; a text without dots is expected",
    ),
    "facts have a wrong value": (
        "ferryvm_policy_facts", lambda region: {"a": [1]},
        "returned a list as the fact 'a'; true, false, a number or a text is expected",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("hook", "action", "what"), WRONG.values(), ids=WRONG)
def test_a_hook_that_misbehaves_is_told_once_and_not_called_again(
    caplog: pytest.LogCaptureFixture, hook: str, action: Callable[..., object], what: str
) -> None:
    calls: list[int] = []
    right: list[object] = []

    def wrong(**given: object) -> object:
        calls.append(1)
        return action(*given.values())

    def by_name(hook: str) -> Callable[..., object]:
        if hook == "ferryvm_policy_facts":
            return lambda region: wrong(region=region)
        return lambda event: wrong(event=event)

    found = hooked(**{hook: by_name(hook)})
    other = plugin_of(ferryvm_placement=lambda event: right.append(event))
    found.register(other, "q")
    text = "(define (f n) (let ((i 0)) (while (< i n) (set! i (+ i 1))) i))\n"
    text += "(define k 0) (while (< k 40) (set! k (+ k (f 1)))) (print! k)"
    engine = Engine(policy=policy(), registry=found)
    Observer(transfers=True).watch(engine)
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert engine.start(ferryvm.compile(text)).run().output == "40\n"
    assert len(calls) == 1
    assert len(right) > 3, "the other plugin is told as before"
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"plugin p {hook} {what}")
    assert message.endswith("; it is not called again")
    assert [fault.message for fault in found.faults] == [message]


def test_facts_of_a_plugin_whose_name_has_a_dot_are_refused() -> None:
    found = Registry()
    found.register(plugin_of(ferryvm_policy_facts=lambda region: {"cost": 1}), "a.b")
    assert run(found, policy()) == "40\n"
    (fault,) = found.faults
    assert "has facts that no rule can ask for: a dot in its name 'a.b'" in fault.message


def test_a_hook_may_leave_out_its_arguments() -> None:
    asked: list[Region] = []

    def ferryvm_policy_facts() -> Mapping[str, bool]:
        return {"always": True}

    found = hooked(ferryvm_policy_facts=ferryvm_policy_facts)
    observer = Observer()
    assert run(found, policy({"plugin.p.always": True}), observer) == "40\n"
    assert observer.placements[0].code is not None
    assert asked == []
