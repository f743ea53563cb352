# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the instructions on references, on every interpreter and compiler.

Cases with the same setting are functions of one program, which a compiler compiles once; a case is
a run of it.
"""

from __future__ import annotations

import dataclasses
import functools

import pytest

from ferryvm.engine import Execution
from ferryvm.engine.result import TrapError
from ferryvm.isa import INSTRUCTIONS, Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.listing import FunctionListing
from ferryvm.machine.memory import Limits
from ferryvm.testing.conformance.golden import GoldenCase, Setting, object_cases
from ferryvm.testing.conformance.instruction import HALT, pc_of
from ferryvm.testing.conformance.together import grouped, shared
from ferryvm.verify import Verified

from .compiled import CC, INTERPRETERS, KERNELS, engine

COMPILERS = ("llvm", CC)
LIMITS = Limits(stack=1 << 16, heap=1 << 20, first_heap=1 << 12, objects=1 << 20)
RECORDS = dataclasses.replace(LIMITS, objects=1 << 18)
"""Limits of cases without arrays: the reference takes seconds to fill a MiB with records."""
MOST_CASES = 25
"""Of a program, so that a test takes a second at most."""

GROUPS: list[tuple[Setting, tuple[GoldenCase, ...]]] = [
    (setting, cases[first : first + MOST_CASES])
    for setting, members in grouped((case.setting, case) for case in object_cases())
    for cases in [tuple(members)]
    for first in range(0, len(cases), MOST_CASES)
]
IDS = [f"{cases[0].where}-to-{cases[-1].where}" for _, cases in GROUPS]


@functools.lru_cache(maxsize=2)  # the backends of a group are consecutive
def program(number: int) -> tuple[list[FunctionListing], Verified]:
    """The functions of a group's program, and the program."""
    setting, cases = GROUPS[number]
    return shared(setting, [(case.setting.locals, (*(case.code or ()), HALT)) for case in cases])


def check(case: GoldenCase, execution: Execution, marked: int) -> None:
    """Run it and compare its end with the stated one, where `marked` is the pc of a trap."""
    machine = execution.machine
    trap = None
    try:
        execution.run()
    except TrapError as error:
        trap = error.kind
    assert trap is case.outcome.trap, f"{case}: {trap}"
    control = machine.control
    depth = machine.verified.depth(control.pc)
    first = control.fp + HEADER_WORDS + len(case.setting.locals)
    if trap is not None:
        assert control.pc == marked, case
        assert control.sp == first + depth, case
        return
    if case.outcome.heap is not None:
        assert bytes(machine.memory.heap[: control.hp]) == case.outcome.heap, case
        return
    types = machine.verified.operand_types(control.pc)
    words = machine.memory.stack[first : control.sp].tolist()
    assert list(zip(types, words, strict=True)) == list(case.outcome.stack), case


each_group = pytest.mark.parametrize("number", range(len(GROUPS)), ids=IDS)


@pytest.mark.rotate("number", "backend")
@pytest.mark.parametrize("backend", INTERPRETERS)
@each_group
def test_interpreters_do_what_is_stated_by_hand(number: int, backend: str) -> None:
    run(number, backend)


@pytest.mark.rotate("number", "backend")
@pytest.mark.parametrize("backend", COMPILERS)
@each_group
def test_compiled_code_does_what_is_stated_by_hand(number: int, backend: str) -> None:
    run(number, backend)


@pytest.mark.rotate("number", most=5)  # a program takes a second to compile
@each_group
def test_code_of_vliw_does_what_is_stated_by_hand(number: int) -> None:
    run(number, "vliw")


@pytest.mark.rotate("number", "backend", most=4)
@pytest.mark.parametrize("backend", KERNELS)
@each_group
def test_a_kernel_does_what_is_stated_by_hand(number: int, backend: str) -> None:
    """Building a kernel takes long; tests/backends/opencl has programs with all instructions."""
    run(number, backend)


def run(number: int, backend: str) -> None:
    """Run each case of a group in code that is prepared once."""
    functions, verified = program(number)
    cases = GROUPS[number][1]
    has_arrays = not all(case.row.mnemonic.startswith("struct.") for case in cases)
    execution = engine(backend, LIMITS if has_arrays else RECORDS, level=1).start(verified)
    for which, case in enumerate(cases):
        execution = execution.again()
        execution.machine.memory.statics[-1] = which
        check(case, execution, pc_of(case.marked, functions))


def test_every_instruction_on_references_has_cases() -> None:
    stated = {case.row.mnemonic for _, cases in GROUPS for case in cases}
    assert stated == {row.mnemonic for row in INSTRUCTIONS if row.has_references}


def test_cases_name_every_trap_but_that_of_arrays_which_a_host_lends() -> None:
    traps = {case.outcome.trap for case in object_cases()} - {None}
    assert traps == {
        Trap.NULL_REFERENCE,
        Trap.CAST_FAILURE,
        Trap.INDEX_OUT_OF_BOUNDS,
        Trap.MEMORY_OUT_OF_BOUNDS,
        Trap.HEAP_EXHAUSTED,
        Trap.NEGATIVE_COUNT,
    }
