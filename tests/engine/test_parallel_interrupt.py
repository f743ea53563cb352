# SPDX-License-Identifier: Apache-2.0
"""Launches on several threads that are interrupted: the state is exact, and anyone goes on."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine import chunked_run
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.engine.team import Team
from ferryvm.isa import I64
from ferryvm.item_range import RangeOutcome
from ferryvm.machine.chunk import acquire
from ferryvm.machine.host import HostFunction
from ferryvm.machine.state import Machine
from ferryvm.program import Signature

from ..launching import run_interrupted
from .parallel_program import (
    BODIES,
    ENDLESS,
    HEAD,
    STORE,
    policy,
    started,
)

pytestmark = pytest.mark.usefixtures("threads_at_once")


def test_an_interrupt_stops_all_threads(launched: list[tuple[int, int]]) -> None:
    body = f"""
    local.get item
    i64.const 590
    i64.eq
    jump_unless store
    jump for_ever
:store
{STORE}
{ENDLESS}"""
    execution = started(body, threads=2)
    control = execution.machine.control
    run_interrupted(execution, launched)
    assert execution.machine.memory.stack[control.fp - 3] <= 590 or control.fp == 0


def test_an_exception_of_a_signal_handler_keeps_its_class_and_the_state_is_exact(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    has_come = []

    def handle(_number: int, _frame: object) -> None:
        has_come.append(True)
        raise TimeoutError

    def signalled(*given: int) -> int:
        if not has_come:
            os.kill(os.getpid(), signal.SIGUSR1)
        return acquire(*given)

    monkeypatch.setattr(chunked_run, "acquire", signalled)  # the wait for the threads
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        execution = started(STORE, threads=2)
        with pytest.raises(TimeoutError):
            execution.run()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert launched
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + STORE)).run()
    assert execution.run().value == expected.value


def test_a_call_whose_launch_is_interrupted_is_resumed_where_it_stood(
    launched: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ferryvm.compile(
        "(define (put item to) (array-set! to item (+ (array-ref to item) item)))"
        "(define (fill (n i64) (to (array i64))) (for-each-item n (put to)) n)"
    )
    instance = Engine(policy=policy(2)).instantiate(program)
    found = numpy.zeros(600, "i8")
    for _ in range(3):
        assert instance.fill(600, found) == 600
    has_come = []

    def signalled(*given: int) -> int:
        if not has_come:
            has_come.append(True)
            signal.raise_signal(signal.SIGINT)
        return acquire(*given)

    monkeypatch.setattr(chunked_run, "acquire", signalled)  # the wait for the threads
    launched.clear()
    with pytest.raises(ProgramInterrupted) as raised:
        instance.fill(600, found)
    assert raised.value.call is not None
    assert raised.value.call.resume() == 600
    assert launched
    assert has_come
    assert found.tolist() == [4 * item for item in range(600)]
    assert instance.fill(600, found) == 600


def test_a_signal_in_a_host_call_of_an_item_leaves_a_state_that_is_saved(
    launched: list[tuple[int, int]], tmp_path: Path
) -> None:
    """The call is done, and no other; elsewhere the later items call, each once and in order."""
    program = ferryvm.compile(
        "(host-function ask (i64))"
        "(define (put item to) (if (= (% item 50) 9) (ask item)) (array-set! to item (* 3 item)))"
        "(define to (make-array i64 600))"
        "(define (all) (for-each-item 600 (put to)))"
        "(all) (all) (all) (reduce + to)"
    )
    items: list[int] = []

    def ask(item: int) -> None:
        items.append(item)
        if len(items) == 30:
            os.kill(os.getpid(), signal.SIGINT)

    hosts = {"ask": HostFunction("ask", Signature((I64,), ()), ask)}
    execution = Engine(policy=policy(2), hosts=hosts).start(program)
    with pytest.raises(ProgramInterrupted):
        execution.run()
    assert launched
    assert len(items) == 30
    execution.save(tmp_path / "state.ferry")
    resumed = Engine("switch", hosts=hosts).resume(tmp_path / "state.ferry")
    assert resumed.run().value == 3 * sum(range(600))
    assert items == 3 * [*range(9, 600, 50)]


@pytest.mark.parametrize("name", ["prints where it is divisible by 100", "stores"])
def test_a_launch_that_is_interrupted_in_every_phase_ends_as_the_loop(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its items run, while they do, and while suspended ones are finished."""
    expected = Engine("threaded").start(ferryvm.assemble(HEAD + BODIES[name]))
    output = expected.run().output
    execution = started(BODIES[name], threads=3)
    control, run = execution.machine.control, ThreadedRanges.run
    phases = Counter[str]()

    def stopped(self: ThreadedRanges, machine: Machine, first: int, limit: int) -> RangeOutcome:
        phases["before"] += 1
        control.interrupt = phases["before"] % 2
        return run(self, machine, first, limit)

    def prepared(self: Team, *given: Any) -> None:
        prepare(self, *given)
        phases["while"] += 1
        control.interrupt |= phases["while"] % 2 == 0

    def printed(text: bytes) -> None:
        phases["finishing"] += 1
        control.interrupt = 1
        lines.append(text)

    prepare, lines = Team.prepare, list[bytes]()
    monkeypatch.setattr(ThreadedRanges, "run", stopped)
    monkeypatch.setattr(Team, "prepare", prepared)
    execution.output = printed
    interrupts = 0
    while True:
        try:
            execution.run()
            break
        except ProgramInterrupted:
            interrupts += 1
    assert interrupts > 5
    assert phases["finishing"] or name == "stores"
    assert b"".join(lines).decode() == output
    assert execution.machine.snapshot() == expected.machine.snapshot()
