# SPDX-License-Identifier: Apache-2.0
"""Strongly connected components of a graph whose nodes are numbers.

(Tarjan: Depth-First Search and Linear Graph Algorithms, 1972; without recursion, since programs
choose how deep graphs are.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def components(successors: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """The strongly connected components of a graph, each sorted, in reverse topological order.

    `successors`: the successors of each node.
    """
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: list[int] = []
    is_open: set[int] = set()
    for root in range(len(successors)):
        path: list[tuple[int, Iterator[int]]] = []
        enter = root if root not in number else None
        while enter is not None or path:
            if enter is not None:
                number[enter] = lowest[enter] = len(number)
                open_.append(enter)
                is_open.add(enter)
                path.append((enter, iter(successors[enter])))
                enter = None
            node, rest = path[-1]
            for to in rest:
                if to not in number:
                    enter = to
                    break
                if to in is_open:
                    lowest[node] = min(lowest[node], number[to])
            else:
                path.pop()
                if path:
                    before = path[-1][0]
                    lowest[before] = min(lowest[before], lowest[node])
                if lowest[node] == number[node]:
                    members = [open_.pop()]
                    while members[-1] != node:
                        members.append(open_.pop())
                    is_open.difference_update(members)
                    yield tuple(sorted(members))


def cycle_without(successors: Sequence[Sequence[int]], passed: Collection[int]) -> tuple[int, ...]:
    """The nodes of one component with a cycle that avoids the nodes `passed`; none if there is
    none.

    It takes time linear in the edges: without these nodes the graph has to be acyclic.
    """
    rest = [
        [] if node in passed else [to for to in each if to not in passed]
        for node, each in enumerate(successors)
    ]
    for members in components(rest):
        if len(members) > 1 or members[0] in rest[members[0]]:
            return members
    return ()
