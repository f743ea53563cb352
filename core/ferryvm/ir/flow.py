# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a body: predecessors, dominators, natural loops.

Made anew by whoever needs it: a body has a few dozen blocks, and passes change them. Blocks are
called by their places in `body.blocks`, which are in the order that `Body` states.
"""

from __future__ import annotations

import dataclasses
import itertools

from ferryvm.ir.graph import Block, Body, Edge, Operation, Value
from ferryvm.region.dominance import Span, dominators, within

_CHEAP = 32
"""Operations of a loop whose polls cost 1. Twice as many, twice the price: what is between two
looks at the interrupt flag is some 10^5 operations, however long the loops are."""


@dataclasses.dataclass(eq=False)
class Loop:
    """A natural loop."""

    head: int
    blocks: set[int]
    """Its head and all blocks from which a path inside leads back to it."""


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
        before = [[source for source, _ in edges] for edges in self.incoming]
        self.above, self._spans = dominators(before)
        """`above`: the closest block that control must pass on its way to each; the entry's is
        itself."""

    def dominates(self, a: int, b: int) -> bool:
        """True if control must pass block `a` to get to block `b`; a block dominates itself."""
        return within(self._spans, a, b)

    def span(self, place: int) -> Span:
        """The range of a block's subtree in the preorder of the dominator tree."""
        return self._spans[place]

    def preorder(self) -> list[int]:
        """All block numbers in preorder of the dominator tree."""
        return sorted(range(len(self.blocks)), key=lambda place: self._spans[place][0])

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
        found = []
        for head in reversed(range(len(self.blocks))):
            waiting = [
                place
                for place, edge in self.incoming[head]
                if edge.is_back and self.dominates(head, place)
            ]
            if waiting:
                inside = {head}
                while waiting:
                    place = waiting.pop()
                    if place not in inside:
                        inside.add(place)
                        waiting += [other for other, _ in self.incoming[place]]
                found.append(Loop(head, inside))
        return found


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
