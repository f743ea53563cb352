# SPDX-License-Identifier: Apache-2.0
"""Graphs with dispatches are reducible, and lead where they led."""

from __future__ import annotations

import random

import pytest

from ferryvm.flowgraph.reducible import dispatches

Edges = list[list[int]]


def reached(edges: Edges, start: int, without: int | None = None) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        node = waiting.pop()
        if node != without and node not in found:
            found.add(node)
            waiting += edges[node]
    return found


def with_dispatches(edges: Edges, groups: list[tuple[int, ...]]) -> tuple[Edges, int]:
    """The graph with a node a group, and its entry."""
    through = {node: len(edges) + n for n, group in enumerate(groups) for node in group}
    made = [[through.get(to, to) for to in each] for each in edges]
    return [*made, *map(list, groups)], through.get(0, 0)


def is_reducible(edges: Edges, entry: int) -> bool:
    """Whether no cycle is left without edges to nodes that dominate where they come from."""
    live = reached(edges, entry)
    dominated = {node: live - reached(edges, entry, without=node) for node in live}
    rest = [
        [to for to in each if node not in live or node not in dominated[to]]
        for node, each in enumerate(edges)
    ]
    return not any(node in reached(rest, to) for node in live for to in rest[node])


def any_edges(rng: random.Random) -> Edges:
    """A graph all of whose nodes can be reached."""
    count = rng.randrange(2, 12)
    edges = [rng.choices(range(count), k=rng.choice((1, 2, 2, 3))) for _ in range(count)]
    live = sorted(reached(edges, 0))
    return [[live.index(to) for to in edges[node]] for node in live]


def test_random_graphs_with_dispatches_are_reducible() -> None:
    rng = random.Random(20261123)
    made = 0
    for _ in range(1500):
        edges = any_edges(rng)
        groups = dispatches(edges)
        assert is_reducible(*with_dispatches(edges, groups)), edges
        assert bool(groups) is not is_reducible(edges, 0), edges
        nodes = [node for group in groups for node in group]
        assert len(nodes) == len({*nodes})
        made += bool(groups)
    assert made > 300


def test_a_cycle_with_two_entries_gets_one_dispatch() -> None:
    assert dispatches([[1, 2], [2], [1]]) == [(1, 2)]


def test_the_entry_may_be_in_a_cycle_with_several_entries() -> None:
    edges = [[1, 2], [2, 0], [1]]
    assert dispatches(edges) == [(1, 2)]


@pytest.mark.parametrize("pairs", [50, 500])
def test_cycles_inside_each_other_take_as_many_dispatches_as_rounds_at_most(pairs: int) -> None:
    """Each pair of nodes is entered from the one before it, and leads to the next pair and back."""
    edges: Edges = [[1, 2]]
    for number in range(pairs):
        a, b = 2 * number + 1, 2 * number + 2
        inner = [a + 2, b + 2] if number + 1 < pairs else []
        outer = [a - 2, b - 2] if number else []
        edges += [[b, *inner, *outer], [a, *inner, *outer]]
    groups = dispatches(edges)
    assert 1 <= len(groups) <= 10
    if pairs < 100:
        assert is_reducible(*with_dispatches(edges, groups))


def test_a_reducible_graph_needs_none() -> None:
    assert dispatches([[1], [2, 4], [3], [2, 1], []]) == []
