# SPDX-License-Identifier: Apache-2.0
"""How much of what loops have loaded they keep, on which machine."""

from __future__ import annotations

import dataclasses

import pytest

from ferryvm.ir.graph import Operation, Parameter
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.machine.model import Work
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import registers_for_forwarding


def _loop(loads: int, products: int, before: int = 0, stores: int = 1) -> list[Operation]:
    """Operations of an iteration, in which so many values from in front of the loop are used."""
    at, x = Parameter(I64), Parameter(I64)
    given = [Operation("heap_pointer", I64) for _ in range(before)]
    return [
        *(Operation("heap_load", I64, (8,), (at,)) for _ in range(loads)),
        *(
            Operation("mul", I64, (I64,), (x, given[n] if n < before else x))
            for n in range(products)
        ),
        *(Operation("heap_store", None, (8,), (at, x)) for _ in range(stores)),
    ]


@pytest.mark.parametrize(
    ("machine", "loop", "expected"),
    [
        # The multipliers take four cycles, in which 17 accesses and 16 loads of factors fit.
        ("multi16", _loop(16, 16, 16), 0),
        # 31 accesses take four cycles of nine units; with 13 less it is two, and with one more too.
        ("multi16", _loop(30, 4), 13),
        # Each one less is a slot less, and two registers are what there is room for.
        ("single", _loop(16, 16, 16), 2),
        # One unit for loads and stores, and one multiplier, which takes two cycles.
        ("dsp4", _loop(5, 2), 4),
        ("wide16", _loop(8, 12, stores=0), 0),
        ("wide16", _loop(9, 12, stores=0), 1),
        ("wide16", _loop(8, 12, before=1, stores=0), 1),
        ("multi16", [], 0),
    ],
)
def test_as_few_loads_are_kept_as_make_rounds_follow_soonest(
    machine: str, loop: list[Operation], expected: int
) -> None:
    assert registers_for_forwarding(find(machine), loop) == expected


def test_a_machine_that_cannot_do_it_is_no_error_here() -> None:
    machine = find("multi16")
    units = tuple(unit for unit in machine.units if Work.MULTIPLY not in unit.work)
    assert registers_for_forwarding(dataclasses.replace(machine, units=units), _loop(2, 2)) == 14
