# SPDX-License-Identifier: Apache-2.0
"""Kernels do what the reference does, whether memory is wrapped or copied."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.backend import Forcing, Options
from ferryvm.engine import Engine
from ferryvm.isa import Trap, Type
from ferryvm.isa.type import CANONICAL_NAN
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.testing.conformance.suite import Item, ItemVerdict, checks
from ferryvm_backends.opencl import OpenClBackend

from ...heap_vector import on_heap
from .entering import assembled, enter, named, ready, whole

SUM = """
(define s 0)
(define v (make-vector i64 5000))
(define i 0)
(while (< i 5000) (vector-set! v i (* i i)) (set! i (+ i 1)))
(while (> i 0) (set! i (- i 1)) (set! s (+ s (vector-ref v i))))
s
"""
TOTAL = sum(i * i for i in range(5000))

PROGRAMS = {
    "f32": "(define i 0) (define x (f32 1.0)) (while (< i 90) (set! x (/ (+ x (f32 1.0)) (sqrt x)))"
    " (set! i (+ i 1))) x",
    "down": "(define (down n) (if (= n 0) 0 (+ 1 (down (- n 1))))) (down 30000)",
    "overflow": "(define (down n) (+ 1 (down (+ n 1)))) (down 0)",
    "mutual": "(define (even n) (if (= n 0) 1 (odd (- n 1))))"
    " (define (odd n) (if (= n 0) 0 (even (- n 1)))) (even 10001)",
    "ackermann": "(define (a m n) (if (= m 0) (+ n 1) (if (= n 0) (a (- m 1) 1)"
    " (a (- m 1) (a m (- n 1)))))) (a 2 60)",
    "host": "(define (f n) (print! n) (if (> n 0) (f (- n 1)))) (f 12)",
    "grow": "(define i 0) (define v (make-vector i64 1)) (while (< i 7)"
    " (set! v (make-vector i64 (* 100000 (+ i 1)))) (vector-set! v (* 99999 i) i)"
    " (set! i (+ i 1))) (vector-ref v 599994)",
    "trap": "(define v (make-vector i64 9)) (define i 0)"
    " (while (< i 10) (vector-set! v i 5) (set! i (+ i 1)))",
}

PROGRAM_ITEMS = [item for item in checks() if item.group != "instruction"]
SOME = PROGRAM_ITEMS[::148]
"""A part of the conformance suite, for memory that is copied; tests/conformance/test_backends.py
has it wrapped, and `ferry conformance --backend opencl` runs all of it."""


def outcome(engine: Engine, text: str) -> tuple[object, ...]:
    """All that a run leaves behind."""
    execution = engine.start(ferryvm.compile(on_heap(text)))
    try:
        output = execution.run().output
    except ferryvm.TrapError as error:
        output = str(error)
    snapshot = execution.machine.snapshot()
    return output, dataclasses.astuple(snapshot)


@pytest.mark.rotate("name", "backend", most=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_in_the_reference_state(backend: OpenClBackend, name: str) -> None:
    limits = Limits(stack=1 << 20, heap=64 << 20)
    engine = Engine("kernels", registry=named(backend), limits=limits)
    expected = outcome(Engine("threaded", limits=limits), PROGRAMS[name])
    assert outcome(engine, PROGRAMS[name]) == expected


@pytest.mark.nightly
@pytest.mark.parametrize(
    "backend", ["copied", pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True
)
@pytest.mark.parametrize("item", SOME, ids=lambda item: item.label)
def test_a_case_of_the_conformance_suite_passes(backend: OpenClBackend, item: Item) -> None:
    found = item.run(ready(backend))
    assert found.verdict in (ItemVerdict.PASSED, ItemVerdict.SKIPPED), found.message


@pytest.mark.nightly
def test_machines_take_turns(backend: OpenClBackend) -> None:
    region = whole(SUM)
    code = backend.compile(region, Options())
    machines = [Machine(region.verified) for _ in range(20)]  # more than stay on a device
    for machine in machines:
        assert enter(code, machine) is Status.HALT
    for machine in machines:
        assert machine.result()[1] == TOTAL  # type: ignore[index]  # it has one
    assert code.activity().entries == 20


def test_what_the_host_writes_between_two_entries_is_seen(backend: OpenClBackend) -> None:
    region = whole(
        "(define v (make-vector i64 4000)) (define i 0) (define s 0)"
        "(while (< i 4000) (set! s (+ s (vector-ref v i))) (set! i (+ i 1))) s"
    )
    head = dataclasses.replace(region, entry=_loop_head(region))
    code = backend.compile(head, Options())
    machine = Machine(region.verified)
    execution = Engine("threaded").start(region.verified.program)
    while execution.machine.control.pc != head.entry:
        execution.run(1)
    machine = execution.machine
    start = machine.control.pc
    for word in (3, 4):
        control = machine.control
        before = control.sp, control.fp
        for place in (1, 2000, 3999):
            machine.memory.heap[8 + 8 * place] = word
        assert enter(code, machine) is Status.HALT
        assert machine.result()[1] == 3 * word  # type: ignore[index]  # it has one
        control.pc, (control.sp, control.fp) = start, before
        for number in range(len(machine.memory.statics)):
            if machine.memory.statics[number] in (4000, 3 * word):
                machine.memory.statics[number] = 0


def _loop_head(region: object) -> int:
    from ferryvm.region.region import Region

    assert isinstance(region, Region)
    (head,) = region.graph.heads
    return head


def test_the_interrupt_flag_stops_it(backend: OpenClBackend) -> None:
    region = assembled(
        ".static n i64\n.function main\n:again\n static.get n\n i64.const 3\n i64.mul\n"
        " i64.const 1\n i64.add\n static.set n\n jump again\n"
    )
    machine = Machine(region.verified)
    machine.control.interrupt = 1
    assert enter(backend.compile(region, Options()), machine) is Status.INTERRUPTED


def test_a_cycle_with_two_ways_in_runs(backend: OpenClBackend) -> None:
    text = (
        ".static n i64\n.function main\n static.get n\n i64.eqz\n jump_if second\n"
        ":first\n static.get n\n i64.const 1\n i64.add\n static.set n\n"
        ":second\n static.get n\n i64.const 3\n i64.xor\n static.set n\n"
        " static.get n\n i64.const 1000\n i64.lt_s\n jump_if first\n halt\n"
    )
    region = assembled(text)
    machines = [Machine(region.verified), Machine(region.verified)]
    assert "switch (next)" not in backend.show(region, Options(), "opencl")
    assert enter(backend.compile(region, Options()), machines[0]) is Status.HALT
    ferryvm_result = Engine("reference").start(region.verified.program)
    ferryvm_result.run()
    assert machines[0].snapshot().statics == ferryvm_result.machine.snapshot().statics


@pytest.mark.rotate("backend", most=1)
def test_fuel_is_paid_to_the_instruction(backend: OpenClBackend) -> None:
    engine = Engine("kernels", registry=named(backend))
    reference = Engine("reference")
    for fuel in (0, 777, 10**6):
        states = []
        for each in (engine, reference):
            execution = each.start(ferryvm.compile(on_heap(SUM)))
            execution.run(fuel)
            states.append((execution.machine.snapshot(), execution.instructions))
        assert states[0] == states[1]


@pytest.mark.rotate("backend", most=1)
def test_forced_kernels_give_up_and_the_result_is_the_same(backend: OpenClBackend) -> None:
    mixed = ready(backend)
    program = whole(SUM).verified
    artifact = mixed.prepare_forced(program, frozenset({Forcing.HOT, Forcing.DEOPT}))
    machine = Machine(program)
    status = artifact.enter(machine, False)
    while status is Status.GROW:
        machine.grow()
        status = artifact.enter(machine, False)
    assert status is Status.HALT
    assert machine.result()[1] == TOTAL  # type: ignore[index]  # it has one


@pytest.mark.rotate("backend", most=1)
def test_a_guard_that_fails_is_counted(backend: OpenClBackend) -> None:
    region = whole(
        "(define i 0)(define s 0)(while (< i 9) (if (= i 5) (set! s 7)) (set! i (+ i 1)))s"
    )
    ways = [
        (block.last, onward)
        for block in region.graph.blocks.values()
        if len(block.successors) == 2
        for onward in block.successors
    ]
    failed = 0
    for way in ways:
        code = backend.compile(region, Options(unseen=frozenset({way}), guard_limit=2))
        statuses = [enter(code, Machine(region.verified)) for _ in range(3)]
        if statuses[0] is not Status.HALT:
            failed += 1
            assert statuses == [Status.LEAVE, Status.GUARD, Status.GUARD]
            assert code.activity().failures == {way[0]: 3}
    assert failed


def test_a_trap_is_at_its_instruction(backend: OpenClBackend) -> None:
    region = whole(PROGRAMS["trap"])
    machine = Machine(region.verified)
    assert enter(backend.compile(region, Options()), machine) is Status.TRAP
    assert machine.control.trap == Trap.MEMORY_OUT_OF_BOUNDS


@pytest.mark.rotate("name", "t", "backend")
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "nearest", "sqrt"])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_a_rounding_of_a_nan_that_is_known_when_the_kernel_is_built_is_the_nan(
    backend: OpenClBackend, name: str, t: str
) -> None:
    text = (
        f".static x {t}\n.function main\n static.get x\n {t}.const nan\n {t}.add\n"
        f" static.set x\n static.get x\n static.get x\n {t}.sub\n {t}.{name}\n static.set x\n halt\n"
    )
    region = assembled(text)
    machine = Machine(region.verified)
    assert enter(backend.compile(region, Options()), machine) is Status.HALT
    assert machine.memory.statics[0] == CANONICAL_NAN[Type(t)]


def test_a_machine_with_another_stack_at_the_same_place_is_another(backend: OpenClBackend) -> None:
    region = whole(PROGRAMS["overflow"])
    code = backend.compile(region, Options())
    depths = []
    for size in (2048, 4096, 3072):  # all within a page
        machine = Machine(region.verified, Limits(stack=size))
        status = enter(code, machine)
        while status is Status.LEAVE:
            status = enter(code, machine)
        assert status is Status.TRAP
        depths.append(machine.control.sp * 8 / size)
        del machine
    assert all(0.9 < depth <= 1 for depth in depths)
