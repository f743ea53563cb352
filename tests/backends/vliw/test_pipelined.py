# SPDX-License-Identifier: Apache-2.0
"""The code of pipelined loops: what its bundles do, wherever a loop is left."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import ferryvm
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends.vliw import entry
from ferryvm_backends.vliw.code.liveness import live_at_entry
from ferryvm_backends.vliw.code.modulo.dependence_graph import NodeResult
from ferryvm_backends.vliw.code.modulo.expand import expand
from ferryvm_backends.vliw.code.modulo.initiation_interval import bounds
from ferryvm_backends.vliw.code.modulo.partial_schedule import (
    FromUnit,
)
from ferryvm_backends.vliw.code.modulo.schedule import IterationSchedule, schedule_iteration
from ferryvm_backends.vliw.code.operation import Segment
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.native import NativeProgram

from .loop_program import COUNTS, DOT, FILTER, MACHINES, TEXTS, Interpreted
from .looping import HEAP, STACK, loops_of
from .program import compiled, run, whole
from .test_prove_by_hand import BOOLEAN, EIGHT, NIL, TOP, do, go, load, r, store
from .test_prove_by_hand import HEAP as HEAP_AT
from .test_prove_by_hand import MACHINE as HAND
from .test_prove_by_hand import STACK as STACK_AT
from .test_unroll import last_states


def test_the_first_round_reads_from_a_file_what_later_ones_take_from_a_unit() -> None:
    machine = find("multi16")
    code, loops = loops_of(whole(DOT), machine)
    seen = 0
    for loop in loops:
        found = schedule_iteration(
            loop, machine, bounds(loop, machine).least, 99, frozenset(), Counter()
        )
        assert found is not None
        from_before = [
            (number, index)
            for (number, index), path in found.partial.paths.items()
            if isinstance(path, FromUnit) and _distance_of(found, number, index) == 1
        ]
        placed = expand(code, found, machine).scheduled.placed
        for number, index in from_before:
            slot, operation = found.partial.slots[number], found.loop.nodes[number].operation
            same = [p for p in placed if (p.unit, p.operation.name) == (slot.unit, operation.name)]
            iterations = [p for p in same if p.operation.place is operation.place]
            iterations = [p for p in iterations if p.operation.static == operation.static]
            iterations.sort(key=lambda p: p.cycle)
            assert iterations[0].bypassed[index] is None
            assert any(p.bypassed[index] is not None for p in iterations[1:])
            seen += 1
    assert seen


@pytest.mark.parametrize("name", [*TEXTS, "filter"])
def test_nothing_that_rounds_make_is_needed_from_before(name: str) -> None:
    machine = find("multi16")
    code, loops = loops_of(whole((TEXTS | {"filter": FILTER})[name]), machine)
    is_later = False
    for loop in loops:
        least = bounds(loop, machine).least
        most = 4 * least if len(loop.nodes) < 100 else 0
        found = schedule_iteration(loop, machine, least, most, frozenset(), Counter())
        if found is None:
            continue
        is_later |= any(distance < 0 for distance in found.partial.bases.values())
        pipelined = expand(code, found, machine)
        code.blocks += pipelined.stubs
        made = {each.operation.result for each in pipelined.scheduled.placed}
        assert made.isdisjoint(live_at_entry(code)[loop.block])
    assert is_later or name != "filter"


def _distance_of(found: IterationSchedule, number: int, index: int) -> int:
    source = found.loop.nodes[number].sources[index]
    return source.distance if isinstance(source, NodeResult) else 0


@pytest.mark.nightly
@pytest.mark.parametrize("machine", sorted(shipped()))
def test_simulators_agree_wherever_a_pipelined_loop_is_left(machine: str) -> None:
    part = whole(COUNTS)
    program = compiled(part, find(machine))
    assert sum(loop.is_pipelined for loop in program.loops) >= 3
    for budget in (1, 60, 130, 333, 1000, 2500, 1 << 40):
        slow, fast = (run(program, part, is_native, budget) for is_native in (False, True))
        assert slow == fast


@pytest.mark.nightly
@pytest.mark.rotate("machine", "cycles", "is_native", most=1)
@MACHINES
@pytest.mark.parametrize("cycles", [97, 410, 1 << 30])
@pytest.mark.parametrize("is_native", [False, True])
def test_loops_of_any_number_of_rounds_leave_the_state_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, machine: str, cycles: int, is_native: bool
) -> None:
    """0 to 20 iterations: control leaves in each iteration of prologue and kernel; it also does,
    and comes back, whenever a slice of time is over."""
    monkeypatch.setattr(entry, "SLICE", cycles)
    if not is_native:
        monkeypatch.setattr(entry, "Simulation", Interpreted)
    state, reference = last_states(machine, COUNTS)
    assert state == reference


TURNS = """
    (define (turns v n)
      (define i 0) (define j 6) (define k 0)
      (while (< k n)
        (vector-set! v (+ i 3) (+ (* (* (vector-ref v (+ i 1)) 3) 5) k))
        (let ((t (+ i 1))) (set! i j) (set! j t))
        (set! k (+ k 1))))
    (define v (make-vector i64 60)) (define i 0)
    (while (< i 60) (vector-set! v i (+ (* i 7) 1)) (set! i (+ i 1)))
    (turns v 33)
    (vector-ref v 20)
"""


@pytest.mark.nightly
@pytest.mark.rotate("machine", "ahead", most=1)
@MACHINES
@pytest.mark.parametrize("ahead", [2, 4, 6])
def test_indices_that_take_turns_touch_what_the_other_one_does(machine: str, ahead: int) -> None:
    state, reference = last_states(machine, TURNS.replace("(define j 6)", f"(define j {ahead})"))
    assert state == reference


def _memory(value: int) -> Memory:
    """Of a program made by hand, whose first word of the control block is a value."""
    segments = {segment: np.zeros(1024, np.uint8) for segment in Segment}
    segments[Segment.CONTROL][:8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
    return Memory(segments)


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize(
    ("value", "fetched", "stored"),
    [(3, [0, 1, 2, 3, 4, 8, 9], [0, 16]), (9, [0, 1, 2, 3, 4, 5, 6, 7], [17, 0])],
    ids=["taken", "not taken"],
)
def test_an_exit_behind_a_jump_takes_effect_in_its_turn(
    value: int, fetched: list[int], stored: list[int], is_native: bool
) -> None:
    """The jump leads to bundle 4, of which one is done until the exit leads on to bundle 8."""
    bundles = (
        (load(TOP, NIL, r(0)),),
        (),
        (do(0, "compare", r(0), EIGHT, to=BOOLEAN), go("jump", 4)),
        (go("exit", 8, BOOLEAN), do(0, "move", EIGHT, to=r(2))),
        (do(0, "add", r(0), EIGHT, to=r(1)), do(1, "add", r(2), EIGHT, to=r(2))),
        (store(HEAP_AT, NIL, r(1)),),
        (go("stop", None),),
        (),
        (store(STACK_AT, NIL, r(2)), go("stop", None)),
        (),
    )
    program = Program("hand", HAND, bundles, {0: "entry", 4: "onward", 8: "other"}, (), (), 0, 0, 0)
    memory = _memory(value)
    counts = (NativeProgram(program).run if is_native else Interpreted(program).run)(memory, 1000)
    assert np.flatnonzero(counts.bundles).tolist() == fetched
    assert set(counts.bundles[fetched]) == {1}
    assert [memory.load(segment, 0, 8) for segment in (HEAP, STACK)] == stored


def test_a_loop_behind_which_the_function_returns_is_one_block() -> None:
    text = "(define (item i xs to) (array-set! to i (+ (* 2.0 (array-ref xs i)) 1.0)))"
    text += "(define (work (xs (array f64)) (to (array f64)))"
    text += "  (for-each-item (array-length xs) (item xs to)))"
    part = region(verify(ferryvm.compile(text)), "work")
    code, _ = loops_of(part, find("wide16"))
    loops = [block.label for block in code.blocks if block.operations[-1].target is block]
    assert "unchecked.b1" in loops
