# SPDX-License-Identifier: Apache-2.0
"""Which blocks of a body stand where in the text: nested as a person would write them, or flat.

Nested, after the dominator tree (Ramsey: Beyond Relooper, ICFP 2022):

- a block to which one edge leads stands at that edge, inside the `if`;
- one where edges join stands after the block that dominates it;
- the head of a natural loop opens a `for (;;)`; what the loop leaves to stands after it.

Edges that neither fall through nor are a `break` or `continue` become a `goto`, so any graph has a
text. Flat is for bodies that would nest too deep: one block after another, and a `goto` for each
edge. Dispatched is for cycles with two entries in a dialect that need not have them: a loop around
a switch over the number of the block that comes next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.ir.graph import Block, Body
from ferryvm.ir.operation import SAFEPOINTS
from ferryvm.region.dominance import dominators, within

DEEPEST = 100
"""Blocks that may dominate each other in a nested text: compilers limit the depth of braces."""


@dataclasses.dataclass
class Structure:
    """Places of blocks; `order` has those that can be reached."""

    order: list[Block]
    """In reverse postorder, so a block stands behind all that dominate it."""
    inlined: set[Block] = dataclasses.field(default_factory=set)
    """Blocks that stand where the one edge to them is."""
    after: dict[Block, list[Block]] = dataclasses.field(default_factory=dict)
    """Blocks that stand after a block, in the same braces."""
    heads: set[Block] = dataclasses.field(default_factory=set)
    """Blocks that open a loop."""
    behind: dict[Block, list[Block]] = dataclasses.field(default_factory=dict)
    """Blocks that stand after the loop that a block opens."""
    numbers: dict[Block, int] = dataclasses.field(default_factory=dict)
    """Of blocks in a loop around a switch, where that is the structure."""
    unchecked: set[Block] = dataclasses.field(default_factory=set)
    """Heads of loops with nothing in them that may leave but polls."""


def structure(body: Body, is_reducible: bool = False) -> Structure:
    """Places for the blocks of a body: nested if it is not too deep.

    `is_reducible`: cycles with two entries are dispatched.
    """
    nesting = _Nesting(body)
    if is_reducible and nesting.has_other_cycles():
        order = nesting.order
        return Structure(order, numbers={block: number for number, block in enumerate(order)})
    return nesting.nested() or flat(body)


def flat(body: Body) -> Structure:
    """One block after another."""
    order = _reverse_postorder(body)
    return Structure(order, after={order[0]: order[1:]})


def _successors(block: Block) -> Iterator[Block]:
    for edge in block.end.edges:
        yield edge.block


def _reverse_postorder(body: Body) -> list[Block]:
    entry = body.blocks[0]
    seen = {entry}
    finished: list[Block] = []
    path = [(entry, iter(reversed(list(_successors(entry)))))]
    while path:
        block, onward = path[-1]
        for to in onward:
            if to not in seen:
                seen.add(to)
                path.append((to, iter(reversed(list(_successors(to))))))
                break
        else:
            finished.append(block)
            path.pop()
    return finished[::-1]


def _has_check(block: Block) -> bool:
    return any(o.name in SAFEPOINTS and o.name != "poll" for o in block.operations)


class _Nesting:
    def __init__(self, body: Body) -> None:
        self.order = _reverse_postorder(body)
        self.place = {block: place for place, block in enumerate(self.order)}
        self.sources: dict[Block, list[Block]] = {block: [] for block in self.order}
        for block in self.order:
            for to in _successors(block):
                self.sources[to].append(block)
        before = [[self.place[source] for source in self.sources[b]] for b in self.order]
        above, self._spans = dominators(before)
        self.dominator = {b: self.order[above[self.place[b]]] for b in self.order}
        """The closest block that control must pass on its way to each; the entry's is itself."""

    def _dominates(self, a: Block, b: Block) -> bool:
        return within(self._spans, self.place[a], self.place[b])

    def _loops(self) -> dict[Block, set[Block]]:
        """Blocks of each natural loop, by its head; cycles with two entries have none."""
        found = {}
        for head in self.order:
            back = [s for s in self.sources[head] if self.place[s] >= self.place[head]]
            if not back or not all(self._dominates(head, source) for source in back):
                continue
            inside = {head}
            waiting = list(back)
            while waiting:
                block = waiting.pop()
                if block not in inside:
                    inside.add(block)
                    waiting += self.sources[block]
            found[head] = inside
        return found

    def has_other_cycles(self) -> bool:
        """True if there is a cycle that can be entered in two ways."""
        return any(
            not self._dominates(block, source)
            for block in self.order
            for source in self.sources[block]
            if self.place[source] >= self.place[block]
        )

    def nested(self) -> Structure | None:
        """None if that would be too deep."""
        depth = {self.order[0]: 0}
        for block in self.order[1:]:
            depth[block] = depth[self.dominator[block]] + 1
        if max(depth.values()) > DEEPEST:
            return None
        loops = self._loops()
        unchecked = {head for head, inside in loops.items() if not any(map(_has_check, inside))}
        made = Structure(self.order, heads=set(loops), unchecked=unchecked)
        for block in self.order[1:]:
            above = self.dominator[block]
            left = [h for h, inside in loops.items() if above in inside and block not in inside]
            forward = [s for s in self.sources[block] if self.place[s] < self.place[block]]
            is_cycle = len(forward) < len(self.sources[block]) and block not in loops
            if len(forward) == 1 and not is_cycle and not (left and block.end.edges):
                made.inlined.add(block)
            elif left:
                outermost = max(left, key=lambda head: len(loops[head]))
                made.behind.setdefault(outermost, []).append(block)
            else:
                made.after.setdefault(above, []).append(block)
        return made
