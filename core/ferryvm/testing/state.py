# SPDX-License-Identifier: Apache-2.0
"""The state of a program when backends are compared.

A state is status, trap kind, pc, sp, fp, hp, fuel left, every word of the statics, of the stack in
use and every byte of the heap in use, the output, the result. `ferryvm.machine.difference` says
when two are equal.
"""

from __future__ import annotations

import dataclasses

from ferryvm.machine.difference import (
    Difference,
    byte_difference,
    register_difference,
)
from ferryvm.machine.memory_difference import memory_difference
from ferryvm.machine.state import Machine, Snapshot


@dataclasses.dataclass(frozen=True)
class StoppedState:
    """One execution, stopped."""

    machine: Snapshot
    fuel: int | None
    """Instructions that may still complete; None if they were not counted: then it is not
    compared."""
    output: bytes


def difference(machine: Machine, left: StoppedState, right: StoppedState) -> Difference | None:
    """The first difference of two states of one program, None if they are equal.

    `machine` is one at the left state: it says which words hold floats.
    """
    a, b = left.machine, right.machine
    for name in ("status", "trap"):
        x, y = getattr(a, name), getattr(b, name)
        if x is not y:
            return Difference(name, x.name, y.name)
    found = register_difference(a, b)
    if found is not None:
        return found
    if None not in (left.fuel, right.fuel) and left.fuel != right.fuel:
        return Difference("fuel left", str(left.fuel), str(right.fuel))
    return memory_difference(machine, a, b) or byte_difference("output", left.output, right.output)
