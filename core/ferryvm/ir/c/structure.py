# SPDX-License-Identifier: Apache-2.0
"""The nesting of a body's blocks in the text: as a person would write them, or flat.

Nested, after the dominator tree (Ramsey: Beyond Relooper, ICFP 2022):

- a block with one incoming edge is placed at that edge, inside the `if`;
- a join is placed after the block that dominates it;
- the head of a natural loop opens a `for (;;)`; the targets of the loop's exits come after it.

Edges that neither fall through nor are a `break` or `continue` become a `goto`, so any graph has a
text. Flat is for bodies that would nest too deep: one block after another, and a `goto` for each
edge. Lifting makes bodies reducible, so no cycle of them has two entries.
"""

from __future__ import annotations

import dataclasses

from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.loop import NaturalLoop, find_natural_loops, latches_by_head
from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.ir.graph import Block, Body
from ferryvm.ir.operation import SAFEPOINTS

DEEPEST = 100
"""The largest depth of dominating blocks in a nested text: compilers limit the depth of braces."""


@dataclasses.dataclass
class Structure:
    """The nesting of blocks; `order` has the reachable ones."""

    order: list[Block]
    """In reverse postorder, so a block comes after all that dominate it."""
    inlined: set[Block] = dataclasses.field(default_factory=set)
    """Blocks that are placed at their only incoming edge."""
    after: dict[Block, list[Block]] = dataclasses.field(default_factory=dict)
    """Blocks that come after a block, in the same braces."""
    heads: set[Block] = dataclasses.field(default_factory=set)
    """Blocks that open a loop."""
    behind: dict[Block, list[Block]] = dataclasses.field(default_factory=dict)
    """Blocks that come after the loop that a block opens."""
    unchecked: set[Block] = dataclasses.field(default_factory=set)
    """Heads of loops whose only possible exits are polls."""


def structure(body: Body) -> Structure:
    """The nesting of a body's blocks: nested unless that is too deep."""
    return _Nesting(body).nested() or flat(body)


def flat(body: Body) -> Structure:
    """One block after another."""
    order = _order(body)
    return Structure(order, after={order[0]: order[1:]})


def _order(body: Body) -> list[Block]:
    """The blocks in reverse postorder, the first successor before the others."""
    return reverse_postorder(
        body.blocks[0], lambda block: [edge.block for edge in reversed(block.end.edges)]
    )


def _has_check(block: Block) -> bool:
    return any(o.name in SAFEPOINTS and o.name != "poll" for o in block.operations)


class _Nesting:
    def __init__(self, body: Body) -> None:
        self.order = _order(body)
        places = {block: place for place, block in enumerate(self.order)}
        self.predecessors: list[list[int]] = [[] for _ in self.order]
        for place, block in enumerate(self.order):
            for edge in block.end.edges:
                self.predecessors[places[edge.block]].append(place)
        self.dominators = DominatorTree(self.predecessors)
        latches, _ = latches_by_head(self.predecessors, self.dominators)
        self.loops, self.innermost = find_natural_loops(
            NaturalLoop, latches, self.predecessors, range(len(self.order))
        )

    def nested(self) -> Structure | None:
        """The nested structure; None if it is too deep."""
        depths = [0]
        for place in range(1, len(self.order)):
            depths.append(depths[self.dominators.parent(place)] + 1)
        if max(depths) > DEEPEST:
            return None
        heads = {self.order[loop.head]: loop for loop in self.loops}
        unchecked = {
            head
            for head, loop in heads.items()
            if not any(_has_check(self.order[place]) for place in loop.blocks)
        }
        made = Structure(self.order, heads=set(heads), unchecked=unchecked)
        for place, block in enumerate(self.order[1:], 1):
            above = self.dominators.parent(place)
            exited = self._exited_loop(above, place)
            sources = self.predecessors[place]
            forward = [source for source in sources if source < place]
            is_cycle = len(forward) < len(sources) and block not in heads
            if len(forward) == 1 and not is_cycle and not (exited and block.end.edges):
                made.inlined.add(block)
            elif exited is not None:
                made.behind.setdefault(self.order[exited.head], []).append(block)
            else:
                made.after.setdefault(self.order[above], []).append(block)
        return made

    def _exited_loop(self, above: int, place: int) -> NaturalLoop | None:
        """The outermost loop that contains one block and not another, which the first dominates."""
        found, loop = None, self.innermost.get(above)
        while loop is not None and place not in loop.blocks:
            found, loop = loop, loop.parent
        return found
