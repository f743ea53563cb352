# SPDX-License-Identifier: Apache-2.0
"""Backends by name: three kinds of errors, protocol versions, loading when first asked for."""

from __future__ import annotations

import pytest

from ferryvm.backend import Backend, BackendError
from ferryvm.errors import UnknownNameError
from ferryvm.hooks import BackendEntry
from ferryvm.registry import RESERVED, Availability, Registry

from ..double.interpreter import Minimal
from ..double.registry import plugin, registry


class Absent(Minimal):
    name = "absent"

    def probe(self) -> str | None:
        return "no such device"


class Exploding(Minimal):
    name = "exploding"

    def probe(self) -> str | None:
        raise OSError("driver crashed")


class Vague(Minimal):
    name = "vague"

    def probe(self) -> str | None:
        return True  # type: ignore[return-value]  # what is tested


class Neither(Backend):
    name, version = "neither", "1"


def loaded(*entries: object) -> Registry:
    return registry(*entries, discover=False)


def _broken_import() -> Backend:
    raise ModuleNotFoundError("No module named 'pyopencl'")


def entry(name: str, **attributes: object) -> BackendEntry:
    """A backend that is right but for the attributes."""
    made = type("Made", (Minimal,), {"name": name, **attributes})
    return BackendEntry(name, made)


def test_in_tree_backends_come_through_the_entry_point() -> None:
    found = Registry()
    assert set(found.names) >= {"llvm", "reference", "switch", "threaded"}
    kinds = {line.name: line.kind for line in found.listings()}
    assert (kinds["threaded"], kinds["llvm"]) == ("interpreter", "compiler")


def test_no_such_name_did_not_load_and_not_usable_are_three_errors() -> None:
    found = loaded(
        BackendEntry("absent", Absent),
        BackendEntry("lazy", _broken_import),
        BackendEntry("exploding", Exploding),
    )
    with pytest.raises(UnknownNameError, match="no backend 'lasy'; did you mean 'lazy'"):
        found.get("lasy")
    with pytest.raises(BackendError, match="'absent' is not usable here: no such device"):
        found.get("absent")
    with pytest.raises(BackendError, match="'lazy' of test does not load: ModuleNotFoundError: No"):
        found.get("lazy")
    with pytest.raises(BackendError, match="'exploding': its probe failed: OSError: driver"):
        found.get("exploding")
    states = {line.name: line.state for line in found.listings()}
    assert states == {
        "absent": Availability.NOT_USABLE,
        "lazy": Availability.BROKEN,
        "exploding": Availability.BROKEN,
    }


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (BackendEntry("x", lambda: 3), "loads as an int, not a Backend"),  # type: ignore[arg-type, return-value]
        (
            BackendEntry("x", lambda: Minimal),  # type: ignore[arg-type, return-value]
            "loads as the class Minimal, not a Backend; return an instance of it",
        ),
        (BackendEntry("neither", Neither), "is neither an Interpreter nor a Compiler"),
        (entry("x", version=3), "has an int as its version, where str is expected"),
        (entry("x", capabilities={"fuel": True}), "has a dict as its capabilities, where Capab"),
        (BackendEntry("x", Minimal), "calls itself 'minimal'; both names must be the same"),
        (entry("x", protocol="one"), "has the protocol 'one'; a number is expected"),
        (BackendEntry("vague", Vague), "its probe returned a bool, not None or a text"),
    ],
)
def test_a_backend_of_the_wrong_form_is_an_error_that_says_what_is_wrong(
    wrong: BackendEntry, reason: str
) -> None:
    found = loaded(wrong)
    with pytest.raises(BackendError) as error:
        found.get(wrong.name)
    assert reason in str(error.value)
    (line,) = found.listings()
    assert line.state is Availability.BROKEN
    assert reason in (line.reason or "")


@pytest.mark.parametrize(("protocol", "older"), [(0, "plugin test"), (2, "ferryvm")])
def test_another_protocol_version_names_both_and_the_remedy(protocol: int, older: str) -> None:
    with pytest.raises(BackendError) as error:
        loaded(entry("x", protocol=protocol)).get("x")
    assert str(error.value) == (
        f"backend 'x' of test was made for protocol {protocol} of backends, this ferryvm has "
        f"protocol 1: update {older}, or leave plugin test out of FERRYVM_PLUGINS"
    )


def test_a_backend_that_states_no_protocol_was_made_for_the_first() -> None:
    assert Backend.protocol == 1


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


def test_a_backend_that_does_not_load_is_tried_once() -> None:
    tries: list[int] = []

    def load() -> Backend:
        tries.append(1)
        raise OSError("no driver")

    found = loaded(BackendEntry("lazy", load))
    for _ in range(3):
        with pytest.raises(BackendError, match="'lazy' of test does not load: OSError: no driver"):
            found.get("lazy")
    assert len(tries) == 1


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (["text"], "plugin test ferryvm_backends returned a str in its list, not a BackendEntry"),
        ([BackendEntry("a,b", Minimal)], "returned a backend of the name 'a,b'; letters, digits"),
        ([BackendEntry("a", None)], "returned None to load backend 'a' by, no function"),  # type: ignore[arg-type]
        (
            [BackendEntry("minimal", Minimal), BackendEntry("minimal", Absent)],
            "backend name 'minimal' of test is taken by test",
        ),
        *(
            ([BackendEntry(name, Minimal)], f"backend name '{name}' of test is reserved")
            for name in RESERVED
        ),
    ],
)
def test_what_is_wrong_with_a_plugin_registered_by_hand_is_raised(
    entries: list[object], reason: str
) -> None:
    with pytest.raises(BackendError) as error:
        loaded(*entries)
    assert reason in str(error.value)


def test_a_name_that_is_taken_leaves_the_first_one_in_place() -> None:
    found = loaded(BackendEntry("minimal", Minimal))
    with pytest.raises(BackendError, match="'minimal' of late is taken by test"):
        found.register(plugin(BackendEntry("minimal", Absent), entry("other")), "late")
    assert type(found.get("minimal")) is Minimal
    assert found.get("other").version == "1"
    assert [line.state for line in found.listings()] == [
        Availability.USABLE, Availability.USABLE, Availability.NAME_TAKEN
    ]  # fmt: skip
