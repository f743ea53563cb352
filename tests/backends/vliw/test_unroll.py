# SPDX-License-Identifier: Apache-2.0
"""Loops that are unrolled or pipelined take fewer cycles, and leave in the same states."""

from __future__ import annotations

import contextlib

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.observer import Observer
from ferryvm.machine.state import Snapshot
from ferryvm_backends.vliw import VliwBackend, entry
from ferryvm_backends.vliw.code.modulo import pipeline
from ferryvm_backends.vliw.machine.read import find

from ...double.registry import registry
from ...heap_vector import on_heap
from .program import compiled, run, whole

NAME = "processor"
LOOPS = {
    "swap": """
        (define a 1) (define b 2) (define i 0)
        (while (< i 101) (define c a) (set! a b) (set! b (+ c i)) (set! i (+ i 1)))
        (- a (* b 3))
    """,
    "trap": """
        (define v (make-array i64 37)) (define i 0)
        (while (< i 50) (array-set! v i (* i i)) (set! i (+ i 1)))
    """,
    "nest": """
        (define v (make-array f64 17)) (define s 0.0) (define i 0)
        (while (< i 9)
          (define j 0)
          (while (< j 17)
            (set! s (+ s (* (array-ref v j) 0.5)))
            (array-set! v j (f64 (+ i j)))
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


@pytest.mark.rotate("name", "machine", most=1)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("machine", ["single", "multi16"])
def test_the_state_is_that_of_the_loop_as_it_was(
    monkeypatch: pytest.MonkeyPatch, machine: str, name: str
) -> None:
    part = whole(LOOPS[name])
    code = compiled(part, find(machine))
    assert not any(loop.reason for loop in code.loops)
    pipelined = run(code, part, is_native=True)
    monkeypatch.setattr(pipeline, "schedule_iteration", lambda *_: None)
    code = compiled(part, find(machine))
    assert all(loop.reason == "no schedule was found" for loop in code.loops)
    unrolled = run(code, part, is_native=True)
    monkeypatch.setattr(pipeline, "unroll_factor", lambda _: 1)
    plain = run(compiled(part, find(machine)), part, is_native=True)
    for each in (plain, unrolled, pipelined):  # what only the code sees differs
        each.memory.update(spill=b"", calls=b"")
    assert (unrolled.registers, unrolled.memory) == (plain.registers, plain.memory)
    assert (pipelined.registers, pipelined.memory) == (plain.registers, plain.memory)
    assert unrolled.counts.cycles < plain.counts.cycles
    assert pipelined.counts.cycles < plain.counts.cycles


def last_states(machine: str, text: str) -> tuple[Snapshot, Snapshot]:
    """The states that a Skiff program ends in on a machine, and on the reference backend."""
    backend = VliwBackend(find(machine))
    backend.name = NAME
    found = registry(backend)
    program = ferryvm.compile(on_heap(text))

    def last(engine: Engine) -> Snapshot:
        observer = Observer()
        observer.watch(engine)
        execution = engine.start(program)
        with contextlib.suppress(ferryvm.TrapError):
            execution.run()
        return execution.machine.snapshot()

    return last(Engine(NAME, registry=found)), last(Engine("reference"))


@pytest.mark.rotate("name", "cycles", most=1)
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("cycles", [150, 333])
def test_a_program_whose_time_is_over_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, cycles: int, name: str
) -> None:
    monkeypatch.setattr(entry, "SLICE", cycles)
    state, reference = last_states("multi16", LOOPS[name])
    assert state == reference
