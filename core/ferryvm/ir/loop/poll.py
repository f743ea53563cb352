# SPDX-License-Identifier: Apache-2.0
"""The cost of polls: the part of the time between two checks of the interrupt flag that each one
takes."""

from __future__ import annotations

import itertools

from ferryvm.ir.graph import Body, Operation

_CHEAP = 32
"""The number of operations of a loop whose polls cost 1; the cost is proportional. Some 10^5
operations run between two checks of the interrupt flag, whatever the length of the loops."""


def poll_costs(body: Body) -> dict[Operation, int]:
    """The cost of each poll of a body, in units of `POLL_BUDGET`, by the length of its loop.

    All blocks of a loop are between its header and its latch in the order; other blocks between
    them may count, too, so no loop has to be found.
    """
    places = {block: place for place, block in enumerate(body.blocks)}
    ends = list(itertools.accumulate(len(block.operations) for block in body.blocks))
    costs = {}
    for place, block in enumerate(body.blocks):
        heads = [places[edge.block] for edge in block.end.edges if edge.is_back]
        for operation in block.operations:
            if operation.name == "poll" and heads:
                length = ends[place] - ends[min(heads)] + len(body.blocks[min(heads)].operations)
                costs[operation] = max(1, length // _CHEAP)
    return costs
