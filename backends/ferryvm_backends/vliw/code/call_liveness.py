# SPDX-License-Identifier: Apache-2.0
"""Liveness across calls: the values that a body needs after each of its calls."""

from __future__ import annotations

from ferryvm.ir.graph import Block, Body, Constant, Operation, Value
from ferryvm.ir.operation import SHAPES, Role


def live_across_calls(body: Body) -> dict[Operation, list[Value]]:
    """For each call the values from before it that are needed after it, or if the callee leaves."""
    at_entry: dict[Block, dict[Value, None]] = {block: {} for block in body.blocks}
    found: dict[Operation, list[Value]] = {}
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(body.blocks):
            live = _above(block, at_entry, found)
            if live.keys() != at_entry[block].keys():
                at_entry[block] = live
                has_changed = True
    return found


def _above(
    block: Block, at_entry: dict[Block, dict[Value, None]], found: dict[Operation, list[Value]]
) -> dict[Value, None]:
    live: dict[Value, None] = {}
    for edge in block.end.edges:
        live.update(at_entry[edge.block])
    for operation in (block.end, *reversed(block.operations)):
        live.pop(operation, None)
        if SHAPES[operation.name].role is Role.CALLS:
            assert operation.state is not None
            needed = {**live, **dict.fromkeys(operation.state.uses())}
            found[operation] = [each for each in needed if not isinstance(each, Constant)]
        live.update((value, None) for value in operation.uses() if not isinstance(value, Constant))
    for parameter in block.parameters:
        live.pop(parameter, None)
    return live
