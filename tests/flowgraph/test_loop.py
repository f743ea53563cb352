# SPDX-License-Identifier: Apache-2.0
"""Orders, dominators and natural loops of random graphs are those of their definitions."""

from __future__ import annotations

import random

from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.loop import NaturalLoop, find_natural_loops, latches_by_head
from ferryvm.flowgraph.traversal import reverse_postorder

from ..tier import together

Edges = list[list[int]]


def random_graph(number: int) -> Edges:
    """The successors of each node, in reverse postorder; all are reached from node 0."""
    rng = random.Random(number)
    count = rng.randrange(1, 14)
    edges = [[rng.randrange(count) for _ in range(rng.randrange(3))] for _ in range(count)]
    order = reverse_postorder(0, edges.__getitem__)
    places = {node: place for place, node in enumerate(order)}
    return [[places[to] for to in edges[node]] for node in order]


def predecessors(edges: Edges) -> Edges:
    return [[a for a, to in enumerate(edges) if b in to] for b in range(len(edges))]


def reached(edges: Edges, starts: list[int], without: int) -> set[int]:
    found: set[int] = set()
    waiting = list(starts)
    while waiting:
        node = waiting.pop()
        if node != without and node not in found:
            found.add(node)
            waiting += edges[node]
    return found


def test_successors_that_are_followed_later_come_first() -> None:
    edges = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
    assert reverse_postorder("a", edges.__getitem__) == ["a", "c", "b", "d"]


@together("number", range(60))
def test_only_back_and_irreducible_edges_lead_to_earlier_nodes(number: int) -> None:
    edges = random_graph(number)
    before = predecessors(edges)
    tree = DominatorTree(before)
    latches, irreducible = latches_by_head(before, tree)
    back = [(source, head) for head, sources in latches.items() for source in sources]
    found = {(a, b) for a, to in enumerate(edges) for b in to if b <= a}
    assert found == {*back, *irreducible}
    for a in range(len(edges)):
        others = reached(edges, [0], a)
        assert [tree.dominates(a, b) for b in range(len(edges))] == [
            b not in others for b in range(len(edges))
        ]
    assert all(tree.dominates(head, source) for source, head in back)
    assert not any(tree.dominates(to, source) for source, to in irreducible)


@together("number", range(60))
def test_a_loop_is_what_reaches_its_latches_without_its_head(number: int) -> None:
    before = predecessors(random_graph(number))
    latches, _ = latches_by_head(before, DominatorTree(before))
    loops, innermost = find_natural_loops(NaturalLoop, latches, before, range(len(before)))
    assert sorted(loop.head for loop in loops) == sorted(latches)
    for loop in loops:
        assert loop.blocks == {loop.head} | reached(before, [*loop.latches], loop.head)
        inside = {other for other in loops if other.blocks <= loop.blocks}
        assert {other for other in loops if loop.contains(other)} == inside
        assert loop.loops == len(inside)
        assert loop.is_innermost is (inside == {loop})
        around = [other for other in loops if loop.blocks < other.blocks]
        assert loop.depth == len(around) + 1
        assert loop.parent is min(around, key=lambda other: len(other.blocks), default=None)
    for node in range(len(before)):
        around = [loop for loop in loops if node in loop.blocks]
        assert innermost.get(node) is min(around, key=lambda loop: len(loop.blocks), default=None)
