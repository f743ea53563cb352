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
from ferryvm.ir.graph import Body, Value
from ferryvm.isa.type import I64, Type

_ACCESSES = frozenset({"element_load", "element_store", "canonicalise_elements"})
"""Operations whose operands are groups of a place, an offset and perhaps a value."""

_CONTEXT = frozenset({"context_load", "context_store"})


def join_element_addresses(body: Body) -> None:
    """Give each load and store of an element an address and no offset; of a context array,
    likewise."""
    m = Builder(body.constants)
    zero = m.constant(I64, 0)
    for block in body.blocks:
        if (_ACCESSES | _CONTEXT).isdisjoint(operation.name for operation in block.operations):
            continue
        sums: dict[tuple[Value, Value], Value] = {}
        operations, block.operations = block.operations, []
        m.open(block)
        for operation in operations:
            if operation.name in _CONTEXT:
                m.pc = operation.pc
                array, index, *values = operation.arguments
                size = operation.fact(0, Type).bits // 8
                distance = m.shl(I64, index, m.constant(I64, size.bit_length() - 1))
                operation.arguments = (m.add(I64, array, distance), zero, *values)
            elif operation.name in _ACCESSES:
                m.pc = operation.pc
                arguments = [*operation.arguments]
                for first in range(0, len(arguments), 3):
                    place, offset = arguments[first : first + 2]
                    if (place, offset) not in sums:
                        sums[place, offset] = m.add(I64, place, offset)
                    arguments[first : first + 2] = sums[place, offset], zero
                operation.arguments = tuple(arguments)
            block.operations.append(operation)
