# SPDX-License-Identifier: Apache-2.0
"""Addresses are a base and a constant, and the same as before."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.address import accessed
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify

from ..heap_vector import on_heap
from ..tier import crossed, sample
from .change import changed
from .comparison import compare, visits
from .test_unroll import PROGRAMS


def shared(body: Body) -> None:
    for each in (share_bases, number_values, remove_dead_code):
        each(body)


def test_accesses_share_a_base() -> None:
    text = changed(
        shared,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = add i64 %1, i64:1
  %3: i64 = shl i64 %2, i64:3
  %4: i64 = add i64 %0, %3
  %5: i64 = heap_load 8 %4
  %6: i64 = mul i64 %1, i64:8
  %7: i64 = add i64 %0, i64:24
  %8: i64 = add i64 %6, %7
  heap_store 8 %8, %5
  leave @1 [_ _]
""",
    )
    assert text == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = shl i64 %1, i64:3
  %3: i64 = add i64 %0, %2
  %4: i64 = add i64 %3, i64:8
  %5: i64 = heap_load 8 %4
  %6: i64 = add i64 %3, i64:24
  heap_store 8 %6, %5
  leave @1 [_ _]
"""
    )


@pytest.mark.parametrize(
    ("sum_", "made"),
    [
        ("%2: i64 = sub i64 %0, %1", "sub i64 %0, %1"),
        ("%2: i64 = mul i64 %0, i64:12", "mul i64 %0, i64:12"),
        ("%2: i64 = mul i64 %0, i64:-8", "sub i64 i64:0, %1"),
        ("%2: i64 = sub i64 %0, i64:8", "add i64 %0, i64:-8"),
        ("%2: i64 = mul i64 %0, %1", "mul i64 %0, %1"),
    ],
)
def test_an_address_is_summed_anew(sum_: str, made: str) -> None:
    text = changed(
        shared,
        f"""
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  {sum_}
  %3: i64 = heap_load 8 %2
  leave @1 [_ _ %3]
""",
    )
    assert made in text


def test_an_address_that_is_needed_otherwise_stays() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = add i64 %0, i64:8
  %2: i64 = add i64 %0, %1
  %3: i64 = heap_load 8 %2
  leave @1 [_ _ %3 %2]
"""
    assert changed(shared, text) == text


def test_what_varies_least_leaves_the_loop() -> None:
    def change(body: Body) -> None:
        share_bases(body)
        hoist_invariants(body)
        remove_dead_code(body)

    text = changed(
        change,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1(i64:0)
b1 @1 (%2: i64):
  %3: i64 = add i64 %2, %1
  %4: i64 = add i64 %3, i64:4
  %5: i64 = shl i64 %4, i64:3
  %6: i64 = add i64 %5, %0
  heap_store 8 %6, %2
  %7: i64 = add i64 %2, i64:1
  poll @1 [_ _ %7]
  jump b1(%7)^
""",
    )
    before, loop = text.split("b1 @1")
    assert "shl i64 %1, i64:3" in before
    assert "add i64 %0, %2" in before
    assert loop.count("shl") == 1
    assert loop.count("add") == 3


def test_addresses_of_canonicalise_are_addresses() -> None:
    found: list[set[str]] = []

    def change(body: Body) -> None:
        found.append({value.name for value in accessed(body) if hasattr(value, "name")})

    changed(
        change,
        """
entry @0 ():
  %0: i64 = word 2
  %1: f64 = word 3
  %2: i64 = add i64 %0, i64:8
  %3: i64 = reinterpret i64 f64 %1
  heap_store 8 %2, %3
  canonicalise f64 %2, %1
  leave @1 [_ _]
""",
    )
    assert found == [{"add"}]


SIZES = [(40, 7), (6, 7), (1, 2)]


@pytest.mark.parametrize(("name", "size"), crossed(PROGRAMS, SIZES, 1))
def test_states_are_the_same(name: str, size: tuple[int, int]) -> None:
    length, n = size
    text = PROGRAMS[name].format(length=length, n=n)
    for found, machine in visits(verify(ferryvm.compile(on_heap(text)))):
        compare(found, machine, _shared)


@pytest.mark.parametrize("number_", sample(range(40), 3))
def test_states_of_random_programs_are_the_same(number_: int) -> None:
    for found, machine in visits(verify(generate(84, number_, ProgramKind.BYTECODE))):
        compare(found, machine, _shared)


def _shared(module: Module) -> None:
    optimise(module, unrolled=True)
    for body in module.bodies:
        for each in (share_bases, hoist_invariants, number_values, remove_dead_code):
            each(body)
