# SPDX-License-Identifier: Apache-2.0
"""Reverse postorder, by depth-first search without recursion: programs choose how deep graphs are.

Without back edges it is a topological order. (Aho, Lam, Sethi, Ullman: Compilers, 2nd edition,
section 9.6.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def reverse_postorder(entry: Node, successors: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """The nodes that are reachable from the entry, the entry first.

    Successors are visited in their order, so the later one of two independent successors comes
    first. `successors` is called once for each node.
    """
    finished: list[Node] = []
    seen = {entry}
    path: list[tuple[Node, Iterator[Node]]] = [(entry, iter(successors(entry)))]
    while path:
        node, rest = path[-1]
        for to in rest:
            if to not in seen:
                seen.add(to)
                path.append((to, iter(successors(to))))
                break
        else:
            finished.append(node)
            path.pop()
    return finished[::-1]
