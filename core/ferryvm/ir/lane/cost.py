# SPDX-License-Identifier: Apache-2.0
"""The estimated time of eight items, one by one and in lanes.

Cycles of a processor with vectors of eight words, by throughput; ten iterations of each loop. Only
the ratio counts. Lanes lose where most of the work is gathers, scatters and divisions of integers,
which are done for each lane in turn, and cost more than loads, stores and divisions.
"""

from __future__ import annotations

from ferryvm.ir.function_body import function_body
from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.operation import DIVISIONS, UPDATES
from ferryvm.isa.pure_function import PureFunction

ITERATIONS = 10

_GATHER = 44.0
"""Of eight lanes; 8 on processors of Intel, 40 on those of AMD."""

_SLOW_FLOATS = frozenset({"fdiv", "fsqrt"})
_FLOATS = frozenset({"fadd", "fsub", "fmul", "ffma"})
_GATHERS = frozenset(
    [
        "field_each",
        "field_store_each",
        "header_each",
        "heap_load_each",
        "heap_store_each",
        "load_each",
        "store_each",
    ]
)
_UPDATE = 80.0
"""Of an atomic update, eight times; in lanes each has to be taken out of the vectors, too."""

_BRANCH = 16.0
"""Of a branch that differs from item to item, so that some of eight are predicted wrong."""

_LEAVES = 5
"""Iterations of a loop of which a lane leaves it in one."""

_LATENCY = 32.0
"""Of an iteration that waits for a float of the one before, eight times."""


def ratio(item: Body, lanes: Body) -> float:
    """The time of items in lanes, by their body of lanes, to that of items one by one."""
    varying = max(0.0, _branches(item) - _branches(lanes))
    return _of_lanes(lanes) / max(_of_items(item) + _BRANCH * varying, 1.0)


def _branches(body: Body) -> float:
    """The number of times that branches are decided; in a body of lanes, uniform ones."""
    weights = zip(_weights(body), body.blocks, strict=True)
    return sum(weight for weight, block in weights if len(block.end.edges) > 1)


def _weights(body: Body) -> list[float]:
    """The number of times that each block runs."""
    found = [1.0] * len(body.blocks)
    for loop in find_loops(body):
        for place in loop.places:
            found[place] *= ITERATIONS
    return found


def _of_items(item: Body) -> float:
    blocks = [sum(map(_one_by_one, block.operations)) for block in item.blocks]
    for loop in find_loops(item):
        is_recurrent = any(_is_float(p) for p in loop.header.parameters)
        if loop.is_innermost and is_recurrent:
            waiting = _LATENCY - sum(blocks[place] for place in loop.places)
            blocks[loop.head] += max(0.0, waiting)
    return sum(weight * cost for weight, cost in zip(_weights(item), blocks, strict=True))


def _is_float(parameter: Parameter) -> bool:
    return parameter.word_type.is_float


def _one_by_one(operation: Operation) -> float:
    """Cycles of an operation of eight items."""
    if operation.name in DIVISIONS:
        return 6.0 if isinstance(operation.arguments[1], Constant) else 80.0
    if operation.name in _SLOW_FLOATS:
        return 32.0
    if operation.name in UPDATES:
        return _UPDATE
    if operation.name == "apply":
        return 4.0 * _size(operation)
    if operation.name.endswith(("load", "store")) or operation.name in _FLOATS:
        return 4.0
    return 2.0


def _of_lanes(lanes: Body) -> float:
    assert lanes.varying is not None
    total, rare = 0.0, _leaving(lanes)
    for weight, block in zip(_weights(lanes), lanes.blocks, strict=True):
        if block in rare:
            weight /= _LEAVES
        for operation in block.operations:
            is_each = operation in lanes.varying
            total += weight * (_in_lanes(operation) if is_each else _once(operation))
    return total


def _leaving(lanes: Body) -> set[Block]:
    """The blocks that run only in iterations in which a lane leaves a loop."""
    return {
        block.end.edges[0].block
        for block in lanes.blocks
        if isinstance(p := next(iter(block.end.arguments), None), Operation)
        and p.name == "any_lane"
        and not block.end.edges[0].is_back
    }


def _once(operation: Operation) -> float:
    """Cycles of a uniform operation, or of one that yields nothing."""
    if operation.name in _GATHERS:
        return _GATHER
    if operation.name == "update_each":
        return 1.2 * _UPDATE
    return 10.0 if operation.name in DIVISIONS else 0.5


def _in_lanes(operation: Operation) -> float:
    """Cycles of an operation of eight lanes."""
    if operation.name in _GATHERS:
        return _GATHER
    if operation.name in _SLOW_FLOATS:
        return 16.0
    if operation.name == "apply":
        return 1.0 * _size(operation)
    if operation.name in DIVISIONS:
        first, second = operation.arguments
        if isinstance(second, Constant):
            return 4.0
        is_ramp = isinstance(first, Operation) and first.name == "ramp"
        return 15.0 if is_ramp else 96.0
    return 0.0 if operation.name == "ramp" else 1.0


def _size(operation: Operation) -> int:
    """The number of operations of a function that is applied."""
    return len(function_body(operation.fact(0, PureFunction)).operations)
