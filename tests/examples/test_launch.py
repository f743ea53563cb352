# SPDX-License-Identifier: Apache-2.0
"""The examples of launches: items that trap, throw, print, allocate, fail a guard, and share bins.

docs/launch-exits.md shows what they print. Here they run on every backend, and with fewer items
they are moved, and their items suspended, at every boundary."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine, policy
from ferryvm.backend import Forcing
from ferryvm.engine import launching
from ferryvm.engine.result import TrapError
from ferryvm.machine.piece import elements
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.registry import Registry
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.mixed import MixedRegistry
from ferryvm.verify import Verified, verify

from ..engine.mixing import placements

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "launch"
OUTPUT = {
    "abandoned": "1200\n1\n0\n1201\n",
    "allocating": "6009000\n",
    "histogram": "484\n36\n32724\n520\n41\n32745\n502\n10\n32766\n494\n31\n32763\n",
    "overrun": "0\n",
    "progress": "item 0\nitem 400\nitem 800\nitem 1200\nitem 1600\n2664667000\n",
    "rare": "49\n23964347\n",
    "reverse": "4.0\n5.0\n",
    "rotate": "32\n",
    "tiles": "128\n154\n27260\n",
}
FEW = {"items": 9, "bad": 5, "wrong": 5, "every": 4, "columns": 4, "size": 2}
"""Constants of the programs that are to end soon."""

MOVED = (Schedule.SUSPEND, Schedule.EVERY_BOUNDARY, Schedule.RANDOM, Schedule.COLLECT)


def text(name: str) -> str:
    return (EXAMPLES / f"{name}.skiff").read_text(encoding="utf-8")


def small(name: str) -> Verified:
    found = text(name)
    for constant, value in FEW.items():
        found = re.sub(rf"\(define {constant} \d+\)", f"(define {constant} {value})", found)
    return verify(ferryvm.compile(found, name))


def output(name: str, backend: str | None) -> str:
    printed: list[bytes] = []
    execution = Engine(backend or "threaded", output=printed.append).start(
        ferryvm.compile(text(name), name)
    )
    traps = pytest.raises(TrapError, match="index 2000, and the length is 2000, in item 1200")
    with traps if name == "overrun" else contextlib.nullcontext():
        execution.run()
    return b"".join(printed).decode()


def test_all_examples_are_known() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.skiff")} == OUTPUT.keys()


@pytest.mark.rotate("name", "backend")
@pytest.mark.parametrize("backend", ["switch", "threaded", "llvm"])
@pytest.mark.parametrize("name", OUTPUT)
def test_backends_print_what_the_page_says(name: str, backend: str) -> None:
    assert output(name, backend) == OUTPUT[name]


@pytest.mark.nightly  # these take seconds to compile or to run
@pytest.mark.parametrize("backend", ["reference", "opencl", "vliw"])
@pytest.mark.parametrize("name", OUTPUT)
def test_every_backend_prints_what_the_page_says(name: str, backend: str) -> None:
    assert output(name, backend) == OUTPUT[name]


@pytest.mark.parametrize("schedule", MOVED)
@pytest.mark.rotate("name", "schedule", most=3)
@pytest.mark.parametrize("name", OUTPUT)
def test_items_are_left_at_every_boundary(name: str, schedule: Schedule) -> None:
    for comparison in Differ(["switch", "threaded"]).compare(small(name), schedule):
        assert comparison.verdict is Verdict.AGREE, comparison


@pytest.mark.nightly
@pytest.mark.parametrize("schedule", [Schedule.NONE, *MOVED])
@pytest.mark.parametrize("name", OUTPUT)
def test_items_of_all_backends_are_left_at_every_boundary(name: str, schedule: Schedule) -> None:
    backends = ["switch", "threaded", "llvm", "opencl", "vliw"]
    backends += ["cc"] if "cc" in Registry().names else []  # a plugin, which the nightly job has
    for comparison in Differ(backends).compare(small(name), schedule):
        assert comparison.verdict is Verdict.AGREE, comparison


def moved_with_guesses(backend: str, schedule: Schedule, forcing: frozenset[Forcing]) -> None:
    """Move `rare` with few items between an interpreter and code that leaves out its branch."""
    options = Options(
        background=False,
        required=True,
        cache=False,
        speculate=True,
        observe_items=2,
        guard_share=1.0,
    )
    rules = (Rule(backends=(Choice(backend, options),)),)
    registry = MixedRegistry(Policy(rules=rules, profile=Profile(loop_threshold=1)))
    differ = Differ(["mixed"], registry=registry, forcing=forcing)
    (found,) = differ.compare(small("rare"), schedule)
    assert found.verdict is Verdict.AGREE, found


def test_items_that_fail_a_guess_are_moved() -> None:
    moved_with_guesses("llvm", Schedule.SUSPEND, frozenset([Forcing.PARALLEL]))


@pytest.mark.nightly
@pytest.mark.parametrize("forcing", [frozenset(), frozenset([Forcing.PARALLEL])])
@pytest.mark.parametrize("schedule", [Schedule.NONE, *MOVED])
@pytest.mark.parametrize("backend", ["llvm", "opencl", "vliw"])
def test_items_that_fail_a_guess_are_moved_on_all_backends(
    backend: str, schedule: Schedule, forcing: frozenset[Forcing]
) -> None:
    moved_with_guesses(backend, schedule, forcing)


@pytest.mark.parametrize("name", OUTPUT)
def test_items_are_independent(name: str) -> None:
    (found,) = Differ(["switch"]).compare(small(name), Schedule.INDEPENDENCE)
    assert found.verdict is Verdict.AGREE


@pytest.mark.parametrize("name", ["histogram", "overrun"])
def test_items_on_threads_end_as_in_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "WORTH", 0.0)
    options = Options(background=False, required=True, cache=False, threads=3)
    rules = (Rule(backends=(Choice("llvm", options),)),)
    threads = Policy(rules=rules, profile=Profile(loop_threshold=2))
    printed: list[bytes] = []
    execution = Engine(policy=threads, output=printed.append).start(
        ferryvm.compile(text(name), name)
    )
    if name == "histogram":
        execution.run()
        assert b"".join(printed).decode() == OUTPUT[name]
        return
    with pytest.raises(TrapError, match="in item 1200"):
        execution.run()
    machine = execution.machine
    assert machine.objects is not None
    to = elements(machine.objects, machine.memory.stack[machine.control.fp - 2])
    assert to[2000 - 1200 :].tolist() == [*range(1200, 0, -1)]  # all items below it are done


def test_a_guard_fails_for_one_item_in_a_thousand() -> None:
    guess = policy.load(EXAMPLES / "guess.toml", Registry().names)
    printed: list[bytes] = []
    execution = Engine(policy=guess, output=printed.append).start(
        ferryvm.compile(text("rare"), "rare")
    )
    execution.run()
    assert b"".join(printed).decode() == OUTPUT["rare"]
    attempts = [attempt for each in placements(execution) for attempt in each.attempts]
    assert [(attempt.region, attempt.guards) for attempt in attempts] == [
        ("main/launch.1", 1),
        ("main/launch.1", 0),
        ("main/launch.2", 0),
    ]
