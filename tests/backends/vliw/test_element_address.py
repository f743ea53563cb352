# SPDX-License-Identifier: Apache-2.0
"""The address of an element is one value, the same as before, which address passes treat alike."""

from __future__ import annotations

import ferryvm
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.address_base import share_bases
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.verify import verify
from ferryvm_backends.vliw.element_address import join_element_addresses

from ...engine.object_program import MIXED
from ...ir.change import changed
from ...ir.comparison import compare, visits

_PASSES = join_element_addresses, share_bases, number_values, remove_dead_code


def _joined(body: Body) -> None:
    for each in _PASSES:
        each(body)


def test_elements_at_a_distance_share_a_base() -> None:
    text = changed(
        _joined,
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = header_word 2 %0
  %3: i64 = shl i64 %1, i64:3
  %4: i64 = element_load i64 %2, %3
  %5: i64 = add i64 %1, i64:1
  %6: i64 = shl i64 %5, i64:3
  element_store i64 %2, %6, %4
  leave @1 [_ _]
""",
    )
    assert text == (
        """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: i64 = header_word 2 %0
  %3: i64 = shl i64 %1, i64:3
  %4: i64 = add i64 %2, %3
  %5: i64 = element_load i64 %4, i64:0
  %6: i64 = add i64 %4, i64:8
  element_store i64 %6, i64:0, %5
  leave @1 [_ _]
"""
    )


def test_states_of_a_program_are_the_same() -> None:
    def joined(module: Module) -> None:
        optimise(module, unrolled=True)
        for body in module.bodies:
            _joined(body)

    for found, machine in visits(verify(ferryvm.assemble(MIXED))):
        compare(found, machine, joined)
