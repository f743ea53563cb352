# SPDX-License-Identifier: Apache-2.0
"""Both simulators take the same cycles, issue the same operations and leave the same memory."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import pytest

from ferryvm.machine.control import Status
from ferryvm.region.region import region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify
from ferryvm_backends._llvm.build import compile_quickly
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.simulate import native, simulation
from ferryvm_backends.vliw.simulate.control_flow import FetchGraph, FetchState

from ...tier import nightly, sample
from . import program as program_module
from .program import compiled, run, status, whole

PROGRAMS = {
    "sum": "(define s 0.0) (define i 0) (while (< i 40) (set! s (+ s (f64 i))) (set! i (+ i 1))) s",
    "vectors": """
        (define a (make-array i64 20)) (define b (make-array f32 20)) (define i 0)
        (while (< i 20) (array-set! a i (* i i)) (array-set! b i 0.5f32) (set! i (+ i 1)))
        (array-ref a 21)
    """,
    "calls": "(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (f 8)",
    "division": "(define d 3) (define s 0) (while (> d -3) (set! s (+ s (/ 100 d))) (set! d (- d 1))) s",
}


@pytest.fixture(autouse=True)
def _code_is_made_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "LARGE", 8_000)


USUAL = "calls", "dsp4"
"""A program whose code LLVM optimises in a second; that of all programs is made quickly below."""
OTHERS = [pair for pair in itertools.product(sorted(PROGRAMS), sorted(shipped())) if pair != USUAL]


@pytest.mark.parametrize(("name", "machine"), [USUAL, *map(nightly, OTHERS)])
def test_they_agree_on_a_program(name: str, machine: str) -> None:
    part = whole(PROGRAMS[name])
    program = compiled(part, find(machine))
    slow, fast = (run(program, part, is_native) for is_native in (False, True))
    assert slow == fast
    assert slow.counts.cycles > 20


@pytest.mark.parametrize("number", sample([1, 0, *range(2, 12)], 1))
def test_they_agree_on_random_programs(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if number % 3 == 0:
        monkeypatch.setattr(native, "LARGE", 0)  # code that is made in less time
    part = region(verify(generate(61, number, ProgramKind.BYTECODE)), "program")
    for machine in ("multi16", "single"):
        program = compiled(part, find(machine), counting=number % 2 == 1)
        slow, fast = (run(program, part, is_native, budget=3000) for is_native in (False, True))
        assert slow == fast


@pytest.mark.rotate("name", "machine")
@pytest.mark.parametrize("machine", ["single", "multi16"])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_they_agree_on_code_that_was_made_quickly(
    machine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(native, "LARGE", 0)
    monkeypatch.setattr(native, "compile_quickly", lambda m: made.append(m) or compile_quickly(m))
    part = whole(PROGRAMS[name])
    program = compiled(part, find(machine))
    slow, fast = (run(program, part, is_native) for is_native in (False, True))
    assert slow == fast
    assert len(made) == 1


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_run_is_entered_at_its_top_and_left_at_its_end(name: str) -> None:
    paths = FetchGraph(compiled(whole(PROGRAMS[name]), find("multi16")))
    runs = list(paths.runs())
    assert Counter(state for run in runs for state in run) == Counter(
        dict.fromkeys(paths.onward, 1)
    )
    predecessors = defaultdict(list)
    for state, onward in paths.onward.items():
        for following in (onward.next, onward.taken):
            for other in () if following is None else following.states:
                predecessors[other].append(state)
    for run_ in runs:
        for before, state in itertools.pairwise(run_):
            assert predecessors[state] == [before]
            assert paths.onward[before].next.states == (state,)
            assert paths.onward[before].taken is None
        assert (
            run_[0] is paths.first
            or len(predecessors[run_[0]]) > 1
            or _parts(paths, predecessors[run_[0]][0])
        )
    assert len(runs) < len(paths.onward) / 3


def _parts(paths: FetchGraph, state: FetchState) -> bool:
    """Whether control may go on from a state in two ways."""
    onward = paths.onward[state]
    return onward.taken is not None or onward.next.is_dynamic


def test_what_a_decided_branch_never_leads_to_is_left_out() -> None:
    part = region(verify(generate(1212, 59, ProgramKind.SKIFF)), "program")
    compiled(part, find("multi16"), counting=True)


def test_a_program_that_looks_gives_control_back_in_time() -> None:
    part = whole("(define i 0) (while (>= i 0) (set! i (- 1 i)))")
    program = compiled(part, find("multi16"))
    ended = run(program, part, is_native=True, budget=500)
    assert status(ended) == Status.INTERRUPTED
    assert 500 <= ended.counts.cycles < 600


def test_a_program_without_loops_is_interpreted_until_native_code_pays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = whole("(define x 5) (print! (* x x)) (+ x 1)")
    program = compiled(part, find("multi16"))
    expected = run(program, part, is_native=True)
    cycles = expected.counts.cycles
    monkeypatch.setattr(simulation, "INTERPRETED", 2 * max(cycles, len(program.bundles)))
    made = []
    monkeypatch.setattr(native, "compile_quickly", lambda m: made.append(m) or compile_quickly(m))
    simulated = simulation.Simulation(program)
    monkeypatch.setattr(program_module, "NativeProgram", lambda _: simulated)
    ended = [run(program, part, is_native=True) for _ in range(4)]
    assert ended == [expected] * 4
    assert len(made) == 1


def test_a_program_with_a_loop_is_native_code_at_once() -> None:
    program = compiled(whole(PROGRAMS["sum"]), find("multi16"))
    assert simulation.Simulation(program)._native is not None


def test_code_of_a_large_program_is_made_well_after_many_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    part = whole(PROGRAMS["sum"])
    program = compiled(part, find("multi16"))
    expected = run(program, part, is_native=True)
    monkeypatch.setattr(simulation, "MEDIUM", 1)
    monkeypatch.setattr(simulation, "MANY", expected.counts.cycles + 1)
    made = []
    monkeypatch.setattr(native, "compile_quickly", lambda m: made.append(m) or compile_quickly(m))
    simulated = simulation.Simulation(program)
    monkeypatch.setattr(program_module, "NativeProgram", lambda _: simulated)
    first, before = run(program, part, is_native=True), simulated._native
    second, after = run(program, part, is_native=True), simulated._native
    assert first == second == expected
    assert len(made) == 1
    assert before is not after
