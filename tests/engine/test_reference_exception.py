# SPDX-License-Identifier: Apache-2.0
"""Exceptions whose values are references: roots while they are records, typed when thrown again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ferryvm
from ferryvm import Engine, Instance, StructView, TrapError, UncaughtError, assemble, build, host
from ferryvm.build import BuildError
from ferryvm.engine.saved import pack_state, unpack_state
from ferryvm.isa import Trap
from ferryvm.machine.memory import Limits
from ferryvm.testing import Schedule
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.verify import verify

from ..faults.compilers.search import differ_of
from ..object.compiled import CC

BACKENDS = ("reference", "switch", "threaded", "llvm")
LIMITS = Limits(stack=1 << 16, heap=1 << 16, objects=1 << 20)

TEXT = """
.struct node value i64 next node
.tag failed i64 node f64
.tag broken f64[] i31ref
.tag plain i64
.host print_i64 (i64)
.function main
    .local n i64
:again
    local.get n
    call clean
    host print_i64
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 4
    i64.lt_s
    jump_if again
    halt

; Makes garbage under a record, then throws it again.
.function clean (n i64) -> (i64)
:outer
    local.get n
    call under
    return
:outer_end
:failed
    drop
    struct.get node.value
    i64.add
    return
:broken
    i31.get_s
    i64.extend_i32_s
    return
.catch failed from outer to outer_end using failed
.catch broken from outer to outer_end using broken
.function under (n i64) -> (i64)
:try
    local.get n
    call work
    return
:end
:handler
    i64.const 60
    array.new_default_i64
    drop
    i64.const 700
    array.new_default_i64
    drop
    throw_record
.catch plain from try to end using plain
.catch_record from try to end using handler
:plain
    i64.const 1000
    i64.add
    return
.function work (n i64) -> (i64)
    .local made node
    local.get n
    i32.wrap_i64
    jump_table failed broken plain good
:good
    i64.const -3
    return
:failed
    i64.const 100
    i64.const 17
    ref.null node
    struct.new node
    f64.const 2.5
    throw failed
:broken
    f64.const 1
    i64.const 3
    array.new_f64
    i32.const -8
    ref.i31
    throw broken
:plain
    i64.const 5
    throw plain
"""
PRINTED = "117\n-8\n1005\n-3\n"


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("is_forced", [False, True])
def test_records_hold_references_as_roots(backend: str, is_forced: bool) -> None:
    execution = Engine(backend, limits=LIMITS).start(assemble(TEXT))
    assert execution.machine.objects is not None
    if is_forced:
        execution.machine.objects.force()
    assert execution.run().output == PRINTED


@pytest.mark.rotate("schedule", "backend", most=4)
@pytest.mark.parametrize("backend", [*BACKENDS[1:], CC, "opencl", "vliw"])
@pytest.mark.parametrize("schedule", Schedule)
def test_backends_agree_on_them_however_the_program_moves(schedule: Schedule, backend: str) -> None:
    is_compiler = backend not in BACKENDS[:3]
    differ = differ_of(backend) if is_compiler else Differ((backend,), limits=LIMITS)
    found = differ.compare(verify(assemble(TEXT)), schedule, seed=1)
    assert [(one.verdict, one.difference) for one in found] == [(Verdict.AGREE, None)] * len(found)


def test_a_state_with_a_record_can_be_saved_at_any_instruction() -> None:
    execution = Engine("switch", limits=LIMITS).start(assemble(TEXT))
    for _ in range(12):
        execution.run(fuel=5)
        machine, _ = unpack_state(pack_state(execution.machine, None), LIMITS, "x.ferry")
        assert machine.snapshot() == execution.machine.snapshot()


UNCAUGHT = """
.struct node value i64 next node
.tag failed i64 node f64[] anyref i31ref
.export fail
.export count
.function start
    halt
.function fail (numbers f64[])
    i64.const -5
    i64.const 7
    ref.null node
    struct.new node
    local.get numbers
    ref.null anyref
    throw failed
.function count -> (i64)
    i64.const 0
    return
"""


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_uncaught_exception_has_views_of_its_references(backend: str) -> None:
    program = assemble(UNCAUGHT.replace(" i31ref", ""), "text.fasm")
    one, a = Engine(backend).instantiate(program), np.ones(2)
    with pytest.raises(UncaughtError) as caught:
        one.call("fail", a)
    number, node, numbers, none = caught.value.values
    assert isinstance(node, StructView)
    memory = one.idle_execution().machine.objects
    assert memory is not None
    memory.collect()
    assert (number, node.value, none) == (-5, 7, None)
    assert numbers is a
    text = "uncaught exception failed(-5, <node value=7 next=null>, <f64[] of 2: 1.0, 1.0>, null)"
    assert text in str(caught.value).partition("\n")[0]
    assert one.call("count") == 0


def test_a_run_that_throws_has_views_too() -> None:
    text = """
        .struct node value i64
        .tag failed node
        .function main
            i64.const 6
            struct.new node
            throw failed
    """
    execution = Engine("threaded").start(assemble(text))
    with pytest.raises(UncaughtError) as caught:
        execution.run()
    assert caught.value.values[0].value == 6  # type: ignore[union-attr]  # a view


NESTED = """
.struct node value i64 next node
.tag failed node f64[]
.host ask
.export fail
.export start_asking
.function start
    halt
.function fail
    i64.const 7
    ref.null node
    struct.new node
    f64.const 3
    i64.const 2
    array.new_f64
    throw failed
.function start_asking -> (i64 f64[])
    .local numbers f64[]
:try
    host ask
    i64.const 0
    ref.null f64[]
    return
:end
:handler
    local.set numbers
    struct.get node.value
    local.get numbers
    return
.catch failed from try to end using handler
"""


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_exception_that_leaves_a_nested_call_keeps_its_objects(backend: str) -> None:
    @host
    def ask(one: Instance) -> None:
        machine = execution[0].machine
        assert machine.objects is not None
        try:
            one.call("fail")
        finally:
            machine.objects.collect()

    one = Engine(backend).instantiate(assemble(NESTED), hosts=[ask])
    execution = [one.idle_execution()]
    value, numbers = one.call("start_asking")  # type: ignore[misc]  # two results
    assert isinstance(numbers, np.ndarray)
    assert (value, numbers.tolist()) == (7, [3, 3])


def test_an_exception_of_another_instance_with_objects_is_not_caught() -> None:
    @host
    def ask() -> None:
        other[0].call("fail")

    other = [Engine("switch").instantiate(assemble(NESTED), hosts=[ask])]
    program = other[0].idle_execution().machine.program
    one = Engine("switch").instantiate(program, hosts=[ask])
    with pytest.raises(UncaughtError, match="failed"):
        one.call("start_asking")


FORGED = """
.struct node value i64
.struct other value f64
.tag failed node
.export forge
.function start
    halt
.function forge (what anyref, tag i64) -> (i64)
:try
    local.get what
    local.get tag
    i64.const 8
    i64.const 0
    i64.const 0
    i64.const 0
    throw_record
:end
:handler
    struct.get node.value
    return
.catch failed from try to end using handler
"""


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_reference_of_another_type_makes_a_record_invalid(backend: str, tmp_path: Path) -> None:
    one = Engine(backend).instantiate(assemble(FORGED))
    for wrong in (np.zeros(2), 5):
        with pytest.raises(TrapError) as caught:
            one.call("forge", wrong, 0)
        assert caught.value.kind is Trap.INVALID_RECORD
    with pytest.raises(TrapError) as caught:
        one.call("forge", None, 0)
    assert caught.value.kind is Trap.NULL_REFERENCE


def test_the_verifier_wants_references_below_the_words_of_a_record() -> None:
    text = FORGED.replace("    local.get what\n", "")
    with pytest.raises(ferryvm.VerifyError, match="operand of type anyref expected, the stack is"):
        verify(assemble(text))


def test_the_builder_knows_the_record() -> None:
    program = build.Program()
    node = program.struct("node", {"value": build.I64})
    failed = program.tag("failed", [build.I64, node])
    f = program.function("main", {}, [build.I64])
    with f.try_(results=[build.I64]) as block:
        f.i64_const(4)
        f.i64_const(38)
        f.struct_new(node)
        f.throw(failed)
        block.catch(failed)
        f.struct_get(node["value"])
        f.i64_add()
        block.catch_all(record=True)
        f.throw_record()
    program.start(f)
    assert ferryvm.run(program.build()).value == 42
    with pytest.raises(BuildError, match="tag 'more' has more references than any before it"):
        program.tag("more", [node, node])
    program.tag("others", [node, build.I64])
