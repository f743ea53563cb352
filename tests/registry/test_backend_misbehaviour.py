# SPDX-License-Identifier: Apache-2.0
"""Backends of plugins that break their contract: each is one line, and ferry goes on."""

from __future__ import annotations

import sys

import pytest

import ferryvm
from ferryvm import process
from ferryvm.backend import Artifact, Backend, BackendError, Capabilities
from ferryvm.hooks import BackendEntry
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Availability

from ..double.interpreter import Minimal
from ..double.registry import registry
from .raising import Bomb, Evil, raise_it, raising

BACKENDS: dict[str, tuple[dict[str, object], Availability]] = {
    "name raises": ({"name": raising(Bomb())}, Availability.BROKEN),
    "version raises": ({"version": raising(Bomb())}, Availability.BROKEN),
    "protocol raises": ({"protocol": raising(Bomb())}, Availability.BROKEN),
    "capabilities raise": ({"capabilities": raising(Bomb())}, Availability.BROKEN),
    "name is evil": ({"name": Evil("made")}, Availability.BROKEN),
    "protocol is evil": ({"protocol": Evil("1")}, Availability.BROKEN),
    "protocol is gigantic": ({"protocol": 10**10_000}, Availability.BROKEN),
    "version is None": ({"version": None}, Availability.BROKEN),
    "fuel is a text": ({"capabilities": Capabilities(fuel="yes")}, Availability.BROKEN),  # type: ignore[arg-type]
    "heap is negative": ({"capabilities": Capabilities(heap=-1)}, Availability.BROKEN),
    "heap is a float": ({"capabilities": Capabilities(heap=1.5)}, Availability.BROKEN),  # type: ignore[arg-type]
    "forcing is a list": ({"capabilities": Capabilities(forcing=["hot"])}, Availability.BROKEN),  # type: ignore[arg-type]
    "probe raises": ({"probe": lambda _: raise_it(Bomb())}, Availability.BROKEN),
    "probe leaves": ({"probe": lambda _: sys.exit(0)}, Availability.BROKEN),
    "probe returns a number": ({"probe": lambda _: 0}, Availability.BROKEN),
    "probe returns an evil text": (
        {"probe": lambda _: Evil("no\ndevice")},
        Availability.NOT_USABLE,
    ),
    "version is of two lines": ({"version": "1\n2"}, Availability.USABLE),
}


@pytest.mark.parametrize(("attributes", "state"), BACKENDS.values(), ids=BACKENDS)
def test_a_backend_that_breaks_its_contract_is_listed_as_such(
    attributes: dict[str, object], state: Availability, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "owner", process.Owner(has_come=lambda: False))
    made = type("Made", (Minimal,), {"name": "made", **attributes})
    found = registry(BackendEntry("made", made), name="p", discover=False)
    (line,) = found.listings()
    assert line.state is state, line.reason
    assert "\n" not in f"{line.reason} {line.version}"
    if state is not Availability.USABLE:
        with pytest.raises(BackendError):
            found.get("made")


PREPARE: dict[str, tuple[dict[str, object], str]] = {
    "accepts returns a number": (
        {"accepts": lambda *_: 5}, "backend 'made': its accepts returned 5; None or a text"
    ),
    "accepts raises": ({"accepts": lambda *_: raise_it(Bomb())}, "failed in prepare: Bomb: its text"),
    "prepare raises": ({"prepare": lambda *_: raise_it(Bomb())}, "failed in prepare: Bomb: its text"),
    "prepare returns None": ({}, "failed in prepare: it returned None, not an Artifact"),
}  # fmt: skip


@pytest.mark.parametrize(("attributes", "what"), PREPARE.values(), ids=PREPARE)
def test_a_backend_that_cannot_prepare_is_one_line(
    attributes: dict[str, object], what: str
) -> None:
    made = type("Made", (Minimal,), {"name": "made", "prepare": lambda *_: None, **attributes})
    found = registry(BackendEntry("made", made), name="p", discover=False)
    with pytest.raises(BackendError) as caught:
        ferryvm.Engine("made", registry=found).start(ferryvm.compile("(print! 1)")).run()
    assert what in str(caught.value)


class Ending(Artifact):
    """A program that ends at once."""

    def enter(self, machine: Machine, counting: bool) -> Status:
        machine.control.pc = len(machine.verified.program.code) - 1
        machine.control.status = Status.HALT
        return Status.HALT


ARTIFACTS: dict[str, tuple[dict[str, object], str]] = {
    "waited raises": ({"waited": raising(Bomb())}, "backend 'made' raised Bomb: its text"),
    "compiled is a text": (
        {"compiled": "1 s"},
        "backend 'made' gave (0.0, '1 s') when it was asked",
    ),
    "metrics raises": ({"metrics": lambda _: raise_it(Bomb())}, "gives no metrics: Bomb: its text"),
    "metrics returns a number": ({"metrics": lambda _: 5}, "gives no metrics: it returned 5"),
}


@pytest.mark.parametrize(("attributes", "what"), ARTIFACTS.values(), ids=ARTIFACTS)
def test_what_a_backend_tells_of_a_run_is_looked_at(
    attributes: dict[str, object], what: str
) -> None:
    kind = type("Told", (Ending,), attributes)
    made = type("Made", (Minimal,), {"name": "made", "prepare": lambda *_: kind()})
    found = registry(BackendEntry("made", made), name="p", discover=False)
    execution = ferryvm.Engine("made", registry=found).start(ferryvm.compile("(print! 1)"))

    def told() -> None:
        execution.run()
        execution.metrics()

    with pytest.raises(BackendError) as caught:
        told()
    assert what in str(caught.value)


def test_ctrl_c_in_a_probe_names_the_plugin() -> None:
    def press(_self: Backend) -> str:
        raise KeyboardInterrupt

    made = type("Made", (Minimal,), {"name": "made", "probe": press})
    found = registry(BackendEntry("made", made), name="p", discover=False)
    with pytest.raises(KeyboardInterrupt, match="interrupted while probing backend 'made' of plug"):
        found.get("made")
