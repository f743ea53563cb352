# SPDX-License-Identifier: Apache-2.0
"""The natural loops of a body: one object describes a loop for all passes.

    source ──entry──> header ──> … ──> latch ──back edge──> header
                        └──exit──>          └──> tail (a trap, say)

`ferryvm.flowgraph.loop` finds them. Blocks are numbered as in the control-flow graph, which is that
of the body when the loops were found.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.flowgraph.loop import NaturalLoop, find_natural_loops, latches_by_head
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body, Edge, Operation, Value


class IncomingEdge(NamedTuple):
    """An edge, with the place of the block from which it leads."""

    source: int
    edge: Edge


@dataclasses.dataclass(eq=False)
class Loop(NaturalLoop):
    """A natural loop of a body."""

    graph: ControlFlowGraph = dataclasses.field(repr=False)
    entries: list[IncomingEdge] = dataclasses.field(init=False, repr=False)
    """The edges that enter it."""
    back_edges: list[IncomingEdge] = dataclasses.field(init=False, repr=False)
    """The edges from its latches to its header."""

    def __post_init__(self) -> None:
        self.entries, self.back_edges = [], []
        for source, edge in self.graph.incoming[self.head]:
            edges = self.back_edges if source in self.latches else self.entries
            edges.append(IncomingEdge(source, edge))

    @property
    def header(self) -> Block:
        """The block at which it is entered."""
        return self.graph.blocks[self.head]

    @functools.cached_property
    def places(self) -> list[int]:
        """The places of its blocks, in rising order, including those of inner loops."""
        return sorted(self.blocks)

    @functools.cached_property
    def members(self) -> list[Block]:
        """Its blocks, in the order of the body."""
        return [self.graph.blocks[place] for place in self.places]

    @property
    def operations(self) -> Iterator[Operation]:
        """Its operations except terminators."""
        for block in self.members:
            yield from block.operations

    # --- edges ------------------------------------------------------------------------------

    @property
    def entry(self) -> IncomingEdge | None:
        """The only edge that enters it; `code_motion` ensures that there is one."""
        return self.entries[0] if len(self.entries) == 1 else None

    @property
    def back_edge(self) -> IncomingEdge | None:
        """Its back edge, if it has only one."""
        return self.back_edges[0] if len(self.back_edges) == 1 else None

    @property
    def preheader(self) -> Block:
        """The source of its only entry."""
        (entry,) = self.entries
        return self.graph.blocks[entry.source]

    @property
    def latch(self) -> Block:
        """The source of its only back edge."""
        (edge,) = self.back_edges
        return self.graph.blocks[edge.source]

    @functools.cached_property
    def tails(self) -> list[int]:
        """The places of the blocks that are reached only from it and lead nowhere, such as
        traps."""
        graph = self.graph
        targets = {graph.places[edge.block] for block in self.members for edge in block.end.edges}
        return sorted(
            place
            for place in targets - self.blocks
            if not graph.blocks[place].end.edges
            and self.blocks.issuperset(graph.predecessors[place])
        )

    @functools.cached_property
    def extent(self) -> list[Block]:
        """Its blocks and its tails, in the order of the body."""
        return [self.graph.blocks[place] for place in sorted([*self.places, *self.tails])]

    @functools.cached_property
    def exits(self) -> list[Edge]:
        """The edges out of its extent, at which control continues."""
        own = set(self.extent)
        return [edge for block in self.extent for edge in block.end.edges if edge.block not in own]

    @property
    def has_one_exit(self) -> bool:
        """True if all exits lead to one block, which is not the head of a loop."""
        return len({edge.block for edge in self.exits}) <= 1 and not any(
            edge.is_back for edge in self.exits
        )

    # --- values -----------------------------------------------------------------------------

    def is_invariant(self, value: Value) -> bool:
        """True if a value is defined outside the loop, and so is the same in each iteration."""
        return self.graph.definitions.get(value) not in self.blocks


def find_loops(body: Body) -> list[Loop]:
    """The loops of a body, inner loops before outer ones."""
    for block in body.blocks:
        for edge in block.end.edges:
            if edge.is_back:
                return loops_of(ControlFlowGraph(body))
    return []


def loops_of(graph: ControlFlowGraph) -> list[Loop]:
    """The loops of a graph, inner loops before outer ones."""
    latches, _ = latches_by_head(graph.predecessors, graph.dominators)
    if not latches:
        return []
    make = functools.partial(Loop, graph=graph)
    loops, _ = find_natural_loops(make, latches, graph.predecessors, range(len(graph.blocks)))
    return sorted(loops, key=lambda loop: loop.head, reverse=True)
