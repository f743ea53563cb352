# SPDX-License-Identifier: Apache-2.0
"""Natural loops, and how they nest.

An edge whose head dominates its tail is a back edge; its loop is the head with all that reaches the
tail without passing the head (Aho, Lam, Sethi, Ullman: Compilers, section 9.6). Loops with one
head are one loop. Two loops are apart or one lies in the other.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True, eq=False)
class Loop:
    """A natural loop; one loop of a graph is one object.

    A block is called by the pc of its first instruction.
    """

    head: int
    """The block at which it is entered: its only one, since the head dominates the others."""
    back_edges: tuple[int, ...]
    """Blocks of it that go back to the head."""
    parent: Loop | None = dataclasses.field(repr=False)
    """The smallest loop around it."""
    depth: int
    """Loops that it lies in, itself included: 1 for an outermost one."""
    number: int
    """Its place among the loops with the same parent, by head, from 1."""
    loops: int
    """Loops in it, itself included."""
    function: str
    """Name of the function that it is in."""
    order: tuple[int, ...] = dataclasses.field(repr=False)
    """All blocks that are in loops of the function; those of one loop stand together. So a nest of
    any depth is held once, and only loops that are looked at are spelled out."""
    span: tuple[int, int] = dataclasses.field(repr=False)
    """From where to where in `order` it goes."""

    @functools.cached_property
    def blocks(self) -> frozenset[int]:
        """All blocks in it, those of the loops inside included."""
        return frozenset(self.order[slice(*self.span)])

    @functools.cached_property
    def path(self) -> str:
        """Numbers of the loops around it and of itself, outermost first: `2.1`."""
        numbers = []
        loop: Loop | None = self
        while loop is not None:
            numbers.append(str(loop.number))
            loop = loop.parent
        return ".".join(reversed(numbers))

    @property
    def name(self) -> str:
        """What it is called, the same in every run: `work/loop.2.1`."""
        return f"{self.function}/loop.{self.path}"


def find_loops(
    function: str,
    tails: Mapping[int, Sequence[int]],
    predecessors: Mapping[int, Sequence[int]],
    order: Mapping[int, int],
) -> tuple[list[Loop], dict[int, Loop]]:
    """The loops, outermost first, those of one depth by head; and each block's innermost one.

    `tails` are the tails of the back edges to each head, `order` the place of each block in reverse
    postorder.
    """
    forest = _Forest(predecessors)
    for head in sorted(tails, key=order.__getitem__, reverse=True):  # inner loops before outer ones
        forest.add(head, tails[head])
    return forest.make(function, tails)


class _Forest:
    """Loops by head, found from the inside out: a loop that is done counts as one block after."""

    def __init__(self, predecessors: Mapping[int, Sequence[int]]) -> None:
        self.predecessors = predecessors
        self.innermost: dict[int, int] = {}
        """Head of the smallest loop around each block."""
        self.parents: dict[int, int] = {}
        self.outermost: dict[int, int] = {}
        """A loop around each one, on the way to the outermost found yet, by head."""

    def _top(self, block: int) -> int | None:
        """Head of the outermost loop found yet that has the block."""
        head = self.innermost.get(block)
        if head is None:
            return None
        outermost = self.outermost
        while outermost[head] != head:
            outermost[head] = outermost[outermost[head]]  # halves the way for those who come after
            head = outermost[head]
        return head

    def add(self, head: int, tails: Sequence[int]) -> None:
        """Find the loop of a head; those of the heads inside are there already."""
        self.innermost[head] = self.outermost[head] = head
        waiting = list(tails)
        while waiting:
            block = waiting.pop()
            top = self._top(block)
            if top == head:
                continue
            if top is None:
                self.innermost[block] = head
                waiting += self.predecessors[block]
            else:
                self.parents[top] = self.outermost[top] = head
                waiting += self.predecessors[top]

    def make(
        self, function: str, tails: Mapping[int, Sequence[int]]
    ) -> tuple[list[Loop], dict[int, Loop]]:
        """The loops as objects."""
        inside: dict[int | None, list[int]] = {None: [], **{head: [] for head in tails}}
        for head in sorted(tails):
            inside[self.parents.get(head)].append(head)
        own: dict[int, list[int]] = {head: [] for head in tails}
        for block, head in self.innermost.items():
            own[head].append(block)
        order: list[int] = []
        spans: dict[int, tuple[int, int]] = {}
        counts: dict[int, int] = {}
        before: list[int] = []
        waiting: list[tuple[int, bool]] = [(head, False) for head in reversed(inside[None])]
        while waiting:  # a loop is met twice: before those inside it, and after
            head, is_done = waiting.pop()
            if is_done:
                first, found = spans[head]
                spans[head] = first, len(order)
                counts[head] = len(before) - found
                continue
            spans[head] = len(order), len(before)
            before.append(head)
            order += own[head]
            waiting.append((head, True))
            waiting += [(inner, False) for inner in reversed(inside[head])]
        blocks = tuple(order)
        loops: dict[int, Loop] = {}
        numbers = {
            head: number for heads in inside.values() for number, head in enumerate(heads, 1)
        }
        for head in before:
            above = self.parents.get(head)
            parent = None if above is None else loops[above]
            loops[head] = Loop(
                head,
                tuple(sorted(tails[head])),
                parent,
                parent.depth + 1 if parent else 1,
                numbers[head],
                counts[head],
                function,
                blocks,
                spans[head],
            )
        ordered = sorted(loops.values(), key=lambda loop: (loop.depth, loop.head))
        return ordered, {block: loops[head] for block, head in self.innermost.items()}
