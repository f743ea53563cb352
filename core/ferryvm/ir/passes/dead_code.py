# SPDX-License-Identifier: Apache-2.0
"""Dead-code elimination: remove operations without a use, parameters with one value, and all but
one of equal parameters.

Requires no other pass; preserves effects. Two parameters of a block are equal if each edge has the
same argument for both. A block parameter whose arguments are all one value (or
itself) is that value (Braun et al.: Simple and Efficient Construction of Static Single Assignment
Form, 2013, section 3.1); nested loops take a few iterations of the pass.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.ir.control_flow_graph import edges_to
from ferryvm.ir.graph import Block, Body, Edge, Operation, Parameter, Value
from ferryvm.ir.operation import EFFECTS
from ferryvm.ir.use import substitute


def remove_dead_code(body: Body) -> None:
    """Remove redundant parameters and dead operations."""
    replaced = _redundant(body)
    if replaced:
        substitute(body.blocks, replaced)
    _remove_dead(body)


def _redundant(body: Body) -> dict[Value, Value]:
    """The value of each redundant parameter, which is removed from its block and edges."""
    incoming = edges_to(body)
    stands_for: dict[Value, Value] = {}

    def settled(value: Value) -> Value:
        while value in stands_for:
            value = stands_for[value]
        return value

    has_changed = True
    while has_changed:
        has_changed = False
        for block in body.blocks[1:]:
            edges = incoming[block]
            for index in reversed(range(len(block.parameters))):
                parameter = block.parameters[index]
                values = {settled(edge.arguments[index]) for edge in edges} - {parameter}
                if len(values) != 1:
                    continue
                stands_for[parameter] = values.pop()
                _remove_parameter(block, index, edges)
                has_changed = True
            same: dict[tuple[Value | None, ...], Parameter] = {}
            for parameter in [*block.parameters] if edges else ():
                index = block.parameters.index(parameter)
                values_ = (settled(edge.arguments[index]) for edge in edges)
                key = tuple([None if value is parameter else value for value in values_])
                first = same.setdefault(key, parameter)
                if first is not parameter:
                    stands_for[parameter] = first
                    _remove_parameter(block, index, edges)
                    has_changed = True
    return {parameter: settled(parameter) for parameter in stands_for}


def _remove_parameter(block: Block, index: int, edges: Iterable[Edge]) -> None:
    del block.parameters[index]
    for edge in edges:
        del edge.arguments[index]


def _remove_dead(body: Body) -> None:
    """Remove operations and parameters on which no effect depends."""
    live, missed = _live(body)
    incoming = edges_to(body)
    positions = {
        parameter: (block, index)
        for block in body.blocks[1:]
        for index, parameter in enumerate(block.parameters)
    }
    worklist: list[Value] = []

    def use(values: Iterable[Value]) -> None:
        for value in values:
            if value not in live:
                live.add(value)
                worklist.append(value)

    for edge in missed:
        use(_passed(edge, live))
    while worklist:
        value = worklist.pop()
        if isinstance(value, Operation):
            use(value.uses())
        elif isinstance(value, Parameter) and value in positions:
            block, index = positions[value]
            use(edge.arguments[index] for edge in incoming[block])
    for block in body.blocks:
        block.operations = [operation for operation in block.operations if operation in live]
    for block in body.blocks[1:]:
        remaining = [index for index, p in enumerate(block.parameters) if p in live]
        if len(remaining) < len(block.parameters):
            block.parameters = [block.parameters[index] for index in remaining]
            for edge in incoming[block]:
                edge.arguments = [edge.arguments[index] for index in remaining]


def _live(body: Body) -> tuple[set[Value], list[Edge]]:
    """The values on which effects depend, but for what back edges pass; and these edges.

    Blocks come after their predecessors, so one sweep against their order sees all other uses of a
    value before the value.
    """
    live: set[Value] = set(body.blocks[0].parameters)
    swept: set[Block] = set()
    missed: list[Edge] = []
    for block in reversed(body.blocks):
        end = block.end
        live.update(end.arguments)
        if end.state is not None:
            live.update(end.state.uses())
        for edge in end.edges:
            if edge.block in swept:
                live.update(_passed(edge, live))
            else:
                missed.append(edge)
        swept.add(block)
        for operation in reversed(block.operations):
            if operation in live or operation.type is None or operation.name in EFFECTS:
                live.add(operation)
                live.update(operation.arguments)
                if operation.state is not None:
                    live.update(operation.state.uses())
    return live, missed


def _passed(edge: Edge, live: set[Value]) -> list[Value]:
    """The values that an edge passes to live parameters."""
    pairs = zip(edge.block.parameters, edge.arguments, strict=True)
    return [argument for parameter, argument in pairs if parameter in live]
