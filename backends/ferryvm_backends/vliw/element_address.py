# SPDX-License-Identifier: Apache-2.0
"""Make the address of an element one value, since accesses of the machine add constants alone.

    %w = element_load f64 %place, %i << 3        %a = %place + (%i << 3)
                                           ─>    %w = element_load f64 %a, 0

An access adds both operands anyway, so nothing changes. The sum is an address as those of the heap
are: `address_base` and `strength_reduction` find recurrences, `load_forwarding` finds values that a
loop has loaded before. Runs after the passes that look at places, such as `loop_versioning`.

Requires no other pass. Preserves blocks, edges, effects and exits.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Body
from ferryvm.isa.type import I64

_ACCESSES = frozenset({"element_load", "element_store"})


def join_element_addresses(body: Body) -> None:
    """Give each load and store of an element an address and no offset."""
    m = Builder(body.constants)
    zero = m.constant(I64, 0)
    for block in body.blocks:
        if _ACCESSES.isdisjoint(operation.name for operation in block.operations):
            continue
        operations, block.operations = block.operations, []
        m.open(block)
        for operation in operations:
            if operation.name in _ACCESSES:
                m.pc = operation.pc
                place, offset, *rest = operation.arguments
                operation.arguments = (m.add(I64, place, offset), zero, *rest)
            block.operations.append(operation)
