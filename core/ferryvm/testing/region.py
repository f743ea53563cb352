# SPDX-License-Identifier: Apache-2.0
"""The place of an instruction in a program: its function, the loops around it, its basic block."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ferryvm.errors import Position
from ferryvm.isa import Immediate
from ferryvm.region.graph import Graph, graph
from ferryvm.testing.trace import instruction_at
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class Region:
    """A run of instructions, both ends included."""

    kind: str
    """`function`, `loop` or `block`."""
    first: int
    last: int
    name: str = ""
    """The function's, or the label at its start, as `ferry dis` writes it."""
    position: Position | None = None

    def __str__(self) -> str:
        named = f"{self.kind} {self.name}" if self.name else self.kind
        source = f", {self.position}" if self.position else ""
        return f"{named} (pc {self.first} to {self.last}{source})"


def regions(verified: Verified, pc: int) -> list[Region]:
    """The regions around an instruction that can be reached, widest first, its block last."""
    program, owner = verified.program, verified.owner(pc)
    own = graph(verified, owner)
    labels = _labels(verified, own)

    def make(kind: str, blocks: Iterable[int], name: str, head: int) -> Region:
        inside = [own.blocks[first] for first in blocks]
        first, last = min(block.first for block in inside), max(block.last for block in inside)
        return Region(kind, first, last, name, program.source_map.position(head))

    block = own.block(pc)
    loops = []
    loop = own.loop(block.first)
    while loop is not None:
        loops.append(make("loop", loop.blocks, labels.get(loop.head, ""), loop.head))
        loop = loop.parent
    return [
        make("function", own.blocks, program.functions[owner].name, own.entry),
        *reversed(loops),
        make("block", [block.first], labels.get(block.first, ""), block.first),
    ]


def _labels(verified: Verified, own: Graph) -> dict[int, str]:
    """Labels of the places in a function that are jumped to."""
    jumps = (instruction_at(verified.program, block.last) for block in own.blocks.values())
    targets = {immediate for row, immediate in jumps if row.immediate is Immediate.TARGET}
    return {target: f":L{number}" for number, target in enumerate(sorted(targets))}
