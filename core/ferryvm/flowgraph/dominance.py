# SPDX-License-Identifier: Apache-2.0
"""Dominators of a flow graph.

Node `a` dominates node `b` if every path from the entry to `b` passes `a`. Nodes are numbered in an
order in which each one comes after its predecessors, except along back edges: a reverse postorder
is such an order. The entry is 0.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Interval = tuple[int, int]
"""The range of a node's subtree in the preorder of the dominator tree: from, and past."""


class DominatorTree:
    """The dominator tree of a flow graph. Each node dominates itself."""

    def __init__(self, predecessors: Sequence[Sequence[int]]) -> None:
        """`predecessors`: the predecessors of each node.

        Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001. The first iteration uses
        forward edges. Back edges change nothing if each one's head dominates its tail, so
        iterations up to the fixed point are made only if some head does not.
        """
        self._parents = _parents(predecessors)
        self._intervals = _intervals(self._parents)
        if not all(
            source < node or self.dominates(node, source)
            for node, sources in enumerate(predecessors)
            for source in sources
        ):
            while _improve(self._parents, predecessors):
                pass
            self._intervals = _intervals(self._parents)

    def dominates(self, a: int, b: int) -> bool:
        """True if every path from the entry to `b` passes `a`."""
        first, past = self._intervals[a]
        return first <= self._intervals[b][0] < past

    def parent(self, node: int) -> int:
        """The immediate dominator of a node; the entry's is itself."""
        return self._parents[node]

    def interval(self, node: int) -> Interval:
        """The range of a node's subtree in the preorder."""
        return self._intervals[node]

    def preorder(self) -> list[int]:
        """All nodes in preorder."""
        return sorted(range(len(self._intervals)), key=lambda node: self._intervals[node][0])


def _parents(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """The immediate dominators in the graph of forward edges alone."""
    parents = [-1] * len(predecessors)
    parents[0] = 0
    _improve(parents, predecessors)
    return parents


def _improve(parents: list[int], predecessors: Sequence[Sequence[int]]) -> bool:
    """One iteration over all nodes but the entry; True if it changed anything."""
    has_changed = False
    for node in range(1, len(predecessors)):
        meeting = _meet(parents, [each for each in predecessors[node] if parents[each] >= 0])
        has_changed = has_changed or parents[node] != meeting
        parents[node] = meeting
    return has_changed


def _meet(parents: list[int], nodes: list[int]) -> int:
    """The closest common ancestor of some nodes.

    The largest node moves up first, and paths that have met continue as one: following them pair by
    pair would take quadratic time for a thousand branches to one block.
    """
    if len(nodes) == 1:  # the common case in the IR
        return nodes[0]
    seen = set(nodes)
    latest = [-node for node in seen]
    heapq.heapify(latest)
    while len(latest) > 1:
        node = parents[-latest[0]]
        if node in seen:
            heapq.heappop(latest)
        else:
            seen.add(node)
            heapq.heapreplace(latest, -node)
    return -latest[0]


def _intervals(parents: Sequence[int]) -> list[Interval]:
    count = len(parents)
    sizes = [1] * count
    for node in range(count - 1, 0, -1):  # a node comes before the nodes that it dominates
        sizes[parents[node]] += sizes[node]
    first, free = [0] * count, [1] * count
    for node in range(1, count):
        first[node] = free[parents[node]]
        free[parents[node]] += sizes[node]
        free[node] = first[node] + 1
    return [(start, start + size) for start, size in zip(first, sizes, strict=True)]
