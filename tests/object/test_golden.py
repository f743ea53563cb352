# SPDX-License-Identifier: Apache-2.0
"""Golden cases of the instructions on references, on every interpreter and compiler."""

from __future__ import annotations

import pytest

from ferryvm.engine.result import TrapError
from ferryvm.isa import INSTRUCTIONS, Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.listing import FunctionListing
from ferryvm.machine.memory import Limits
from ferryvm.region.reference import CHAPTERS
from ferryvm.testing.conformance.golden import GoldenCase, object_cases
from ferryvm.testing.conformance.instruction import HALT, pc_of, program_of

from .compiled import CC, INTERPRETERS, KERNELS, engine

BACKENDS = (*INTERPRETERS, "llvm", "vliw", CC)
LIMITS = Limits(stack=1 << 16, heap=1 << 20, first_heap=1 << 12, objects=1 << 20)
MNEMONICS = [row.mnemonic for row in INSTRUCTIONS if row.chapter in CHAPTERS]


def check(case: GoldenCase, backend: str) -> None:
    main = FunctionListing("main", locals=case.setting.locals, items=[*(case.code or ()), HALT])
    functions = [main, *case.setting.functions]
    execution = engine(backend, LIMITS, level=1).start(program_of(case.setting, functions))
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
        assert control.pc == pc_of(case.marked, functions), case
        assert control.sp == first + depth, case
        return
    if case.outcome.heap is not None:
        assert bytes(machine.memory.heap[: control.hp]) == case.outcome.heap, case
        return
    types = machine.verified.operand_types(control.pc)
    words = machine.memory.stack[first : control.sp].tolist()
    assert list(zip(types, words, strict=True)) == list(case.outcome.stack), case


@pytest.mark.rotate("mnemonic", "backend")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_instruction_does_what_is_stated_by_hand(mnemonic: str, backend: str) -> None:
    cases = [case for case in object_cases() if case.row.mnemonic == mnemonic]
    assert cases
    for case in cases:
        check(case, backend)


@pytest.mark.rotate("mnemonic", "backend", most=6)
@pytest.mark.parametrize("backend", KERNELS)
@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_a_kernel_does_what_is_stated_by_hand(mnemonic: str, backend: str) -> None:
    """Building a kernel takes long; tests/backends/opencl has programs with all instructions."""
    for case in object_cases():
        if case.row.mnemonic == mnemonic:
            check(case, backend)


def test_cases_name_every_trap_but_that_of_arrays_which_a_host_lends() -> None:
    traps = {case.outcome.trap for case in object_cases()} - {None}
    assert traps == {
        Trap.NULL_REFERENCE,
        Trap.CAST_FAILURE,
        Trap.INDEX_OUT_OF_BOUNDS,
        Trap.MEMORY_OUT_OF_BOUNDS,
        Trap.HEAP_EXHAUSTED,
    }
