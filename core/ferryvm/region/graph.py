# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a function: basic blocks, dominators, loops.

    pc 0   local.get n     ┐ block 0                 a block is called by the pc of its
    pc 1   jump_unless 4   ┘ successors (2, 4)       first instruction
    pc 2   call work       ┐ block 2
    pc 3   jump 0          ┘ successors (0,)         0 dominates 2: a loop with head 0
    pc 4   return            block 4

It contains reachable instructions only. Calls and host calls do not end a block, since control
returns to the next instruction, unless a clause covers them: its handler is a successor. Each of
the jumps that follow a `jump_table` is a block.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools

from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.loop import find_natural_loops, latches_by_head
from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.region.code import DecodedCode, code
from ferryvm.region.loop import Loop
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True, slots=True)
class Block:
    """Instructions that control enters only at the first and leaves only after the last."""

    first: int
    last: int
    """pc of its last instruction, which is in it."""
    successors: tuple[int, ...]
    """First pcs of the successor blocks: the target of a jump; the next block, then the target of a
    branch (they may be one block); the jumps of a table in their order."""


class Graph:
    """The control-flow graph of one function. It has no reference to its program."""

    def __init__(self, verified: Verified, function: int) -> None:
        listing = code(verified)
        self.function = function
        self.name = listing.names[function]
        """The function's name in names of regions."""
        self.entry = verified.program.functions[function].entry
        self.blocks: dict[int, Block] = _ordered(_blocks(listing, self.entry), self.entry)
        """By first pc, in reverse postorder from the entry."""
        self.predecessors: dict[int, tuple[int, ...]] = _predecessors(self.blocks)
        """First pcs of the predecessors, each once; of every block."""
        firsts = [*self.blocks]
        self._order = {first: place for place, first in enumerate(firsts)}
        predecessors = [
            [self._order[source] for source in self.predecessors[first]] for first in firsts
        ]
        self._dominators = DominatorTree(predecessors)
        self.immediate_dominators: dict[int, int] = {
            first: firsts[self._dominators.parent(place)]
            for place, first in enumerate(firsts)
            if place
        }
        """The immediate dominator of each block except the entry."""
        latches, irreducible = latches_by_head(predecessors, self._dominators)
        self.irreducible_edges: tuple[tuple[int, int], ...] = tuple(
            (firsts[source], firsts[to]) for source, to in sorted(irreducible)
        )
        """Edges from a block back to one that does not dominate it: they close cycles with several
        entries, which are not natural loops."""
        loops, self._innermost = find_natural_loops(
            functools.partial(Loop, function=self.name),
            {firsts[head]: [firsts[each] for each in found] for head, found in latches.items()},
            self.predecessors,
            self._order,
        )
        self.loops: tuple[Loop, ...] = tuple(
            sorted(loops, key=lambda loop: (loop.depth, loop.head))
        )
        """Outermost first, those of one depth by head."""
        self.heads: dict[int, Loop] = {loop.head: loop for loop in self.loops}
        """The loops, keyed by head."""
        self._firsts = sorted(self.blocks)

    @property
    def irreducible(self) -> bool:
        """True if there is a cycle that is not a natural loop."""
        return bool(self.irreducible_edges)

    def dominates(self, a: int, b: int) -> bool:
        """True if every path from the entry to block `b` passes block `a`; each dominates
        itself."""
        return self._dominators.dominates(self._order[a], self._order[b])

    def loop(self, block: int) -> Loop | None:
        """The innermost loop around a block."""
        return self._innermost.get(block)

    def loop_at(self, pc: int) -> Loop | None:
        """The innermost loop around an instruction. Raises ValueError as `block`."""
        return self.loop(self.block(pc).first)

    def has(self, pc: int) -> bool:
        """True if the instruction belongs to the function and is reachable."""
        return self._block(pc) is not None

    def block(self, pc: int) -> Block:
        """The block of an instruction of the function. Raises ValueError for others."""
        found = self._block(pc)
        if found is None:
            raise ValueError(f"pc {pc} is not in function {self.name!r}, or cannot be reached")
        return found

    def _block(self, pc: int) -> Block | None:
        place = bisect.bisect_right(self._firsts, pc) - 1
        found = self.blocks[self._firsts[place]] if place >= 0 else None
        return None if found is None or pc > found.last else found


@memoised
def graph(verified: Verified, function: int) -> Graph:
    """The control-flow graph of a function; the same object each time."""
    return Graph(verified, function)


def _blocks(listing: DecodedCode, entry: int) -> dict[int, Block]:
    """All blocks that are reachable from `entry`."""
    ends, successors = listing.ends, listing.successors
    onward: dict[int, list[int]] = {}
    """The successors of each instruction that ends a block."""
    leaders, worklist = {entry}, [entry]
    while worklist:
        end = ends[bisect.bisect_left(ends, worklist.pop())]
        if end not in onward:
            onward[end] = successors(end)
            new = set(onward[end]) - leaders
            leaders |= new
            worklist += new
    blocks = {}
    nexts = sorted(leaders)
    for first, following in zip(nexts, [*nexts[1:], listing.length], strict=True):
        last = ends[bisect.bisect_left(ends, first)]
        if last < following:
            blocks[first] = Block(first, last, tuple(onward[last]))
        else:
            blocks[first] = Block(first, following - 1, (following,))
    return blocks


def _ordered(blocks: dict[int, Block], entry: int) -> dict[int, Block]:
    """The blocks in reverse postorder. The last successor is visited first, so that a block comes
    before the target of the branch that precedes it if both orders are valid."""
    order = reverse_postorder(entry, lambda first: reversed(blocks[first].successors))
    return {first: blocks[first] for first in order}


def _predecessors(blocks: dict[int, Block]) -> dict[int, tuple[int, ...]]:
    found: dict[int, dict[int, None]] = {first: {} for first in blocks}
    for block in blocks.values():
        for to in block.successors:
            found[to][block.first] = None
    return {first: tuple(before) for first, before in found.items()}
