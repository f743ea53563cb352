# SPDX-License-Identifier: Apache-2.0
"""Loops add to addresses where that saves operations, and the addresses are the same."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.strength_reduction import reduce_strength
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import crossed, sample
from .change import changed
from .comparison import compare, visits
from .test_unroll import PROGRAMS

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1({start})
b1 @1 (%2: i64):
  {address}
  %4: i64 = add i64 %3, {inside}
  %5: i64 = heap_load 8 %4
  poll @1 [_ _ %5 {state}]
  %6: i64 = add i64 %2, {step}
  jump b1(%6)^
"""
USUAL = {
    "start": "i64:3",
    "address": "%3: i64 = mul i64 %2, %1",
    "inside": "%0",
    "state": "%0",
    "step": "i64:2",
}

UNFIT = {
    "the address is needed otherwise": {"state": "%4"},
    "what it is computed of is needed otherwise": {"state": "%3"},
    "it is no line": {"address": "%3: i64 = mul i64 %2, %2"},
    "the step varies": {"step": "%5"},
}


def added(body: Body) -> None:
    reduce_strength(body)
    remove_dead_code(body)


def test_a_product_becomes_a_sum() -> None:
    assert changed(added, LOOP.format_map(USUAL)) == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = mul i64 %1, i64:3
  %3: i64 = add i64 %0, %2
  %4: i64 = mul i64 %1, i64:2
  jump b1(%3)
b1 @1 (%5: i64):
  %6: i64 = heap_load 8 %5
  poll @1 [_ _ %6 %0]
  %7: i64 = add i64 %5, %4
  jump b1(%7)^
"""
    )


@pytest.mark.parametrize("reason", UNFIT)
def test_it_stays_a_product_if(reason: str) -> None:
    text = changed(added, LOOP.format_map(USUAL | UNFIT[reason]))
    assert "= mul" in text.split("b1 @1")[1]


def test_addresses_that_share_what_they_are_computed_of_are_added_to_one_by_one() -> None:
    loads = "".join(
        f"\n  %{20 + n}: i64 = add i64 %{10 + n}, %3\n  %{30 + n}: i64 = heap_load 8 %{20 + n}"
        for n in range(4)
    )
    words = "".join(f"\n  %{10 + n}: i64 = word {10 + n}" for n in range(4))
    text = LOOP.format_map(USUAL | {"address": f"%3: i64 = shl i64 %2, i64:3{loads}"})
    text = text.replace("\n  jump b1(i", f"{words}\n  jump b1(i")
    assert text.count("word") == 6
    loop = changed(added, text).split("b1 @1")[1]
    assert "= shl" not in loop
    assert loop.count("heap_load") == loop.count("= add")


SIZES = [(40, 7), (6, 7), (1, 2), (40, 0)]


@pytest.mark.parametrize(("name", "size"), crossed(PROGRAMS, SIZES, 1))
def test_states_are_the_same(name: str, size: tuple[int, int]) -> None:
    length, n = size
    text = PROGRAMS[name].format(length=length, n=n)
    for found, machine in visits(verify(ferryvm.compile(on_heap(text)))):
        compare(found, machine, _added)


@pytest.mark.parametrize("number_", sample(range(40), 1))
def test_states_of_random_programs_are_the_same(number_: int) -> None:
    for found, machine in visits(verify(generate(85, number_, ProgramKind.BYTECODE))):
        compare(found, machine, _added)


def _added(module: Module) -> None:
    optimise(module, unrolled=True)
    for body in module.bodies:
        for each in (
            share_bases,
            hoist_invariants,
            number_values,
            remove_dead_code,
            reduce_strength,
            hoist_invariants,
            remove_dead_code,
        ):
            each(body)
