# SPDX-License-Identifier: Apache-2.0
"""C code on arrays and structs ends as the reference does, also where programs move and collect."""

from __future__ import annotations

import pytest

from ferryvm.asm import assemble
from ferryvm.backend import Options
from ferryvm.isa.element import Element
from ferryvm.machine.memory import Limits
from ferryvm.region.region import region
from ferryvm.testing import Schedule, Verdict
from ferryvm.verify import verify

from ..backends.ending import ended
from ..backends.llvm.test_objects import SMALL
from ..engine.object_program import GARBAGE, LISTS, MIXED, TREES, on_elements
from ..faults.compilers.search import differ_of
from .compiled import CC, engine

PROGRAMS = {
    "mixed": MIXED,
    "garbage": GARBAGE.format(rounds=3),
    "lists": LISTS.format(length=9, times=4),
}


@pytest.mark.rotate("name", "schedule", most=3)
@pytest.mark.parametrize("backend", [CC])
@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("name", PROGRAMS)
def test_states_agree_however_the_program_moves(
    name: str, schedule: Schedule, backend: str
) -> None:
    program = verify(assemble(PROGRAMS[name]))
    found = differ_of(backend).compare(program, schedule, seed=2)
    assert [(one.verdict, one.difference) for one in found] == [(Verdict.AGREE, None)] * len(found)


@pytest.mark.rotate("element", "is_outside", most=2)
@pytest.mark.parametrize("backend", [CC])
@pytest.mark.parametrize("is_outside", [False, True])
@pytest.mark.parametrize("element", Element)
def test_every_instruction_on_arrays_of_numbers(
    element: Element, is_outside: bool, backend: str
) -> None:
    program, limits = assemble(on_elements(element, is_outside)), Limits(objects=1 << 20)
    assert ended(engine(backend, limits), program) == ended(engine("reference", limits), program)


@pytest.mark.rotate("text", most=1)
@pytest.mark.parametrize("backend", [CC])
@pytest.mark.parametrize(
    "text",
    [LISTS.format(length=40, times=6), TREES.format(depth=6), TREES.format(depth=8)],
    ids=["lists", "trees", "trees that do not fit"],
)
def test_an_allocation_that_does_not_fit_leaves_all_frames(text: str, backend: str) -> None:
    program, limits = assemble(text), Limits(objects=SMALL)
    assert ended(engine(backend, limits), program) == ended(engine("reference", limits), program)


@pytest.mark.parametrize("backend", [CC])
def test_c_text_computes_addresses_as_words(backend: str) -> None:
    """A pointer that leaves its object would be undefined: places are distances modulo 2^64."""
    program = verify(assemble(MIXED))
    compiler = engine(backend, Limits()).registry.get(backend)
    text = compiler.show(region(program, "program"), Options(), "c")
    assert "const uint64_t objects = control->objects;" in text
    assert "object_load_8(objects + " in text
    assert "FERRY_ALLOCATE" in text
