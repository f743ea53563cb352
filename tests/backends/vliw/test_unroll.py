# SPDX-License-Identifier: Apache-2.0
"""Loops that are unrolled or pipelined take fewer cycles, and leave in the same states."""

from __future__ import annotations

import contextlib

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.observe import Observer
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.registry import Registry
from ferryvm_backends.vliw import VliwBackend, enter
from ferryvm_backends.vliw.code.modulo import pipeline
from ferryvm_backends.vliw.machine.read import find

from .program import compiled, run, whole

NAME = "processor"
LOOPS = {
    "swap": """
        (define a 1) (define b 2) (define i 0)
        (while (< i 101) (define c a) (set! a b) (set! b (+ c i)) (set! i (+ i 1)))
        (- a (* b 3))
    """,
    "trap": """
        (define v (make-vector i64 37)) (define i 0)
        (while (< i 50) (vector-set! v i (* i i)) (set! i (+ i 1)))
    """,
    "nest": """
        (define v (make-vector f64 17)) (define s 0.0) (define i 0)
        (while (< i 9)
          (define j 0)
          (while (< j 17)
            (set! s (+ s (* (vector-ref v j) 0.5)))
            (vector-set! v j (f64 (+ i j)))
            (set! j (+ j 1)))
          (set! i (+ i 1)))
        s
    """,
    "calls": """
        (define (f x) (define i 0) (while (< i x) (set! x (- x 1)) (set! i (+ i 1))) (+ x i))
        (define i 0) (define s 0)
        (while (< i 20) (set! s (+ s (f (* i 3)))) (set! i (+ i 1)))
        s
    """,
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("machine", ["single", "multi16"])
def test_the_state_is_that_of_the_loop_as_it_was(
    monkeypatch: pytest.MonkeyPatch, machine: str, name: str
) -> None:
    part = whole(LOOPS[name])
    code = compiled(part, find(machine))
    assert not any(loop.reason for loop in code.loops)
    pipelined = run(code, part, is_native=True)
    monkeypatch.setattr(pipeline, "schedule_round", lambda *_: None)
    code = compiled(part, find(machine))
    assert all(loop.reason == "no schedule was found" for loop in code.loops)
    unrolled = run(code, part, is_native=True)
    monkeypatch.setattr(pipeline, "rounds_of", lambda _: 1)
    plain = run(compiled(part, find(machine)), part, is_native=True)
    for each in (plain, unrolled, pipelined):  # what only the code sees differs
        each.memory.update(spill=b"", calls=b"")
    assert (unrolled.registers, unrolled.memory) == (plain.registers, plain.memory)
    assert (pipelined.registers, pipelined.memory) == (plain.registers, plain.memory)
    assert unrolled.counts.cycles < plain.counts.cycles
    assert pipelined.counts.cycles < plain.counts.cycles


class Plugin:
    """The backend under a name of its own."""

    def __init__(self, machine: str) -> None:
        self.backend = VliwBackend(find(machine))
        self.backend.name = NAME

    @hookimpl
    def ferryvm_backends(self) -> list[BackendEntry]:
        return [BackendEntry(NAME, lambda: self.backend)]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("cycles", [150, 333])
def test_a_program_whose_time_is_over_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, cycles: int, name: str
) -> None:
    monkeypatch.setattr(enter, "SLICE", cycles)
    registry = Registry()
    registry.register(Plugin("multi16"), NAME)
    program = ferryvm.compile(LOOPS[name])
    states = []
    for engine in (Engine(NAME, registry=registry), Engine("reference")):
        observer = Observer()
        observer.watch(engine)
        execution = engine.start(program)
        with contextlib.suppress(ferryvm.TrapError):
            execution.run()
        states.append(execution.machine.snapshot())
    assert states[0] == states[1]
