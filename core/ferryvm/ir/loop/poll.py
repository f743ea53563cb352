# SPDX-License-Identifier: Apache-2.0
"""The cost of polls: the part of the time between two checks of the interrupt flag that each one
takes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ferryvm.ir.graph import Block, Body, Module, Operation
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.operation import POLL_BUDGET, TRANSFERS

_CHEAP = 32
"""The number of operations of a loop whose polls cost 1; the cost is proportional. Some 10^5
operations run between two checks of the interrupt flag, whatever the length of the loops."""


MOST_UNPOLLED = 1 << 18
"""Operations of a loop without a poll, at most: some 0.1 ms."""

_MOST_ITERATIONS = 1024
"""Iterations of a loop without a poll, at most."""


class ShortLoops(NamedTuple):
    """The loops of parallel regions that end soon, and so need no polls."""

    polls: frozenset[Operation]
    """Theirs."""
    times: dict[Block, int]
    """The executions of each of their blocks each time that the outermost of them is entered, at
    most."""


def short_loops(body: Body, lengthy: Collection[int] = ()) -> ShortLoops:
    """The loops of parallel regions whose numbers of iterations are constant, and small."""
    polls, times = set[Operation](), dict[Block, int]()
    if not any(o.name == "poll" and o.exit.phase for o in body.operations):
        return ShortLoops(frozenset(), times)
    for loop in find_loops(body):
        latches = [loop.graph.blocks[place].operations[-1:] for place in loop.latches]
        own = [o for last in latches for o in last if o.name == "poll" and o.exit.phase]
        variable = find_induction_variable(loop)
        if variable is None or len(own) < len(latches):
            continue
        trips = variable.constant_trip_count(_MOST_ITERATIONS)
        work = sum(len(block.operations) * times.get(block, 1) for block in loop.members)
        is_long = trips is None or trips > _MOST_ITERATIONS or trips * work > MOST_UNPOLLED
        if trips is None or is_long or _is_lengthy(loop.operations, lengthy):
            continue
        polls.update(own)
        for block in loop.members:
            times[block] = times.get(block, 1) * max(trips, 1)
    return ShortLoops(frozenset(polls), times)


def poll_costs(
    body: Body, lengthy: Collection[int] = (), times: Mapping[Block, int] | None = None
) -> dict[Operation, int]:
    """The cost of each poll of a body, in units of `POLL_BUDGET`, by the length of its loop.

    All blocks of a loop are between its header and its latch in the order; other blocks between
    them may count, too, so no loop has to be found. A poll after a host call, a fill or a copy
    costs the whole budget, because the duration of these is unknown. `lengthy`: functions that
    perform them; `times`: executions of blocks, where they are known to be several.
    """
    times = times or {}
    places = {block: place for place, block in enumerate(body.blocks)}
    lengths = [len(block.operations) * times.get(block, 1) for block in body.blocks]
    ends = list(itertools.accumulate(lengths))
    slow = [_is_lengthy(block.operations, lengthy) for block in body.blocks]
    costs = {}
    for place, block in enumerate(body.blocks):
        heads = [places[edge.block] for edge in block.end.edges if edge.is_back]
        if not heads and body.lanes:
            heads = _loop_around(body, places, place)
        for operation in block.operations:
            if operation.name == "poll" and heads:
                length = ends[place] - ends[min(heads)] + lengths[min(heads)]
                is_slow = any(slow[min(heads) : place + 1])
                cost = POLL_BUDGET if is_slow else max(1, length // _CHEAP)
                costs[operation] = min(cost, POLL_BUDGET)
    return costs


def _loop_around(body: Body, places: Mapping[Block, int], place: int) -> list[int]:
    """The header of the shortest loop around a block of a loop in lanes, whose poll may be in front
    of its last block; a list of at most one place."""
    found = [
        (last - places[edge.block], places[edge.block])
        for last, block in enumerate(body.blocks)
        for edge in block.end.edges
        if edge.is_back and places[edge.block] <= place <= last
    ]
    return [min(found)[1]] if found else []


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
