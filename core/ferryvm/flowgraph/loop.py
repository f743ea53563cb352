# SPDX-License-Identifier: Apache-2.0
"""Natural loops, and how they nest.

An edge whose head dominates its tail is a back edge; its loop consists of the head and all nodes
that reach the tail without passing the head (Aho, Lam, Sethi, Ullman: Compilers, 2nd edition,
section 9.6.6). Loops with one head are one loop. Of two loops one contains the other or they are
disjoint. Inner loops are found first and then count as one node, so the search takes nearly linear
time. (Havlak: Nesting of Reducible and Irreducible Loops, TOPLAS 1997.)
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Self, TypeVar

from ferryvm.flowgraph.dominance import DominatorTree


@dataclasses.dataclass(eq=False)
class NaturalLoop:
    """A natural loop; one loop of a graph is one object."""

    head: int
    """The node at which it is entered: the only entry, since the head dominates the others."""
    latches: tuple[int, ...]
    """The tails of its back edges, in rising order."""
    parent: Self | None = dataclasses.field(repr=False)
    """The smallest loop around it."""
    depth: int
    """Number of loops that contain it, itself included: 1 for an outermost one."""
    number: int
    """Its number among the loops with the same parent, by head, from 1."""
    loops: int
    """Number of loops in it, itself included."""
    order: tuple[int, ...] = dataclasses.field(repr=False)
    """All nodes that are in loops of the graph; the nodes of one loop are contiguous. So a nest of
    any depth is stored once, and the nodes of a loop are listed only on demand."""
    interval: tuple[int, int] = dataclasses.field(repr=False)
    """Its range in `order`: start and end."""

    @functools.cached_property
    def blocks(self) -> frozenset[int]:
        """All nodes in it, including those of inner loops."""
        return frozenset(self.order[slice(*self.interval)])

    @property
    def is_innermost(self) -> bool:
        """True if it contains no other loop."""
        return self.loops == 1

    def contains(self, other: NaturalLoop) -> bool:
        """True if another loop of the graph is inside it, or is it."""
        first, past = self.interval
        return first <= other.interval[0] < past

    @functools.cached_property
    def path(self) -> str:
        """Numbers of the loops around it and of itself, outermost first: `2.1`."""
        numbers = []
        loop: NaturalLoop | None = self
        while loop is not None:
            numbers.append(str(loop.number))
            loop = loop.parent
        return ".".join(reversed(numbers))


LoopType = TypeVar("LoopType", bound=NaturalLoop)


def latches_by_head(
    predecessors: Sequence[Sequence[int]], dominators: DominatorTree
) -> tuple[dict[int, list[int]], list[tuple[int, int]]]:
    """The tails of the back edges to each head, and the irreducible edges.

    An irreducible edge leads to an earlier node that does not dominate its tail: it closes a cycle
    with several entries, which is not a natural loop. Nodes are numbered as in `DominatorTree`.
    """
    latches: dict[int, list[int]] = {}
    irreducible = []
    for node, sources in enumerate(predecessors):
        for source in sources:
            if source >= node:
                if dominators.dominates(node, source):
                    latches.setdefault(node, []).append(source)
                else:
                    irreducible.append((source, node))
    return latches, irreducible


def find_natural_loops(
    make: Callable[..., LoopType],
    latches: Mapping[int, Sequence[int]],
    predecessors: Mapping[int, Sequence[int]] | Sequence[Sequence[int]],
    order: Mapping[int, int] | Sequence[int],
) -> tuple[list[LoopType], dict[int, LoopType]]:
    """The loops, outer ones before inner ones; and the innermost loop around each node.

    `make`: makes a loop from the fields of `NaturalLoop`; `latches`: the tails of the back edges to
    each head; `order`: the number of each head in reverse postorder.
    """
    forest = _Forest(predecessors)
    for head in sorted(latches, key=order.__getitem__, reverse=True):  # inner ones before outer
        forest.add(head, latches[head])
    loops = forest.make(make, latches)
    return [*loops.values()], {node: loops[head] for node, head in forest.innermost.items()}


class _Forest:
    """Loops by head, found from the inside out: a loop counts as one node once it is found."""

    def __init__(self, predecessors: Mapping[int, Sequence[int]] | Sequence[Sequence[int]]) -> None:
        self.predecessors = predecessors
        self.innermost: dict[int, int] = {}
        """Head of the smallest loop around each node."""
        self.parents: dict[int, int] = {}
        self.outermost: dict[int, int] = {}
        """For each loop by head, a loop around it on the path to the outermost loop so far."""

    def _top(self, node: int) -> int | None:
        """Head of the outermost loop found so far that contains the node."""
        head = self.innermost.get(node)
        if head is None:
            return None
        outermost = self.outermost
        while outermost[head] != head:
            outermost[head] = outermost[outermost[head]]  # path halving for later searches
            head = outermost[head]
        return head

    def add(self, head: int, latches: Sequence[int]) -> None:
        """Find the loop of a head; the loops of inner heads must have been found."""
        self.innermost[head] = self.outermost[head] = head
        worklist = list(latches)
        while worklist:
            node = worklist.pop()
            top = self._top(node)
            if top == head:
                continue
            if top is None:
                self.innermost[node] = head
                worklist += self.predecessors[node]
            else:
                self.parents[top] = self.outermost[top] = head
                worklist += self.predecessors[top]

    def make(
        self, make: Callable[..., LoopType], latches: Mapping[int, Sequence[int]]
    ) -> dict[int, LoopType]:
        """The loops by head, each before its inner loops."""
        inside: dict[int | None, list[int]] = {}
        numbers: dict[int, int] = {}
        for head in sorted(latches):
            siblings = inside.setdefault(self.parents.get(head), [])
            siblings.append(head)
            numbers[head] = len(siblings)
        own: dict[int, list[int]] = {head: [] for head in latches}
        for node, head in self.innermost.items():
            own[head].append(node)
        order: list[int] = []
        preorder: list[int] = []
        intervals: dict[int, tuple[int, int]] = {}
        counts: dict[int, int] = {}
        worklist: list[tuple[int, tuple[int, int] | None]]
        worklist = [(head, None) for head in reversed(inside.get(None, ()))]
        while worklist:  # a loop is visited twice: before its inner loops, and after
            head, began = worklist.pop()
            if began is not None:
                intervals[head] = began[0], len(order)
                counts[head] = len(preorder) - began[1]
                continue
            began = len(order), len(preorder)
            preorder.append(head)
            order += own[head]
            if head in inside:
                worklist.append((head, began))
                worklist += [(inner, None) for inner in reversed(inside[head])]
            else:
                intervals[head], counts[head] = (began[0], len(order)), 1
        nodes = tuple(order)
        loops: dict[int, LoopType] = {}
        for head in preorder:
            around = self.parents.get(head)
            parent = None if around is None else loops[around]
            loops[head] = make(
                head=head,
                latches=tuple(sorted(latches[head])),
                parent=parent,
                depth=parent.depth + 1 if parent else 1,
                number=numbers[head],
                loops=counts[head],
                order=nodes,
                interval=intervals[head],
            )
        return loops
