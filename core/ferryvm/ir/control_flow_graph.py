# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a body: predecessors and dominators of its blocks.

Passes build it on demand: a body has a few dozen blocks, and passes change them. Blocks are
numbered by their places in the body, whose order `Body` defines. Loops are found by
`ferryvm.ir.loop.natural`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ferryvm.flowgraph.dominance import DominatorTree, Interval
from ferryvm.ir.graph import Block, Body, Edge, Value


class ControlFlowGraph:
    """The blocks of a body as a graph, a snapshot at the time of its creation."""

    def __init__(self, body: Body) -> None:
        """Needs terminators, and every block reachable in an order as `Body` states it."""
        self.blocks: list[Block] = [*body.blocks]
        self.places = {block: place for place, block in enumerate(body.blocks)}
        self.incoming: list[list[tuple[int, Edge]]] = [[] for _ in body.blocks]
        """The edges to each block, each with the place of the block from which it leads."""
        for place, block in enumerate(body.blocks):
            for edge in block.end.edges:
                self.incoming[self.places[edge.block]].append((place, edge))
        self.predecessors = [[source for source, _ in edges] for edges in self.incoming]
        self.dominators = DominatorTree(self.predecessors)

    def dominates(self, a: int, b: int) -> bool:
        """True if every path from the entry to block `b` passes block `a`; each dominates
        itself."""
        return self.dominators.dominates(a, b)

    def interval(self, place: int) -> Interval:
        """The range of a block's subtree in the preorder of the dominator tree."""
        return self.dominators.interval(place)

    def preorder(self) -> list[int]:
        """The places of all blocks in preorder of the dominator tree."""
        return self.dominators.preorder()

    def only_edge(self, place: int) -> tuple[int, Edge] | None:
        """The only edge to a block; None if there are several."""
        incoming = self.incoming[place]
        return incoming[0] if len(incoming) == 1 else None

    @functools.cached_property
    def definitions(self) -> dict[Value, int]:
        """The place of the block that defines each value. A pass that moves an operation changes
        it."""
        return {
            value: place
            for place, block in enumerate(self.blocks)
            for value in (*block.parameters, *block.operations)
        }


def edges_to(body: Body) -> dict[Block, list[Edge]]:
    """The edges that lead to each block, for passes that need only this part of the graph."""
    found: dict[Block, list[Edge]] = {block: [] for block in body.blocks}
    for edge in body.edges:
        found[edge.block].append(edge)
    return found


def reachable_from(starts: Iterable[Block]) -> set[Block]:
    """These blocks, and all to which control may come from them."""
    found, waiting = set[Block](), [*starts]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += [edge.block for edge in block.end.edges]
    return found


def remove_unreached(body: Body) -> None:
    """Remove the blocks to which nothing leads."""
    reached = reachable_from(body.blocks[:1])
    if len(reached) < len(body.blocks):
        body.blocks[:] = [block for block in body.blocks if block in reached]
