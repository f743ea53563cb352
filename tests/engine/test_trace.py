# SPDX-License-Identifier: Apache-2.0
"""What an observer sees of mixed execution, and the trace that is made of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm.engine import Engine, Execution
from ferryvm.engine.observer import Cold, Observer
from ferryvm.engine.trace import COMPILATION, PROGRAM, events, write
from ferryvm.engine.transition import SiteState
from ferryvm.machine.control import Status
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.registry import Registry

from ..double.code import Action, PythonCode, leave
from ..double.compiler import FunctionCompiler
from ..double.registry import registry

NESTED = """
(define total 0) (define i 0) (define j 0)
(while (< i 60)
  (set! j 0)
  (while (< j 10) (set! total (+ total j)) (set! j (+ j 1)))
  (print! total)
  (set! i (+ i 1)))
total"""


def policy(*names: str, threshold: int = 20, background: bool = False) -> Policy:
    """Whatever is hot goes to these compilers."""
    options = Options(background=background)
    rule = Rule("hot", backends=tuple(Choice(name, options) for name in names))
    return Policy(profile=Profile(True, threshold, threshold, 1), rules=(rule,))


def observed(
    text: str, chosen: Policy | str, observer: Observer, found: Registry | None = None
) -> Execution:
    """A program that has ended while it was observed."""
    registry = found or Registry()
    engine = (
        Engine(chosen, registry=registry)
        if isinstance(chosen, str)
        else Engine(policy=chosen, registry=registry)
    )
    observer.watch(engine)
    execution = engine.start(ferryvm.compile(text))
    execution.run()
    return execution


def with_code(action: Action, **hooks: Callable[..., object]) -> Registry:
    """Ours, and a compiler `mine` whose code is the function."""
    compiler = FunctionCompiler(lambda region, options: PythonCode(action, {"think": 0.25}))
    return registry(compiler, name="mine", **hooks)


# --- observing ------------------------------------------------------------------------------


def test_every_transfer_is_seen_and_changes_nothing() -> None:
    observer = Observer(transfers=True)
    execution = observed(NESTED, policy("llvm"), observer)
    plain = Engine("threaded").start(ferryvm.compile(NESTED))
    assert plain.run().output == execution.run().output
    assert plain.machine.memory.statics.tolist() == execution.machine.memory.statics.tolist()
    assert {event.backend for event in observer.transfers} == {"llvm"}
    assert {event.status for event in observer.transfers} == {Status.HOST, Status.LEAVE}
    entered = sum(
        activity.entries for place in observer.placements for _, activity in place.activity()
    )
    assert entered == len(observer.transfers)
    assert observer.dropped.total() == 0


def test_without_transfers_code_is_entered_directly() -> None:
    observer = Observer()
    observed(NESTED, policy("llvm"), observer)
    assert observer.placements
    assert observer.transfers == []


def test_transfers_past_the_limit_are_counted_and_not_kept() -> None:
    every, some = Observer(transfers=True), Observer(transfers=True, limit=5)
    for observer in (every, some):
        observed(NESTED, policy("llvm"), observer)
    assert len(some.transfers) == len(some.entries) == 5
    assert some.dropped == {"llvm": len(every.transfers) - 5, "threaded": len(every.entries) - 5}
    dropped = [event for event in events(some) if event["name"] == "transfers_dropped"]
    assert [event["args"] for event in dropped] == [{"limit": 5, "dropped": dict(some.dropped)}]


def test_places_that_did_not_get_hot_are_told_with_their_counts() -> None:
    observer = Observer()
    observed(
        "(define i 0) (while (< i 30) (set! i (+ i 1)))", policy("llvm", threshold=100), observer
    )
    assert observer.cold() == [Cold(7, 31, 100)]
    assert observer.placements == []


def test_an_interpreter_alone_is_observed_too() -> None:
    observer = Observer(transfers=True)
    observed("(print! 1) (print! 2)", "switch", observer)
    assert [event.status.name for event in observer.entries] == ["HOST", "HOST", "HALT"]
    assert {event.backend for event in observer.entries} == {"switch"}


def test_what_a_listener_raises_is_told_and_does_not_reach_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def wrong(event: object) -> None:
        raise KeyboardInterrupt("from a signal handler")

    found = with_code(leave, ferryvm_transfer=wrong)
    observer = Observer(transfers=True)
    text = "(define i 0) (while (< i 1000) (set! i (+ i 1))) (print! i)"
    engine = Engine(policy=policy("mine"), registry=found)
    observer.watch(engine)
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert engine.start(ferryvm.compile(text)).run().output == "1000\n"
    (message,) = [record.getMessage() for record in caplog.records]
    assert "raised KeyboardInterrupt: from a signal handler" in message


# --- the trace ------------------------------------------------------------------------------

REQUIRED = {"X": {"ts", "dur", "cat", "args"}, "i": {"ts", "s", "cat", "args"}, "M": {"args"}}
"""Fields that the format asks of each kind of event, or that we promise, beside those of all."""


def check(document: object) -> None:
    """Whether it is a trace in the JSON array format, with nothing that is not documented."""
    assert isinstance(document, list)
    for event in document:
        assert {"name", "ph", "pid", "tid"} <= set(event)
        assert REQUIRED[event["ph"]] <= set(event)
        assert set(event) <= {"name", "ph", "pid", "tid", "ts"} | REQUIRED[event["ph"]]
        assert isinstance(event["name"], str)
        assert event["tid"] in (PROGRAM, COMPILATION)
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
        assert event.get("s", "t") in ("g", "p", "t")
    # A row is a stack: what begins inside another ends inside it.
    for row in (PROGRAM, COMPILATION):
        ends: list[float] = []
        for event in document:
            if event["tid"] == row and event["ph"] == "X":
                while ends and ends[-1] <= event["ts"]:
                    ends.pop()
                end = event["ts"] + event["dur"]
                assert not ends or end <= ends[-1]
                ends.append(end)


def test_the_trace_has_compilations_placements_and_transfers(tmp_path: Path) -> None:
    observer = Observer(transfers=True)
    observed(NESTED, policy("mine", "llvm"), observer, with_code(leave))
    write(observer, tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())
    check(document)
    found = {(event["ph"], event.get("cat")) for event in document}
    assert found == {
        ("M", None), ("X", "compilation"), ("X", "transfer"), ("X", "entry"), ("i", "placement")
    }  # fmt: skip
    compilation = next(event for event in document if event.get("cat") == "compilation")
    assert compilation["tid"] == COMPILATION
    assert compilation["args"] == {
        "region": observer.placements[0].region,
        "backend": "mine",
        "outcome": "compiled",
        "guards": 0,
        "steps": {"think": 250_000.0},
    }
    transfer = next(event for event in document if event.get("cat") == "transfer")
    assert transfer["args"]["backend"] == "mine"
    assert (transfer["args"]["status"], transfer["tid"]) == ("LEAVE", PROGRAM)
    names = {event["name"].split()[0] for event in document if event["ph"] == "i"}
    assert names == {"hot", "installed"}


def test_a_refusal_is_in_the_trace_with_its_reason() -> None:
    observer = Observer()
    observed(NESTED, policy("threaded"), observer)
    found = [event for event in events(observer) if event.get("cat") == "compilation"]
    assert [event["name"] for event in found] == ["threaded main/nest.1", "threaded main/nest.1"]
    reasons = {event["args"]["reason"] for event in found}  # type: ignore[index]
    assert reasons == {"backend 'threaded' compiles no regions"}


def test_a_compilation_that_the_program_did_not_wait_for_is_under_way_at_the_end() -> None:
    observer = Observer()
    observed(NESTED, policy("llvm"), observer)
    place = observer.placements[0]
    place.state = SiteState.COMPILING
    unfinished = [event for event in events(observer) if str(event["name"]).startswith("compiling")]
    assert len(unfinished) == 1
    assert unfinished[0]["args"] == {"region": place.region, "outcome": "under way at the end"}
    check([*events(observer)])
