# SPDX-License-Identifier: Apache-2.0
"""Addresses of the heap, of elements and of context arrays: the operands that are addresses, and
their constant parts."""

from __future__ import annotations

from ferryvm.ir.graph import Body, Constant, Operation, Value
from ferryvm.isa.type import I64, signed


def address_operands(operation: Operation) -> range:
    """The positions of the operands of an operation that are addresses."""
    match operation.name:
        case (
            "heap_load"
            | "heap_store"
            | "element_load"
            | "element_store"
            | "context_load"
            | "context_store"
        ):
            return range(1)
        case "canonicalise":
            return range(0, len(operation.arguments), 2)
        case "canonicalise_elements":
            return range(0, len(operation.arguments), 3)
        case _:
            return range(0)


def accessed(body: Body) -> set[Value]:
    """The operations whose values are used as addresses alone."""
    found: set[Value] = set()
    others: set[Value] = set()
    for block in body.blocks:
        for operation in block.operations:
            positions = address_operands(operation)
            for position, value in enumerate(operation.arguments):
                (found if position in positions else others).add(value)
            if operation.state is not None:
                others.update(operation.state.uses())
        others.update(block.end.uses())
    return {value for value in found - others if isinstance(value, Operation)}


def split(address: Value) -> tuple[Value | None, int]:
    """An address as a value, or none, and the signed constant that is added to it."""
    if isinstance(address, Constant):
        return None, signed(I64, address.bits)
    if isinstance(address, Operation) and address.name == "add":
        base, more = address.arguments
        if isinstance(more, Constant):
            return base, signed(I64, more.bits)
    return address, 0
