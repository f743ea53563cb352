# SPDX-License-Identifier: Apache-2.0
"""Make a graph reducible: cycles with several entries get a single one.

      ┌─> a ⇄ b <─┐               ┌──> dispatch <──┐      each edge to `a` or `b` goes to the dispatch,
      └── entry ──┘        ─>     │     │      │   │      which continues to the original target
                                entry   a ──┐  b ──┤
                                            └──────┘

In a reducible graph every cycle is a natural loop: it has a head that dominates all of it. Passes
of the region IR rely on that. Copying nodes would work, too, but takes exponential space (Carter,
Ferrante, Thomborson: Folklore Confirmed: Reducible Flow Graphs are Exponentially Larger, 2003).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ferryvm.flowgraph.component import components
from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.traversal import reverse_postorder

_ITERATIONS = 8
"""The largest depth of nested irreducible cycles that is resolved. After so many iterations every
remaining node is dispatched to, so the time is linear in the edges for all graphs."""


def dispatches(successors: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Groups of nodes that are each entered through a dispatch, so that no irreducible cycle
    remains.

    `successors`: the successors of each node; all nodes are reachable from node 0, which is the
    entry. Every edge to a node of a group, also from outside of the graph, has to go to the group's
    dispatch. No node is in two groups.
    """
    edges = [[*each] for each in successors]
    root = len(edges)
    edges.append([0])
    made: list[tuple[int, ...]] = []
    for number in itertools.count():
        groups = list(_groups(edges, root, is_last=number >= _ITERATIONS))
        if not groups:
            return made
        through = {node: len(edges) + n for n, group in enumerate(groups) for node in group}
        edges = [[through.get(to, to) for to in each] for each in edges]
        edges += map(list, groups)
        made += groups
    raise AssertionError


def _groups(edges: list[list[int]], root: int, *, is_last: bool) -> Iterator[tuple[int, ...]]:
    """The entries of each outermost irreducible cycle; all of its nodes in the last iteration."""
    order = reverse_postorder(root, edges.__getitem__)
    places = {node: place for place, node in enumerate(order)}
    before: list[list[int]] = [[] for _ in order]
    for place, node in enumerate(order):
        for to in edges[node]:
            before[places[to]].append(place)
    dominators = DominatorTree(before)
    # Without the edges that close natural loops, only irreducible cycles are cycles.
    rest = [
        [to for to in map(places.__getitem__, edges[node]) if not dominators.dominates(to, place)]
        for place, node in enumerate(order)
    ]
    if all(to > place for place, each in enumerate(rest) for to in each):
        return
    sources: list[list[int]] = [[] for _ in order]
    for place, each in enumerate(rest):
        for to in each:
            sources[to].append(place)
    for members in components(rest):
        if len(members) > 1:
            inside = set(members)
            yield tuple(
                order[place]
                for place in members
                if is_last or not inside.issuperset(sources[place])
            )
