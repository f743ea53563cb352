# SPDX-License-Identifier: Apache-2.0
"""The order in which blocks are linearised: topological, and compact.

The blocks of a loop are contiguous, and what only one successor of a branch leads to comes before
what the other one leads to. In such an order uniform branches stay branches. (Moll, Hack: Partial
Control-Flow Linearization, PLDI 2018, section 5.)
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body
from ferryvm.ir.loop.natural import Loop, loops_of


class Nest:
    """The blocks and loops of a body, by the loop directly around them."""

    def __init__(self, body: Body) -> None:
        self.graph = ControlFlowGraph(body)
        self.loops = loops_of(self.graph)
        self.around: dict[Block, Loop | None] = dict.fromkeys(self.graph.blocks)
        """The innermost loop around each block."""
        for loop in reversed(self.loops):  # outer loops first
            for block in loop.members:
                self.around[block] = loop
        self._headed = {loop.header: loop for loop in self.loops}
        self.members: dict[Loop | None, list[Block | Loop]] = {}
        """Blocks of a loop, or of the body, that are in no inner loop, and the inner loops, in
        order."""
        self.members[None] = self._ordered(None)
        for loop in self.loops:
            self.members[loop] = self._ordered(loop)

    def headed(self, block: Block) -> Loop:
        """The loop with this header."""
        return self._headed[block]

    def is_header(self, block: Block) -> bool:
        """True for the header of a loop."""
        return block in self._headed

    def contains(self, loop: Loop | None, block: Block) -> bool:
        """True if a block is in a loop; all are in None."""
        return loop is None or self.graph.places[block] in loop.blocks

    def exited(self, block: Block, target: Block) -> list[Loop]:
        """The loops around a block that do not contain another one, inner ones first."""
        found = []
        loop = self.around[block]
        while loop is not None and not self.contains(loop, target):
            found.append(loop)
            loop = loop.parent
        return found

    def _ordered(self, loop: Loop | None) -> list[Block | Loop]:
        """The reverse postorder of the blocks and inner loops of a loop."""
        first: Block = self.graph.blocks[0] if loop is None else loop.header
        start: Block | Loop = first
        if loop is None and self.is_header(first):
            start = self._headed[first]
        order: list[Block | Loop] = []
        seen: set[Block | Loop] = {start}
        stack = [(start, self._successors(start, loop))]
        while stack:
            node, waiting = stack[-1]
            if not waiting:
                order.append(node)
                stack.pop()
                continue
            following = waiting.pop()
            if following not in seen:
                seen.add(following)
                stack.append((following, self._successors(following, loop)))
        order.reverse()
        return order

    def _successors(self, node: Block | Loop, level: Loop | None) -> list[Block | Loop]:
        """The nodes of the same loop to which edges lead from a node."""
        blocks = [node] if isinstance(node, Block) else node.members
        found: dict[Block | Loop, None] = {}
        for block in blocks:
            for edge in block.end.edges:
                if edge.is_back or not self.contains(level, edge.block):
                    continue
                target = self._node(edge.block, level)
                if target is not node:
                    found[target] = None
        return list(found)

    def _node(self, block: Block, level: Loop | None) -> Block | Loop:
        """The block, or the largest loop around it inside another one."""
        found: Block | Loop = block
        loop = self.around[block]
        while loop is not level:
            assert loop is not None
            found, loop = loop, loop.parent
        return found
