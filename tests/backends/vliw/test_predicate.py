# SPDX-License-Identifier: Apache-2.0
"""Conditions in loops are no branches, and leave every state as it was."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.engine import Engine
from ferryvm.engine.observer import Observer
from ferryvm.ir.verify import verify_module
from ferryvm_backends.vliw import VliwBackend, entry
from ferryvm_backends.vliw.code import encode
from ferryvm_backends.vliw.code.if_conversion import convert_conditions
from ferryvm_backends.vliw.code.program import Program, Slot
from ferryvm_backends.vliw.code.text import program_text, slot_text
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.passes import optimised
from ferryvm_backends.vliw.prove.claim import ScheduleError
from ferryvm_backends.vliw.simulate.metric import HazardError

from ...double.registry import registry
from ...heap_vector import on_heap
from ...tier import nightly, sample
from .mutation import altered, changed, proved, slots
from .program import Ended, compiled, run, whole

NAME = "processor"
PROGRAMS = {
    # Nothing but values.
    "bits": """
        (define c 12345) (define j 0)
        (while (< j 40)
          (if (= (& c 1) 1) (set! c (^ (>> c 1) 79764919)) (set! c (>> c 1)))
          (set! j (+ j 1)))
        c
    """,
    # One side alone, which stores.
    "some": """
        (define v (make-vector i64 32)) (define i 0)
        (while (< i 32) (if (> (% (* i 7) 5) 2) (vector-set! v i (* i (* 5 (* i (+ 3 (* i (* i i)))))))) (set! i (+ i 1)))
        (+ (vector-ref v 4) (vector-ref v 5))
    """,
    "nested": """
        (define v (make-vector i64 8))
        (define (f v n)
          (define i 0) (define a 0) (define b 0)
          (while (< i n)
            (if (> (% i 7) 3)
              (if (= (& i 3) 2) (vector-set! v (& i 7) i) (set! a (+ a i)))
              (set! b (- b i)))
            (set! i (+ i 1)))
          (+ a (* 3 b)))
        (+ (f v 60) (vector-ref v 6))
    """,
    # Stores on both sides, to words that later iterations load.
    "swap": """
        (define v (make-vector i64 12)) (define i 0)
        (while (< i 12) (vector-set! v i (% (* i 7919) 31)) (set! i (+ i 1)))
        (define (sort v n)
          (define i 0) (define swaps 0)
          (while (< i n)
            (define j 0)
            (while (< j (- n 1))
              (define t (vector-ref v j))
              (if (> t (vector-ref v (+ j 1)))
                (begin
                  (vector-set! v j (vector-ref v (+ j 1)))
                  (vector-set! v (+ j 1) t)
                  (set! swaps (+ swaps 1)))
                (vector-set! v j (vector-ref v j)))
              (set! j (+ j 1)))
            (set! i (+ i 1)))
          swaps)
        (sort v 12)
    """,
    "floats": """
        (define v (make-vector f64 24)) (define i 0)
        (while (< i 24) (vector-set! v i (f64 (- (% (* i 79) 100) 50))) (set! i (+ i 1)))
        (set! i 0)
        (while (< i 24)
          (define x (vector-ref v i))
          (if (< x -10.0) (set! x (/ x 0.0)))
          (if (> x 10.0) (set! x (- x x)))
          (vector-set! v i x)
          (set! i (+ i 1)))
        (vector-ref v 3)
    """,
    # What is done in vain would trap: it does in neither of these.
    "vain": """
        (define v (make-vector i64 8)) (define i 0) (define s 0)
        (while (< i 40)
          (if (< i 8) (set! s (+ s (vector-ref v i))) (set! s (- s 1)))
          (if (!= (& i 3) 0) (set! s (+ s (/ 100 (& i 3)))))
          (set! i (+ i 1)))
        s
    """,
    # These do: in one side, after a store of the same side.
    "index": """
        (define v (make-vector i64 8)) (define i 0) (define s 0)
        (while (< i 40)
          (if (> (% i 7) 4)
            (begin (vector-set! v (& i 3) (+ s i)) (vector-set! v (- i 13) s))
            (set! s (+ s i)))
          (set! i (+ i 1)))
        s
    """,
    "division": """
        (define v (make-vector i64 8)) (define i 20) (define s 0)
        (while (> i -20)
          (if (< i 5) (begin (vector-set! v (& i 7) s) (set! s (+ s (/ 100 i)))) (set! s (+ s i)))
          (set! i (- i 1)))
        s
    """,
}
MACHINES = sorted(shipped())


def predicated(program: Program) -> list[tuple[int, Slot]]:
    """What depends on predicates."""
    return [each for each in slots(program) if each[1].predicate is not None]


def branching(patch: pytest.MonkeyPatch) -> None:
    """Have conditions be branches."""
    patch.setattr(encode, "convert_conditions", lambda *_: {})


def seen(ended: Ended) -> object:
    """What is left but for what only the code sees."""
    ended.memory.update(spill=b"", calls=b"")
    return ended.registers, ended.memory


@pytest.mark.rotate("name", "machine", most=3)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_is_what_branches_leave(
    monkeypatch: pytest.MonkeyPatch, name: str, machine: str
) -> None:
    part = whole(PROGRAMS[name])
    program = compiled(part, find(machine))
    slow, fast = (run(program, part, is_native) for is_native in (False, True))
    assert slow == fast
    branching(monkeypatch)
    plain = compiled(part, find(machine))
    assert not predicated(plain)
    assert seen(run(plain, part, is_native=True)) == seen(fast)


def _states(text: str, machine: Machine) -> Iterator[bytes]:
    """How a program ends on a machine, and in the interpreter that says what is right."""
    backend = VliwBackend(machine)
    backend.name = NAME
    found = registry(backend)
    program = ferryvm.compile(on_heap(text))
    for engine in (Engine(NAME, registry=found), Engine("reference")):
        observer = Observer()
        observer.watch(engine)
        execution = engine.start(program)
        with contextlib.suppress(ferryvm.TrapError):
            execution.run()
        yield execution.machine.snapshot()


@pytest.mark.rotate("name", "machine", most=3)
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", [nightly(n) if n == "nested" else n for n in PROGRAMS])
def test_a_program_ends_or_traps_in_the_state_of_the_reference(name: str, machine: str) -> None:
    ours, right = _states(PROGRAMS[name], find(machine))
    assert ours == right


@pytest.mark.parametrize("cycles", sample([90, 211], 1))
def test_a_program_whose_time_is_over_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, cycles: int
) -> None:
    monkeypatch.setattr(entry, "SLICE", cycles)
    ours, right = _states(PROGRAMS["index"], find("dsp4"))
    assert ours == right


@pytest.mark.parametrize("name", sample(["bits", "some", "nested"], 1))
def test_a_loop_without_branches_is_pipelined_and_takes_fewer_cycles(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    part = whole(PROGRAMS[name])
    program = compiled(part, find("multi16"))
    with monkeypatch.context() as patch:
        branching(patch)
        plain = compiled(part, find("multi16"))
    assert len(program.loops) > len(plain.loops)
    assert all(not loop.reason for loop in program.loops)
    cycles = [run(each, part, is_native=True).counts.cycles for each in (program, plain)]
    assert cycles[0] < 0.95 * cycles[1]


@pytest.mark.parametrize("machine", sample(["dsp4", "multi16", "wide16"], 1))
def test_stores_alone_depend_on_truths_where_the_machine_has_that(machine: str) -> None:
    part, given = whole(PROGRAMS["some"]), find(machine)
    program = compiled(part, given)
    assert {slot.name for _, slot in predicated(program)} == {"store"}
    without = compiled(part, dataclasses.replace(given, predication=False))
    assert not predicated(without)
    assert seen(run(without, part, is_native=True)) == seen(run(program, part, is_native=True))


def test_units_that_store_have_to_read_truths() -> None:
    given = find("multi16")
    predicates = {file.name for file in given.files if file.kind is FileKind.BOOLEAN}
    units = tuple(
        dataclasses.replace(unit, reads=unit.reads - predicates) if unit.group == "memory" else unit
        for unit in given.units
    )
    assert not predicated(
        compiled(whole(PROGRAMS["some"]), dataclasses.replace(given, units=units))
    )


@pytest.mark.parametrize("name", sample(PROGRAMS, 3))
def test_few_registers_for_truths_are_enough(name: str) -> None:
    given, part = find("single"), whole(PROGRAMS[name])
    files = tuple(
        dataclasses.replace(file, registers=4 if file.kind is FileKind.BOOLEAN else 12)
        for file in given.files
    )
    few, many = (
        run(compiled(part, machine), part, is_native=True)
        for machine in (dataclasses.replace(given, files=files), given)
    )
    assert seen(few) == seen(many)


def test_what_takes_a_unit_for_long_is_not_done_in_vain() -> None:
    module = optimised(whole(PROGRAMS["division"]), Options(), find("multi16"))
    convert_conditions(module, find("multi16"))
    homes = [
        block
        for body in module.bodies
        for block in body.blocks
        if any(o.name == "div_s" for o in block.operations)
    ]
    assert [block.end.name for block in homes] == ["jump"]


@pytest.mark.parametrize("machine", ["dsp4", "single"])
def test_sides_that_take_long_on_the_machine_stay_branches(machine: str) -> None:
    part = whole(PROGRAMS["some"])
    assert bool(predicated(compiled(part, find(machine)))) is (machine == "dsp4")


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"division"}))
def test_the_ir_is_still_right(name: str) -> None:
    module = optimised(whole(PROGRAMS[name]), Options(), find("multi16"))
    before = sum(block.end.name == "branch" for body in module.bodies for block in body.blocks)
    stores = convert_conditions(module, find("multi16"))
    verify_module(module)
    after = sum(block.end.name == "branch" for body in module.bodies for block in body.blocks)
    assert after < before
    operations = {o for body in module.bodies for o in body.operations}
    assert operations >= stores.keys()


def test_a_schedule_shows_what_a_store_depends_on() -> None:
    program = compiled(whole(PROGRAMS["some"]), find("wide16"))
    shown = [slot_text(program, slot) for _, slot in predicated(program)]
    assert shown
    assert all(" if bool." in each or " unless bool." in each or "<alu" in each for each in shown)
    assert all(each in program_text(program) for each in shown)


# --- what is wrong is found -----------------------------------------------------------------


def _dropped(slot: Slot) -> Slot:
    return dataclasses.replace(slot, predicate=None)


def _inverted(slot: Slot) -> Slot:
    assert slot.predicate is not None
    source, holds = slot.predicate
    return dataclasses.replace(slot, predicate=(source, not holds))


@pytest.mark.nightly
@pytest.mark.rotate("name", "machine", most=1)
@pytest.mark.parametrize("machine", ["dsp4", "multi16"])
@pytest.mark.parametrize("name", ["some", "swap", "index"])
def test_a_predicate_that_is_dropped_or_inverted_is_found(name: str, machine: str) -> None:
    right = proved(whole(PROGRAMS[name]), find(machine))
    right.prove()
    places = predicated(right.program)
    assert places
    for number, slot in places:
        for wrong in (_dropped(slot), _inverted(slot)):
            with pytest.raises(ScheduleError):
                right.prove(changed(right.program, (number, slot, wrong)))


@pytest.mark.nightly
def test_a_store_that_came_to_depend_on_something_is_found() -> None:
    right = proved(whole(PROGRAMS["swap"]), find("multi16"))
    predicate = next(slot.predicate for _, slot in predicated(right.program))
    always = [each for each in slots(right.program) if each[1].name == "store"]
    for where in (each for each in always if each[1].predicate is None):
        with pytest.raises(ScheduleError):
            right.prove(altered(right.program, where, predicate=predicate))


@pytest.mark.nightly
def test_the_interpreter_takes_no_predicate_that_the_machine_does_not() -> None:
    part = whole(PROGRAMS["some"])
    program = compiled(part, find("multi16"))
    less = dataclasses.replace(find("multi16"), predication=False)
    with pytest.raises(HazardError, match="store with a predicate"):
        run(dataclasses.replace(program, machine=less), part, is_native=False)
