# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a body: predecessors, dominators, natural loops.

Made anew by whoever needs it: a body has a few dozen blocks, and passes change them. Blocks are
called by their places in `body.blocks`, which are in the order that `Body` states.
"""

from __future__ import annotations

import itertools

from ferryvm.flowgraph.dominance import DominatorTree, Span
from ferryvm.flowgraph.loop import NaturalLoop, find_loops, latches_by_head
from ferryvm.ir.graph import Block, Body, Edge, Operation, Value

_CHEAP = 32
"""Operations of a loop whose polls cost 1. Twice as many, twice the price: what is between two
looks at the interrupt flag is some 10^5 operations, however long the loops are."""


Loop = NaturalLoop


class Flow:
    """The blocks of a body as a graph."""

    def __init__(self, body: Body) -> None:
        """Needs terminators, and every block reachable in an order as `Body` states it."""
        self.blocks: list[Block] = body.blocks
        self.places = {block: place for place, block in enumerate(body.blocks)}
        self.incoming: list[list[tuple[int, Edge]]] = [[] for _ in body.blocks]
        """The edges to each block, each with the number of its source."""
        for place, block in enumerate(body.blocks):
            for edge in block.end.edges:
                self.incoming[self.places[edge.block]].append((place, edge))
        self._predecessors = [[source for source, _ in edges] for edges in self.incoming]
        self._dominators = DominatorTree(self._predecessors)

    def dominates(self, a: int, b: int) -> bool:
        """True if control must pass block `a` to get to block `b`; a block dominates itself."""
        return self._dominators.dominates(a, b)

    def span(self, place: int) -> Span:
        """The range of a block's subtree in the preorder of the dominator tree."""
        return self._dominators.span(place)

    def preorder(self) -> list[int]:
        """All block numbers in preorder of the dominator tree."""
        return self._dominators.preorder()

    def only_edge(self, place: int) -> tuple[int, Edge] | None:
        """The predecessor of a block that has exactly one."""
        incoming = self.incoming[place]
        return incoming[0] if len(incoming) == 1 else None

    def homes(self) -> dict[Value, int]:
        """The number of the block that defines each value."""
        return {
            value: place
            for place, block in enumerate(self.blocks)
            for value in (*block.parameters, *block.operations)
        }

    def loops(self) -> list[Loop]:
        """The natural loops, inner loops before outer ones."""
        latches, _ = latches_by_head(self._predecessors, self._dominators)
        loops, _ = find_loops(Loop, latches, self._predecessors, range(len(self.blocks)))
        return sorted(loops, key=lambda loop: loop.head, reverse=True)


def poll_costs(body: Body) -> dict[Operation, int]:
    """The cost of each poll of a body, in units of `POLL_BUDGET`, by the length of its loop.

    All blocks of a loop stand between its head and the block that goes back to it; what else stands
    there may count, too.
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
