# SPDX-License-Identifier: Apache-2.0
"""The traversal of a region: the blocks of its body, their order, and the edges between them.

A body has one entry. If that is the head of a loop inside other loops of the region, control enters
in the middle of their iterations, and a graph with each block once would have loops with two
entries. So the rest of each such iteration is duplicated:

    entry ─> inner loop ─> rest of the outer iteration ─┐        level 1: one outer loop whose
                ┌───────────────────────────────────────┘                 head is to come
                └─> outer head ─> inner loop ─> rest ─┐           level 0: whole loops
                        ▲─────────────────────────────┘

*Level* is the number of loops around the entry whose head control has not reached yet.

An irreducible cycle of the bytecode has no head. It gets one, a `Dispatch`
(`ferryvm.flowgraph.reducible`), to which control is redirected, with the number of the target node.
So every cycle of a body is a natural loop.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from ferryvm.flowgraph.reducible import dispatches
from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.isa.table import Flow
from ferryvm.region.code import FLOWS, code
from ferryvm.region.graph import graph
from ferryvm.region.loop import Loop
from ferryvm.region.region import Region
from ferryvm.verify import Verified

UnseenEdges = frozenset[tuple[int, int]]
"""Edges that were never taken, each from the branch at one pc to another pc."""


class OrderedBlock(NamedTuple):
    """A basic block in the traversal."""

    pc: int
    level: int


@dataclasses.dataclass(frozen=True, eq=False)
class Dispatch:
    """The new head of a cycle with several entries."""

    targets: tuple[OrderedBlock, ...]
    """Its targets, whose only predecessor it is."""

    @functools.cached_property
    def numbers(self) -> dict[OrderedBlock, int]:
        """The number of each target."""
        return {target: number for number, target in enumerate(self.targets)}


Stop = OrderedBlock | Dispatch
"""A node of the traversal; each becomes a block of the body."""


class RegionOrder:
    """The blocks of a body as a graph with one entry."""

    def __init__(
        self,
        verified: Verified,
        function: int,
        entry: int,
        pcs: Collection[int] | None = None,
        unseen: UnseenEdges = frozenset(),
        natives: Collection[int] = (),
    ) -> None:
        """`pcs`: the instructions of the region; all of the function's if None. `natives`: host
        imports that return to compiled code."""
        self._unseen, self._natives, self._code = unseen, natives, code(verified)
        self.function, self.entry = function, entry
        self._graph = graph(verified, function)
        self._opcodes = self._code.opcodes
        self.pcs = pcs if pcs is not None else self._all()
        self._partial: list[Loop] = []
        """Loops of the region around the entry, outermost first, except one that starts there."""
        loop = self._graph.loop_at(entry)
        while loop is not None:
            if loop.head != entry and loop.head in self.pcs:
                self._partial.insert(0, loop)
            loop = loop.parent
        self.first = OrderedBlock(entry, len(self._partial))
        """The entry of the region."""
        self._dispatches: dict[OrderedBlock, Dispatch] = {}
        """Nodes that are entered through a dispatch."""
        self._order()
        if self._graph.irreducible:
            self._make_reducible()

    @classmethod
    def of_region(
        cls, region: Region, unseen: UnseenEdges = frozenset(), natives: Collection[int] = ()
    ) -> RegionOrder:
        """The traversal of a region."""
        return cls(region.verified, region.function, region.entry, region.pcs, unseen, natives)

    def _all(self) -> set[int]:
        found: set[int] = set()
        for block in self._graph.blocks.values():
            found.update(range(block.first, block.last + 1))
        return found

    def _order(self) -> None:
        first = self.stop(self.first)
        self._onward: dict[Stop, list[Stop]] = {}

        def successors(stop: Stop) -> list[Stop]:
            found = self._onward[stop] = self._successors(stop)
            return found

        self.stops: list[Stop] = reverse_postorder(first, successors)
        """In reverse postorder, the entry first."""
        self._places = {stop: place for place, stop in enumerate(self.stops)}
        self._sources = Counter(to for found in self._onward.values() for to in found)
        self._sources[first] += 1

    def _make_reducible(self) -> None:
        """Insert a dispatch into each cycle with several entries."""
        nodes = [stop for stop in self.stops if isinstance(stop, OrderedBlock)]
        onward = [[self._places[to] for to in self._onward[node]] for node in nodes]
        for group in dispatches(onward):
            dispatch = Dispatch(tuple(nodes[place] for place in group))
            self._dispatches.update(dict.fromkeys(dispatch.targets, dispatch))
        if self._dispatches:
            self._order()

    @property
    def has_loop(self) -> bool:
        """True if there is a cycle."""
        return any(self.is_back(stop, to) for stop in self.stops for to in self._onward[stop])

    def stop(self, node: OrderedBlock) -> Stop:
        """The target of edges to a node: itself, or the dispatch that leads to it."""
        return self._dispatches.get(node, node)

    def last(self, node: OrderedBlock) -> int:
        """pc of the last instruction of a node: of its block, or before one outside of the region.

        A host call at which control leaves ends a node, too, because control returns to an
        interpreter.
        """
        end = self._graph.block(node.pc).last
        pc = node.pc
        while pc < end and not self.leaves_for_host(pc) and pc + 1 in self.pcs:
            pc += 1
        return pc

    def leaves_for_host(self, pc: int) -> bool:
        """True for a host call at which control leaves: of a non-native function. A native one
        throws nothing; the host function called in its place does so in the engine."""
        is_host = FLOWS[self._opcodes[pc]] is Flow.HOST
        return is_host and self._code.immediates[pc] not in self._natives

    def _successors(self, node: Stop) -> list[Stop]:
        if isinstance(node, Dispatch):
            return [*node.targets]
        last = self.last(node)
        if self.leaves_for_host(last):
            return []
        block = self._graph.block(node.pc)
        targets = block.successors if last == block.last else (last + 1,)
        targets = self.taken(last, targets)
        # The last one is visited first, so that a block comes before the target of its branch.
        found = [self.onward(node, pc) for pc in reversed(targets)]
        return [self.stop(to) for to in found if to is not None]

    def taken(self, pc: int, targets: tuple[int, ...]) -> tuple[int, ...]:
        """The targets of the instruction at a pc; for a branch without the omitted ones, unless all
        are omitted."""
        if FLOWS[self._opcodes[pc]] is not Flow.BRANCH:
            return targets
        seen = tuple(target for target in targets if (pc, target) not in self._unseen)
        return seen or targets

    def onward(self, node: OrderedBlock, pc: int) -> OrderedBlock | None:
        """The node of `pc` if control comes from a node; None outside the region."""
        if pc not in self.pcs:
            return None
        level = node.level
        block = self._graph.block(pc).first
        while level:
            loop = self._partial[level - 1]
            if block in loop.blocks and pc != loop.head:
                break
            level -= 1
        return OrderedBlock(pc, level)

    def is_join(self, stop: Stop) -> bool:
        """True if more than one edge leads there."""
        return self._sources[stop] > 1

    def is_back(self, source: Stop, target: Stop) -> bool:
        """True for a backward edge from one to the other; every cycle has such an edge."""
        return self._places[target] <= self._places[source]
