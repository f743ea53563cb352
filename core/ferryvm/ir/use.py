# SPDX-License-Identifier: Apache-2.0
"""The uses of values: the users of each, and the replacement of values in all uses; the functions
that operations use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ferryvm.ir.graph import Block, Body, FrameState, Operation, Value


def users_of(body: Body) -> dict[Value, list[Operation | None]]:
    """The users of each value: operations, or None for a state, an edge or the end of a block."""
    found: defaultdict[Value, list[Operation | None]] = defaultdict(list)
    for block in body.blocks:
        for operation in block.operations:
            for value in operation.arguments:
                found[value].append(operation)
            if operation.state is not None:
                for value in operation.state.uses():
                    found[value].append(None)
        for value in block.end.uses():
            found[value].append(None)
    return dict(found)


def substitute(blocks: Iterable[Block], new: dict[Value, Value]) -> None:
    """Replace all uses of values in some blocks."""
    states: dict[FrameState, FrameState] = {}
    old = new.keys()
    for block in blocks:
        for operation in (*block.operations, block.end):
            if not old.isdisjoint(operation.arguments):
                operation.arguments = tuple([new.get(a, a) for a in operation.arguments])
            state = operation.state
            if state is not None:
                if state not in states:
                    states[state] = state.renamed(new)
                operation.state = states[state]
        for edge in block.end.edges:
            if not old.isdisjoint(edge.arguments):
                edge.arguments = [new.get(a, a) for a in edge.arguments]


def callees(operation: Operation) -> tuple[int, ...]:
    """The functions that an operation may call."""
    if operation.name == "call":
        return (operation.fact(0, int),)
    return operation.fact(0, tuple) if operation.name == "call_indirect" else ()
