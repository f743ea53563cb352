# SPDX-License-Identifier: Apache-2.0
"""The way through a region: which blocks its body has, in which order, and how they are joined.

A body has one entry. Where that is the head of a loop inside others that belong to the region too,
control comes in somewhere in the middle of their iterations, and a graph with all blocks once would
have loops with two entries. So what remains of each such iteration is there a second time:

    entry ─> inner loop ─> rest of the outer iteration ─┐        level 1: one outer loop not yet
                ┌───────────────────────────────────────┘                 gone round
                └─> outer head ─> inner loop ─> rest ─┐           level 0: whole loops
                        ▲─────────────────────────────┘

*Level* is the number of loops around the entry whose head control has not come to yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from ferryvm.isa import INSTRUCTIONS
from ferryvm.isa.table import Flow
from ferryvm.region.graph import graph
from ferryvm.region.loop import Loop
from ferryvm.region.region import Region
from ferryvm.verify import Verified

Ways = frozenset[tuple[int, int]]
"""Ways of control, each from the branch at one pc to another pc."""


class Node(NamedTuple):
    """A basic block on the way."""

    pc: int
    level: int


class Route:
    """The blocks of a body as a graph with one entry."""

    def __init__(
        self,
        verified: Verified,
        function: int,
        entry: int,
        pcs: Collection[int] | None = None,
        unseen: Ways = frozenset(),
    ) -> None:
        """`pcs`: the instructions that belong to the region; all of the function's if None."""
        self._unseen = unseen
        self.function, self.entry = function, entry
        self._graph = graph(verified, function)
        self._flows = [INSTRUCTIONS[o].flow for o in verified.program.code["opcode"].tolist()]
        self.pcs = pcs if pcs is not None else self._all()
        self._partial: list[Loop] = []
        """Loops around the entry that belong to the region, outermost first, but one that starts
        there."""
        loop = self._graph.loop_at(entry)
        while loop is not None:
            if loop.head != entry and loop.head in self.pcs:
                self._partial.insert(0, loop)
            loop = loop.parent
        self.nodes: list[Node] = []
        """In reverse postorder, the entry first."""
        self._order_nodes()

    @classmethod
    def of_region(cls, region: Region, unseen: Ways = frozenset()) -> Route:
        """The way through a region."""
        return cls(region.verified, region.function, region.entry, region.pcs, unseen)

    def _all(self) -> set[int]:
        found: set[int] = set()
        for block in self._graph.blocks.values():
            found.update(range(block.first, block.last + 1))
        return found

    def _order_nodes(self) -> None:
        first = Node(self.entry, len(self._partial))
        seen = {first}
        finished: list[Node] = []
        sources: dict[Node, int] = {first: 1}
        path: list[tuple[Node, Iterator[Node]]] = [(first, iter(self._successors(first)))]
        while path:
            node, onward = path[-1]
            for to in onward:
                sources[to] = sources.get(to, 0) + 1
                if to not in seen:
                    seen.add(to)
                    path.append((to, iter(self._successors(to))))
                    break
            else:
                finished.append(node)
                path.pop()
        self.nodes = finished[::-1]
        self._places = {node: place for place, node in enumerate(self.nodes)}
        self._sources = sources

    @property
    def has_loop(self) -> bool:
        """Whether control can come to a node twice."""
        return any(self.is_back(node, to) for node in self.nodes for to in self._successors(node))

    def last(self, node: Node) -> int:
        """pc of the last instruction of a node: of its block, or before what is not in the region.

        A host call ends it too: control comes back to an interpreter.
        """
        end = self._graph.block(node.pc).last
        pc = node.pc
        while pc < end and self._flows[pc] is not Flow.HOST and pc + 1 in self.pcs:
            pc += 1
        return pc

    def _successors(self, node: Node) -> list[Node]:
        last = self.last(node)
        if self._flows[last] is Flow.HOST:
            return []
        block = self._graph.block(node.pc)
        targets = block.successors if last == block.last else (last + 1,)
        targets = self.taken(last, targets)
        # The last one is followed first: then a block stands before the target of its branch.
        found = [self.onward(node, pc) for pc in reversed(targets)]
        return [to for to in found if to is not None]

    def taken(self, pc: int, targets: tuple[int, ...]) -> tuple[int, ...]:
        """The targets of the instruction at a pc; of a branch, unless all are, without one that is
        left out."""
        if self._flows[pc] is not Flow.BRANCH:
            return targets
        seen = tuple(target for target in targets if (pc, target) not in self._unseen)
        return seen or targets

    def onward(self, node: Node, pc: int) -> Node | None:
        """Where control is at `pc` when it comes from a node; None outside the region."""
        if pc not in self.pcs:
            return None
        level = node.level
        block = self._graph.block(pc).first
        while level:
            loop = self._partial[level - 1]
            if block in loop.blocks and pc != loop.head:
                break
            level -= 1
        return Node(pc, level)

    def is_join(self, node: Node) -> bool:
        """Whether control comes to a node in more than one way."""
        return self._sources[node] > 1

    def is_back(self, source: Node, target: Node) -> bool:
        """Whether the way from one to the other goes backward: every cycle has such an edge."""
        return self._places[target] <= self._places[source]
