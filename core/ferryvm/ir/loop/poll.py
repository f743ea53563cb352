# SPDX-License-Identifier: Apache-2.0
"""The cost of polls: the part of the time between two checks of the interrupt flag that each one
takes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable

from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.ir.operation import POLL_BUDGET, TRANSFERS

_CHEAP = 32
"""The number of operations of a loop whose polls cost 1; the cost is proportional. Some 10^5
operations run between two checks of the interrupt flag, whatever the length of the loops."""


def poll_costs(body: Body, lengthy: Collection[int] = ()) -> dict[Operation, int]:
    """The cost of each poll of a body, in units of `POLL_BUDGET`, by the length of its loop.

    All blocks of a loop are between its header and its latch in the order; other blocks between
    them may count, too, so no loop has to be found. A poll after a host call, a fill or a copy costs
    the whole budget, because the duration of these is unknown. `lengthy`: functions that perform
    them.
    """
    places = {block: place for place, block in enumerate(body.blocks)}
    ends = list(itertools.accumulate(len(block.operations) for block in body.blocks))
    slow = [_is_lengthy(block.operations, lengthy) for block in body.blocks]
    costs = {}
    for place, block in enumerate(body.blocks):
        heads = [places[edge.block] for edge in block.end.edges if edge.is_back]
        for operation in block.operations:
            if operation.name == "poll" and heads:
                length = ends[place] - ends[min(heads)] + len(body.blocks[min(heads)].operations)
                is_slow = any(slow[min(heads) : place + 1])
                costs[operation] = POLL_BUDGET if is_slow else max(1, length // _CHEAP)
    return costs


def lengthy_functions(module: Module) -> frozenset[int]:
    """The functions of a module that call a host function, fill or copy elements, or call a
    function that does."""
    found: set[int] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for number, body in module.functions.items():
            if _is_lengthy(body.operations, found):
                found.add(number)
    return frozenset(found)


def _is_lengthy(operations: Iterable[Operation], lengthy: Collection[int]) -> bool:
    for operation in operations:
        callees: Collection[int] = ()
        if operation.name == "call":
            callees = (operation.fact(0, int),)
        elif operation.name == "call_indirect":
            callees = operation.fact(0, tuple)
        if operation.name == "call_host" or operation.name in TRANSFERS:
            return True
        if any(callee in lengthy for callee in callees):
            return True
    return False
