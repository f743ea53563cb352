# SPDX-License-Identifier: Apache-2.0
"""Every cycle in which nothing is issued has its cause."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

import ferryvm
from ferryvm.isa.type import F64, I64
from ferryvm.region.region import region
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify
from ferryvm_backends.vliw.code.operation import MemoryOperand, Segment
from ferryvm_backends.vliw.code.program import (
    Bundle,
    Bypass,
    Immediate,
    LoopSummary,
    Program,
    Read,
    Slot,
    Source,
)
from ferryvm_backends.vliw.code.stall import Cause, stalls
from ferryvm_backends.vliw.machine.read import find, shipped

from ...testing.generate.settled import SETTLED
from ...tier import sample
from .program import compiled

ROOT = Path(__file__).parents[3]
MULTI = find("multi16")
UNIT = {unit.name: number for number, unit in enumerate(MULTI.units)}
A, B, C, D = (Read(0, number) for number in range(4))
BOOLEAN = Read(4, 0)
ONE = Immediate(1)

LOAD, FLOAT, LATENCY, BRANCH = Cause.LOAD, Cause.FLOAT, Cause.LATENCY, Cause.BRANCH


def computes(
    name: str, unit: str, *sources: Source, to: Read | None = None, of: object = I64
) -> Slot:
    return Slot(UNIT[unit], name, (of,), sources, to, has_result=True)  # type: ignore[arg-type]  # a type


def load(to: Read | None = None, unit: str = "memory0") -> Slot:
    place = MemoryOperand(Segment.HEAP)
    return Slot(UNIT[unit], "load", (), (Immediate(0),), to, has_result=True, place=place)


def store(value: Source) -> Slot:
    return Slot(
        UNIT["memory1"], "store", (), (Immediate(0), value), place=MemoryOperand(Segment.HEAP)
    )


def add(*sources: Source, to: Read | None = None, unit: str = "alu0") -> Slot:
    return computes("add", unit, *sources, to=to)


def multiply(*sources: Source, to: Read) -> Slot:
    return computes("mul", "alu1", *sources, to=to)


def fadd(*sources: Source, to: Read) -> Slot:
    return computes("fadd", "float_adder0", *sources, to=to, of=F64)


def divide(*sources: Source, to: Read | None = None) -> Slot:
    return computes("div_u", "alu0", *sources, to=to)


def branch(name: str, *sources: Source, target: int | None = None) -> Slot:
    return Slot(UNIT["control"], name, (), sources, target=target)


STOP = branch("stop")
EXIT = branch("exit", BOOLEAN, target=0)


def program(cycles: Sequence[Bundle | int]) -> Program:
    """Bundles; a number stands for so many that are empty."""
    bundles: list[Bundle] = []
    for each in cycles:
        bundles += [()] * each if isinstance(each, int) else [each]
    return Program("planted", MULTI, tuple(bundles), {0: "b"}, (), (), 0, 0, 0)


@pytest.mark.parametrize(
    ("cycles", "cause"),
    [
        ([(load(A),), 2, (add(A, ONE, to=B),)], LOAD),
        ([(load(),), 2, (add(Bypass(UNIT["memory0"]), ONE, to=B),)], LOAD),
        ([(load(A),), 2, (store(A),)], LOAD),
        ([(fadd(A, B, to=C),), 4, (fadd(C, C, to=D),)], FLOAT),
        ([(multiply(A, B, to=C),), 2, (add(C, ONE, to=D),)], LATENCY),
        ([(load(A), fadd(B, B, to=C)), 4, (fadd(A, C, to=D),)], FLOAT),
        ([(EXIT,), 3, (store(A),)], BRANCH),
        ([(EXIT,), 3, (add(A, ONE, to=A),)], BRANCH),
        ([(divide(A, ONE, to=B),), 33, (divide(C, ONE, to=D),)], Cause.UNIT),
        ([(load(A),), 2, (add(C, ONE, to=D),)], Cause.PORT),
        ([(add(A, ONE, to=B),), 1, (add(C, ONE, to=D),)], Cause.OTHER),
    ],
)
def test_a_gap_has_the_cause_that_the_next_operation_waited_for(
    cycles: list[Bundle | int], cause: Cause
) -> None:
    found = stalls(program([*cycles, (STOP,), 3]))
    gap = cycles[1]
    assert isinstance(gap, int)
    assert found == (None, *[cause] * gap, None, None, *[BRANCH] * 3)


def test_a_register_is_not_written_before_it_was_read() -> None:
    """The load is written back a cycle after the last operation that reads what was there
    before."""
    reads = (add(B, ONE, to=C),)
    found = stalls(program([reads, 2, (load(B),), (add(D, ONE),), reads, (STOP,), 3]))
    assert found[:4] == (None, Cause.REGISTER, Cause.REGISTER, None)


def test_a_branch_waits_for_what_has_to_be_there_where_it_leads_to() -> None:
    """A division takes 34 cycles, the branch four of them."""
    found = stalls(program([(divide(A, ONE, to=B),), 29, (STOP,), 3]))
    assert found == (None, *[LATENCY] * 29, None, *[BRANCH] * 3)


def test_a_branch_waits_for_what_is_done_in_its_delay_slots() -> None:
    """The store is in the last one, as soon as there is what it stores."""
    found = stalls(program([(divide(A, ONE, to=B),), 30, (STOP,), 2, (store(B),)]))
    assert found == (None, *[LATENCY] * 30, None, *[LATENCY] * 2, None)


def test_a_block_begins_with_what_lands_there() -> None:
    blocks = dataclasses.replace(program([(STOP,), 5, (STOP,), 3]), labels={0: "a", 4: "b"})
    write_back = [Cause.WRITE_BACK] * 2
    assert stalls(blocks) == (None, *[BRANCH] * 3, *write_back, None, *[BRANCH] * 3)


def test_a_pipelined_loop_waits_for_the_pass_before() -> None:
    """The load of a pass is read at the beginning of the next, three cycles later."""
    jump = branch("jump", target=0)
    looping = program([(jump, add(A, ONE, to=B)), 1, (load(A),), 2])
    loop = LoopSummary("b", 0, 1, 0, 5, 1, 2, 2, "memory", 5)
    pipelined = dataclasses.replace(looping, loops=(loop,))
    assert stalls(looping) == (None, Cause.OTHER, None, BRANCH, BRANCH)
    assert stalls(pipelined) == (None, Cause.INITIATION, None, LOAD, LOAD)


@pytest.mark.rotate("name", "machine", most=1)
@pytest.mark.parametrize("machine", shipped())
@pytest.mark.parametrize("name", ["nbody", "sieve", "mandelbrot", "arrays"])
def test_each_empty_bundle_of_a_program_has_a_cause_and_no_other(machine: str, name: str) -> None:
    part = region(verify(ferryvm.read(ROOT / "examples" / f"{name}.skiff")), "program")
    found = compiled(part, find(machine))
    causes = stalls(found)
    assert [cause is None for cause in causes] == [bool(bundle) for bundle in found.bundles]
    unexplained = sum(cause is Cause.OTHER for cause in causes)
    assert unexplained <= len(causes) // 100


@pytest.mark.nightly
@pytest.mark.parametrize("number", sample([3, 5, 0, 1, 4], 2))  # `single` has too few ports for 2
def test_random_programs_hardly_wait_for_nothing(number: int) -> None:
    part = region(verify(generate(77, number, ProgramKind.BYTECODE, SETTLED)), "program")
    for machine in ("multi16", "single"):
        causes = stalls(compiled(part, find(machine)))
        assert sum(cause is Cause.OTHER for cause in causes) <= len(causes) // 50
