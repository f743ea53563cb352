# SPDX-License-Identifier: Apache-2.0
"""Both simulators take the same cycles, issue the same operations and leave the same memory."""

from __future__ import annotations

import pytest

from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.testing.generate import Kind, generate
from ferryvm.verify import verify
from ferryvm_backends.vliw.machine.read import find, shipped

from .program import compiled, run, status, whole

PROGRAMS = {
    "sum": "(define s 0.0) (define i 0) (while (< i 40) (set! s (+ s (f64 i))) (set! i (+ i 1))) s",
    "vectors": """
        (define a (make-vector i64 20)) (define b (make-vector f32 20)) (define i 0)
        (while (< i 20) (vector-set! a i (* i i)) (vector-set! b i 0.5f32) (set! i (+ i 1)))
        (vector-ref a 21)
    """,
    "calls": "(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (f 8)",
    "division": "(define d 3) (define s 0) (while (> d -3) (set! s (+ s (/ 100 d))) (set! d (- d 1))) s",
}


@pytest.mark.parametrize("machine", sorted(shipped()))
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_they_agree_on_a_program(machine: str, name: str) -> None:
    part = whole(PROGRAMS[name])
    program = compiled(part, find(machine))
    slow, fast = (run(program, part, is_native) for is_native in (False, True))
    assert slow == fast
    assert slow.counts.cycles > 20


@pytest.mark.parametrize("number", range(12))
def test_they_agree_on_random_programs(number: int) -> None:
    part = region(verify(generate(61, number, Kind.BYTECODE)), "program")
    for machine in ("multi16", "single"):
        program = compiled(part, find(machine), counting=number % 2 == 1)
        slow, fast = (run(program, part, is_native, budget=3000) for is_native in (False, True))
        assert slow == fast


def test_what_a_decided_branch_never_leads_to_is_left_out() -> None:
    part = region(verify(generate(1212, 59, Kind.SKIFF)), "program")
    compiled(part, find("multi16"), counting=True)


def test_a_program_that_looks_gives_control_back_in_time() -> None:
    part = whole("(define i 0) (while (>= i 0) (set! i (- 1 i)))")
    program = compiled(part, find("multi16"))
    ended = run(program, part, is_native=True, budget=500)
    assert status(ended) == Status.INTERRUPTED
    assert 500 <= ended.counts.cycles < 600
