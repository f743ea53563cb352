# SPDX-License-Identifier: Apache-2.0
"""Plugins: one that is broken is reported, and the rest work."""

from __future__ import annotations

import inspect
import types
from importlib import metadata

import pytest

from ferryvm import hooks, registry
from ferryvm.backend import Artifact, Backend, BackendError
from ferryvm.errors import UnknownNameError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.registry import Registry
from ferryvm.verify import Verified


class Minimal(Backend):
    name = "minimal"
    version = "1.2"

    def prepare(self, program: Verified) -> Artifact:
        raise NotImplementedError


class Absent(Minimal):
    def probe(self) -> str | None:
        return "no such device"


class Exploding(Minimal):
    def probe(self) -> str | None:
        raise OSError("driver crashed")


class Older(Minimal):
    protocol = 0


def plugin(*entries: object) -> types.SimpleNamespace:
    """A plugin whose hook returns these."""

    def ferryvm_backends() -> list[object]:
        return list(entries)

    return types.SimpleNamespace(ferryvm_backends=hookimpl(ferryvm_backends))


def loaded(*entries: object) -> Registry:
    made = Registry(discover=False)
    made.register(plugin(*entries), "test")
    return made


def _broken_import() -> Backend:
    raise ModuleNotFoundError("No module named 'pyopencl'")


class FakeEntryPoint:
    """What `metadata.entry_points` yields, as far as the registry looks."""

    dist = None

    def __init__(self, name: str, outcome: object) -> None:
        self.name, self.outcome = name, outcome

    def load(self) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_in_tree_backends_come_through_the_entry_point() -> None:
    found = Registry()
    assert set(found.names) >= {"reference", "switch", "threaded"}
    assert found.broken == []


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (ImportError("no module named x"), "ImportError: no module named x"),
        (SyntaxError("bad"), "SyntaxError: bad"),
        (plugin("text"), "returned a str in its list, not a BackendEntry"),
        (plugin(BackendEntry("good", Minimal)), "backend name 'good' is taken by good"),
        (
            types.SimpleNamespace(ferryvm_backends=hookimpl(lambda: None)),
            "returned NoneType, not a list",
        ),
        (
            types.SimpleNamespace(ferryvm_backends=hookimpl(lambda: 1 / 0)),
            "ZeroDivisionError: division by zero",
        ),
    ],
)
def test_broken_plugin_is_reported_and_the_rest_work(
    monkeypatch: pytest.MonkeyPatch, outcome: object, reason: str
) -> None:
    points = [
        FakeEntryPoint("good", plugin(BackendEntry("good", Minimal))),
        FakeEntryPoint("bad", outcome),
        FakeEntryPoint("late", plugin(BackendEntry("late", Minimal))),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    found = Registry()
    assert found.get("good").version == "1.2"
    assert found.get("late").version == "1.2"
    (broken,) = found.broken
    assert broken.name == "bad:bad"
    assert reason in broken.reason
    assert [line.name for line in found.listings()] == ["good", "late", "-"]


def test_no_such_name_did_not_load_and_not_usable_are_three_errors() -> None:
    found = loaded(
        BackendEntry("absent", Absent),
        BackendEntry("lazy", _broken_import),
        BackendEntry("exploding", Exploding),
        BackendEntry("number", lambda: 3),  # type: ignore[arg-type, return-value]
    )
    with pytest.raises(UnknownNameError, match="no backend 'lasy'; did you mean 'lazy'"):
        found.get("lasy")
    with pytest.raises(BackendError, match="'absent' is not usable here: no such device"):
        found.get("absent")
    with pytest.raises(BackendError, match="'lazy' of test does not load: ModuleNotFoundError"):
        found.get("lazy")
    with pytest.raises(BackendError, match="'exploding': its probe failed: OSError: driver"):
        found.get("exploding")
    with pytest.raises(BackendError, match="'number' of test loads as a int, not a Backend"):
        found.get("number")
    reasons = {line.name: line.reason or "" for line in found.listings()}
    assert "no such device" in reasons["absent"]
    assert "pyopencl" in reasons["lazy"]


def test_another_protocol_version_names_both_and_the_remedy() -> None:
    with pytest.raises(BackendError, match="speaks protocol 0, this ferryvm 1: install matching"):
        loaded(BackendEntry("minimal", Older)).get("minimal")


def test_backend_is_loaded_when_first_asked_for_and_once() -> None:
    made: list[Backend] = []

    def load() -> Backend:
        made.append(Minimal())
        return made[-1]

    found = loaded(BackendEntry("minimal", load))
    assert found.names == ("minimal",)
    assert made == []
    assert found.get("minimal") is found.get("minimal")
    assert len(made) == 1


def test_every_hook_is_documented_and_named_in_these_tests() -> None:
    specs = [
        value for value in vars(hooks).values()
        if inspect.isfunction(value) and hasattr(value, "ferryvm_spec")
    ]  # fmt: skip
    assert specs
    source = inspect.getsource(inspect.getmodule(plugin) or registry)
    for spec in specs:
        assert (spec.__doc__ or "").strip(), f"{spec.__name__} has no documentation"
        assert spec.__name__ in source, f"{spec.__name__} has no test"
