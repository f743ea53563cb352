# SPDX-License-Identifier: Apache-2.0
"""Preheaders of loops, and labels for new blocks.

A preheader is the only block from which a loop is entered, and leads only there. (Muchnick:
Advanced Compiler Design and Implementation, 1997, section 7.4.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferryvm.ir.graph import Block, Body, Edge, Parameter, Terminator, Value
from ferryvm.ir.loop.natural import Loop, find_loops


class Labels:
    """The labels of a body's blocks, and new ones."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._taken: set[str] = set()

    def block(self, old: Block, prefix: str) -> Block:
        """An empty block with a new label, lifted from the same instruction as another one."""
        if not self._taken:
            self._taken = {block.label for block in self._body.blocks}
        label = f"{prefix}.{old.label}"
        while label in self._taken:
            label += "."
        self._taken.add(label)
        return Block(label, old.pc)


def lead_to(block: Block, target: Block, arguments: Sequence[Value]) -> Block:
    """The first block, which now jumps to the second one."""
    block.terminator = Terminator("jump", edges=(Edge(target, [*arguments]),))
    return block


def add_preheaders(body: Body, *, of_branches: bool = False) -> list[Loop]:
    """The loops of a body, after each with several entries has got a preheader.

    `of_branches`: also each that a branch enters, so that code in its preheader runs only if it is
    entered.
    """
    loops = find_loops(body)
    labels = Labels(body)
    made: dict[Block, list[Block]] = {}
    for loop in loops:
        sources = (loop.graph.blocks[entry.source] for entry in loop.entries)
        is_branch = any(len(source.end.edges) > 1 for source in sources)
        if len(loop.entries) < 2 and not (of_branches and is_branch):
            continue
        preheader = labels.block(loop.header, "preheader")
        made[loop.header] = [preheader]
        preheader.parameters = [Parameter(p.type) for p in loop.header.parameters]
        lead_to(preheader, loop.header, preheader.parameters)
        for _, edge in loop.entries:
            edge.block = preheader
    if not made:
        return loops
    insert_before(body, made)
    return find_loops(body)


def insert_before(body: Body, new: Mapping[Block, Sequence[Block]]) -> None:
    """Insert blocks before others of a body."""
    body.blocks[:] = [each for block in body.blocks for each in (*new.get(block, ()), block)]
